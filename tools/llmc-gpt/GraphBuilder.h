// Puts an ONNX graph together node by node. A value is known by its name, and a node's name is that of its (first)
// result, so a reader of the graph meets the same words everywhere. Large tensors are only declared here; ModelFile
// writes their values.
#pragma once

#include "tools/llmc-gpt/GptTensor.h"

#include <onnx/onnx_pb.h>
#include <string>
#include <variant>
#include <vector>

namespace llmc {

class GraphBuilder {
public:
  using Value = std::string;
  struct Attribute {
    std::string name;
    std::variant<int64_t, float, std::vector<int64_t>> value;
  };

  explicit GraphBuilder(const std::string &graphName) { graph.set_name(graphName); }

  /// Inputs and outputs of the graph, in the order of the calls. An output's value must come from a node of that name.
  Value input(const std::string &name, onnx::TensorProto::DataType type, const std::vector<int64_t> &shape);
  void output(const Value &value, onnx::TensorProto::DataType type, const std::vector<int64_t> &shape);

  /// A large tensor: weight or mask.
  Value tensor(GptTensor tensor);
  /// A small constant, stored in the graph; asked for twice under one name it is stored once.
  Value scalar(const std::string &name, float value);
  Value integers(const std::string &name, const std::vector<int64_t> &values);

  /// A node with one result, called `name`.
  Value node(const char *op, const std::string &name, const std::vector<Value> &inputs,
             const std::vector<Attribute> &attributes = {});
  /// A node with several results, called `name`.0, `name`.1, ...
  std::vector<Value> nodes(const char *op, const std::string &name, int numResults, const std::vector<Value> &inputs,
                           const std::vector<Attribute> &attributes = {});

  /// What was built. The graph's initializers are the small constants only; `tensors` are still to be added.
  onnx::GraphProto graph;
  std::vector<GptTensor> tensors;

private:
  onnx::NodeProto &addNode(const char *op, const std::string &name, const std::vector<Value> &inputs,
                           const std::vector<Attribute> &attributes);
  bool hasInitializer(const std::string &name) const;
};

} // namespace llmc
