// Values of tensors in a model: inline bytes, typed fields or external data, checked before anything is believed, and
// mapped instead of copied where the file's bytes can be used as they lie.
#pragma once

#include "frontend/ModelFile.h"
#include "ir/HostTensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

namespace llmc {

/// A tensor's elements, little-endian and dense in the tensor's ONNX type, and what keeps them alive.
struct TensorBytes {
  llvm::StringRef bytes;
  std::shared_ptr<const void> owner;
};

/// What is wrong with a tensor's type and dimensions: an unknown or unsupported type, a negative size, an overflow. ""
/// when nothing is.
std::string describeTensorDamage(const onnx::TensorProto &tensor);

/// The type a tensor has in the graph: every float is f32 there; integers keep theirs. Null for types that are not
/// supported.
mlir::Type graphElementType(mlir::MLIRContext *context, int onnxType);
/// The type a tensor's elements have in the file.
mlir::Type storedElementType(mlir::MLIRContext *context, int onnxType);
/// "float16", "int64", ...
std::string onnxTypeName(int onnxType);

/// Reads the tensors of one model. Results keep the mapped files alive by themselves.
class TensorReader {
public:
  TensorReader(mlir::MLIRContext *context, const ModelFile &file) : context(context), file(file) {}

  /// The bytes of initializer `index` of the main graph. `error` says what is wrong with them.
  mlir::FailureOr<TensorBytes> initializerBytes(int index, std::string &error);
  /// A constant: wide, on the host.
  mlir::FailureOr<HostTensor> constant(const onnx::TensorProto &tensor, const TensorBytes &bytes);
  /// The constant in an attribute of a node.
  mlir::FailureOr<HostTensor> attributeConstant(const onnx::TensorProto &tensor, std::string &error);
  /// A float weight as f32: f32 data that lies aligned is not copied.
  mlir::DenseResourceElementsAttr weight(const onnx::TensorProto &tensor, const TensorBytes &bytes);
  /// The files of external data that were read so far.
  std::vector<std::string> externalPaths() const;

private:
  mlir::FailureOr<TensorBytes> externalBytes(const onnx::TensorProto &tensor, std::string &error);

  mlir::MLIRContext *context;
  const ModelFile &file;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> externalFiles; ///< by location
};

} // namespace llmc
