// The table of ONNX operators: one row for each operator and range of opsets that mean the same, with the handler that
// turns a node into llmc ops. To read another operator, add a row and its handler to the file of its family, and a
// test.
#pragma once

#include "frontend/Emitter.h"
#include "frontend/OnnxTensor.h"

#include "llvm/ADT/StringMap.h"

#include <onnx/onnx_pb.h>
#include <optional>

namespace llmc {

/// What the handlers of one graph share.
struct GraphState {
  const ModelFile &file;
  mlir::OpBuilder builder;
  TensorReader reader;
  bool keepDropout = true;
  llvm::StringMap<mlir::Value> values;                       ///< by name
  llvm::StringMap<llvm::SmallVector<mlir::Value>> sequences; ///< by name; sequences exist at compile time only
  llvm::StringMap<std::string> notImported;                  ///< outputs no handler gives, and why
  int64_t numDropouts = 0;                                   ///< Dropout nodes met so far
  mlir::Value dropoutSeed[3];                                ///< seed_lo, seed_hi, step; null before the first use
};

/// One node while it is imported.
class OnnxNode : public Emitter {
public:
  OnnxNode(GraphState &state, const onnx::NodeProto &proto, mlir::Location loc, int64_t opset);

  /// Whether input i is given.
  bool has(int i) const { return i < proto.input_size() && !proto.input(i).empty(); }
  int numInputs() const { return proto.input_size(); }
  int numOutputs() const { return proto.output_size(); }
  /// Whether output i has a name.
  bool wants(int i) const { return i < proto.output_size() && !proto.output(i).empty(); }
  /// The value of input i; null and an error when it is absent or not a tensor.
  mlir::Value input(int i);
  /// The value of input i, null when it is absent.
  mlir::Value optionalInput(int i) { return has(i) ? input(i) : mlir::Value(); }
  /// All inputs.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> inputs();
  const std::string &inputName(int i) const { return proto.input(i); }
  const std::string &outputName(int i) const { return proto.output(i); }

  int64_t attribute(llvm::StringRef name, int64_t otherwise) const;
  double attribute(llvm::StringRef name, double otherwise) const;
  std::string attribute(llvm::StringRef name, const char *otherwise) const;
  bool hasAttribute(llvm::StringRef name) const { return find(name); }
  std::optional<llvm::SmallVector<int64_t>> intsAttribute(llvm::StringRef name) const;
  const onnx::AttributeProto *find(llvm::StringRef name) const;

  /// The value of input i when it is known at compile time; else an error.
  mlir::FailureOr<HostTensor> known(int i);
  mlir::FailureOr<llvm::SmallVector<int64_t>> knownInts(int i);
  /// The only element of input i.
  mlir::FailureOr<int64_t> knownInt(int i);
  /// Integers given as an input from opset `since` on, before as an attribute; nothing when absent.
  mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>> intsInputOrAttribute(int i, llvm::StringRef name,
                                                                                  int64_t since);

  /// An axis made non-negative. `rank` is what it counts in.
  mlir::FailureOr<int64_t> axis(int64_t value, int64_t rank);
  /// The attribute `axis`, as an axis of a value; fails for a null value.
  mlir::FailureOr<int64_t> axisAttribute(mlir::Value of, int64_t otherwise);
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> values, int64_t rank);

  /// Gives output i its value. Fails when the value is null.
  mlir::LogicalResult set(int i, mlir::Value value);
  mlir::LogicalResult set(mlir::Value value) { return set(0, value); }
  /// Says that outputs from i on are not given, and why.
  void refuse(int from, llvm::StringRef why);

  GraphState &state;
  const onnx::NodeProto &proto;
  int64_t opset;
};

/// A row of the table.
struct OnnxOp {
  llvm::StringLiteral name;
  int64_t firstOpset, lastOpset; ///< the opsets of ONNX's own domain in which the handler reads the operator rightly
  mlir::LogicalResult (*import)(OnnxNode &node);
};

// The rows, by family.
llvm::ArrayRef<OnnxOp> onnxMathOps();
llvm::ArrayRef<OnnxOp> onnxReductionOps();
llvm::ArrayRef<OnnxOp> onnxShapeOps();
llvm::ArrayRef<OnnxOp> onnxSliceOps();
llvm::ArrayRef<OnnxOp> onnxIndexOps();
llvm::ArrayRef<OnnxOp> onnxConstantOps();
llvm::ArrayRef<OnnxOp> onnxMatMulOps();
llvm::ArrayRef<OnnxOp> onnxLossOps();
llvm::ArrayRef<OnnxOp> onnxAttentionOps();
llvm::ArrayRef<OnnxOp> onnxSequenceOps();

/// All rows.
llvm::SmallVector<OnnxOp> allOnnxOps();

} // namespace llmc
