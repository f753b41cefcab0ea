#include "tools/llmc-gpt/GraphBuilder.h"

#include <algorithm>

namespace llmc {

static void describe(onnx::ValueInfoProto &info, const std::string &name, onnx::TensorProto::DataType type,
                     const std::vector<int64_t> &shape) {
  info.set_name(name);
  onnx::TypeProto::Tensor &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape(); // no dimensions is a scalar, no shape would be unknown
  for (int64_t dim : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

GraphBuilder::Value GraphBuilder::input(const std::string &name, onnx::TensorProto::DataType type,
                                        const std::vector<int64_t> &shape) {
  describe(*graph.add_input(), name, type, shape);
  return name;
}

void GraphBuilder::output(const Value &value, onnx::TensorProto::DataType type, const std::vector<int64_t> &shape) {
  describe(*graph.add_output(), value, type, shape);
}

GraphBuilder::Value GraphBuilder::tensor(GptTensor tensor) {
  tensors.push_back(std::move(tensor));
  return tensors.back().name;
}

bool GraphBuilder::hasInitializer(const std::string &name) const {
  return std::ranges::any_of(graph.initializer(), [&](const onnx::TensorProto &known) { return known.name() == name; });
}

GraphBuilder::Value GraphBuilder::scalar(const std::string &name, float value) {
  if (hasInitializer(name))
    return name;
  onnx::TensorProto &constant = *graph.add_initializer();
  constant.set_name(name);
  constant.set_data_type(onnx::TensorProto::FLOAT);
  constant.set_raw_data(&value, sizeof(value));
  return name;
}

GraphBuilder::Value GraphBuilder::integers(const std::string &name, const std::vector<int64_t> &values) {
  if (hasInitializer(name))
    return name;
  onnx::TensorProto &constant = *graph.add_initializer();
  constant.set_name(name);
  constant.set_data_type(onnx::TensorProto::INT64);
  constant.add_dims(static_cast<int64_t>(values.size()));
  constant.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return name;
}

namespace {
/// Stores an attribute's value under the type ONNX calls it.
struct AttributeSetter {
  onnx::AttributeProto &attribute;
  void operator()(int64_t value) const {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void operator()(float value) const {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  void operator()(const std::vector<int64_t> &values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.mutable_ints()->Add(values.begin(), values.end());
  }
};
} // namespace

onnx::NodeProto &GraphBuilder::addNode(const char *op, const std::string &name, const std::vector<Value> &inputs,
                                       const std::vector<Attribute> &attributes) {
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const Value &input : inputs)
    node.add_input(input);
  for (const Attribute &attribute : attributes) {
    onnx::AttributeProto &stored = *node.add_attribute();
    stored.set_name(attribute.name);
    std::visit(AttributeSetter{stored}, attribute.value);
  }
  return node;
}

GraphBuilder::Value GraphBuilder::node(const char *op, const std::string &name, const std::vector<Value> &inputs,
                                       const std::vector<Attribute> &attributes) {
  addNode(op, name, inputs, attributes).add_output(name);
  return name;
}

std::vector<GraphBuilder::Value> GraphBuilder::nodes(const char *op, const std::string &name, int numResults,
                                                     const std::vector<Value> &inputs,
                                                     const std::vector<Attribute> &attributes) {
  onnx::NodeProto &node = addNode(op, name, inputs, attributes);
  std::vector<Value> results;
  for (int i = 0; i < numResults; ++i) {
    results.push_back(name + "." + std::to_string(i));
    node.add_output(results.back());
  }
  return results;
}

} // namespace llmc
