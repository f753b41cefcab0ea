// Reading tensors. A tensor says how many elements it has and brings bytes; these must agree before a byte is read.
#include "frontend/OnnxTensor.h"

#include "frontend/ExternalData.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"

#include <cstring>

using namespace mlir;

namespace llmc {

namespace {
/// The element types that are read.
struct TypeRow {
  int onnxType;
  uint64_t bytes;
};
constexpr TypeRow kTypes[] = {{onnx::TensorProto::FLOAT, 4},    {onnx::TensorProto::FLOAT16, 2},
                              {onnx::TensorProto::BFLOAT16, 2}, {onnx::TensorProto::DOUBLE, 8},
                              {onnx::TensorProto::INT64, 8},    {onnx::TensorProto::INT32, 4},
                              {onnx::TensorProto::BOOL, 1}};
} // namespace

static uint64_t elementBytes(int onnxType) {
  const TypeRow *row = llvm::find_if(kTypes, [&](const TypeRow &row) { return row.onnxType == onnxType; });
  return row == std::end(kTypes) ? 0 : row->bytes;
}

std::string onnxTypeName(int onnxType) {
  if (!onnx::TensorProto_DataType_IsValid(onnxType))
    return "type " + std::to_string(onnxType);
  return StringRef(onnx::TensorProto_DataType_Name(onnx::TensorProto_DataType(onnxType))).lower();
}

static uint64_t elementCount(const onnx::TensorProto &tensor) {
  uint64_t count = 1;
  for (int64_t size : tensor.dims())
    count *= uint64_t(size);
  return count;
}

std::string describeTensorDamage(const onnx::TensorProto &tensor) {
  if (elementBytes(tensor.data_type()) == 0)
    return "element type " + onnxTypeName(tensor.data_type()) + " is not supported";
  if (tensor.has_segment())
    return "it is stored in segments, which are not supported";
  int64_t count = 1;
  for (int64_t size : tensor.dims()) {
    if (size < 0)
      return "dimension " + std::to_string(size) + " is negative";
    if (size > kMostElements || (size > 0 && count > kMostElements / size))
      return "its dimensions multiply to more than 2^38 elements";
    count *= size;
  }
  return "";
}

Type storedElementType(MLIRContext *context, int onnxType) {
  Builder builder(context);
  switch (onnxType) {
  case onnx::TensorProto::FLOAT:
    return builder.getF32Type();
  case onnx::TensorProto::FLOAT16:
    return builder.getF16Type();
  case onnx::TensorProto::BFLOAT16:
    return builder.getBF16Type();
  case onnx::TensorProto::DOUBLE:
    return builder.getF64Type();
  case onnx::TensorProto::INT64:
    return builder.getI64Type();
  case onnx::TensorProto::INT32:
    return builder.getI32Type();
  case onnx::TensorProto::BOOL:
    return builder.getI1Type();
  default:
    return {};
  }
}

Type graphElementType(MLIRContext *context, int onnxType) {
  Type stored = storedElementType(context, onnxType);
  return stored && isa<FloatType>(stored) ? FloatType::getF32(context) : stored;
}

/// The typed fields of a tensor as dense bytes; nothing when there are none.
template <typename Narrow, typename Field> static std::vector<char> narrow(const Field &values) {
  std::vector<char> bytes(size_t(values.size()) * sizeof(Narrow));
  for (int i = 0; i < values.size(); ++i) {
    Narrow value = static_cast<Narrow>(values.Get(i));
    std::memcpy(bytes.data() + size_t(i) * sizeof(Narrow), &value, sizeof(Narrow));
  }
  return bytes;
}
static std::vector<char> typedFieldBytes(const onnx::TensorProto &tensor) {
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return narrow<float>(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return narrow<double>(tensor.double_data());
  case onnx::TensorProto::INT64:
    return narrow<int64_t>(tensor.int64_data());
  case onnx::TensorProto::INT32:
    return narrow<int32_t>(tensor.int32_data());
  case onnx::TensorProto::BOOL:
    return narrow<int8_t>(tensor.int32_data());
  default:
    return narrow<uint16_t>(tensor.int32_data());
  }
}

/// The inline bytes of a tensor, whose raw_data is given apart when it has one.
static FailureOr<TensorBytes> inlineBytes(const onnx::TensorProto &tensor, std::optional<TensorBytes> raw,
                                          std::string &error) {
  uint64_t needed = elementCount(tensor) * elementBytes(tensor.data_type());
  bool hasTyped = tensor.float_data_size() || tensor.int32_data_size() || tensor.int64_data_size() ||
                  tensor.double_data_size() || tensor.uint64_data_size() || tensor.string_data_size();
  if (raw && hasTyped) {
    error = "its values are stored twice, in raw_data and in a typed field";
    return failure();
  }
  TensorBytes bytes;
  if (raw) {
    bytes = *raw;
  } else {
    auto typed = std::make_shared<std::vector<char>>(typedFieldBytes(tensor));
    bytes = {StringRef(typed->data(), typed->size()), typed};
  }
  if (bytes.bytes.size() != needed) {
    error =
        "its shape and type need " + std::to_string(needed) + " bytes, it holds " + std::to_string(bytes.bytes.size());
    return failure();
  }
  return bytes;
}

FailureOr<TensorBytes> TensorReader::externalBytes(const onnx::TensorProto &tensor, std::string &error) {
  std::optional<ExternalData> data = parseExternalData(tensor, error);
  if (!data)
    return failure();
  std::shared_ptr<llvm::MemoryBuffer> &buffer = externalFiles[data->location];
  if (!buffer) {
    std::optional<std::string> path = resolveExternalFile(file.path, data->location, error);
    if (!path)
      return failure();
    auto opened = llvm::MemoryBuffer::getFile(*path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened) {
      error = "its external data cannot be read: " + opened.getError().message();
      return failure();
    }
    buffer = std::move(*opened);
  }
  uint64_t needed = elementCount(tensor) * elementBytes(tensor.data_type()), size = buffer->getBufferSize();
  if (data->length && *data->length != needed) {
    error = "its shape and type need " + std::to_string(needed) + " bytes, its external data has a length of " +
            std::to_string(*data->length);
    return failure();
  }
  if (data->offset > size || needed > size - data->offset) {
    error = "its external data reaches to byte " + std::to_string(data->offset) + " + " + std::to_string(needed) +
            " of a file of " + std::to_string(size);
    return failure();
  }
  return TensorBytes{buffer->getBuffer().substr(data->offset, needed), buffer};
}

std::vector<std::string> TensorReader::externalPaths() const {
  std::vector<std::string> paths;
  for (const auto &external : externalFiles)
    if (external.second)
      paths.push_back(external.second->getBufferIdentifier().str());
  llvm::sort(paths);
  return paths;
}

FailureOr<TensorBytes> TensorReader::initializerBytes(int index, std::string &error) {
  const onnx::TensorProto &tensor = file.model.graph().initializer(index);
  const InitializerBytes &place = file.initializers[index];
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    if (!place.hasRawData)
      return externalBytes(tensor, error);
    error = "its values are stored twice, inline and as external data";
    return failure();
  }
  return inlineBytes(tensor, place.hasRawData ? std::optional(TensorBytes{place.rawData, file.bytes}) : std::nullopt,
                     error);
}

FailureOr<HostTensor> TensorReader::attributeConstant(const onnx::TensorProto &tensor, std::string &error) {
  error = describeTensorDamage(tensor);
  if (error.empty() && tensor.data_location() == onnx::TensorProto::EXTERNAL)
    error = "a constant of a node cannot be external data";
  if (!error.empty())
    return failure();
  auto raw = tensor.has_raw_data() ? std::optional(TensorBytes{tensor.raw_data(), nullptr}) : std::nullopt;
  FailureOr<TensorBytes> bytes = inlineBytes(tensor, raw, error);
  if (failed(bytes))
    return failure();
  return constant(tensor, *bytes);
}

/// Element i of dense bytes of an element type, as a double.
static double readFloat(StringRef bytes, int64_t i, FloatType type) {
  unsigned width = type.getWidth() / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * width, width);
  APFloat value(type.getFloatSemantics(), APInt(type.getWidth(), bits));
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}
template <typename T> static int64_t readInteger(StringRef bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return int64_t(value);
}

FailureOr<HostTensor> TensorReader::constant(const onnx::TensorProto &tensor, const TensorBytes &bytes) {
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  HostTensor value = HostTensor::zeros(RankedTensorType::get(shape, graphElementType(context, tensor.data_type())));
  auto stored = dyn_cast<FloatType>(storedElementType(context, tensor.data_type()));
  for (int64_t i = 0, n = value.size(); i < n; ++i) {
    if (stored)
      value.floats[i] = readFloat(bytes.bytes, i, stored);
    else if (tensor.data_type() == onnx::TensorProto::INT64)
      value.integers[i] = readInteger<int64_t>(bytes.bytes, i);
    else if (tensor.data_type() == onnx::TensorProto::INT32)
      value.integers[i] = readInteger<int32_t>(bytes.bytes, i);
    else
      value.integers[i] = readInteger<uint8_t>(bytes.bytes, i) != 0;
  }
  return value;
}

DenseResourceElementsAttr TensorReader::weight(const onnx::TensorProto &tensor, const TensorBytes &bytes) {
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  auto type = RankedTensorType::get(shape, FloatType::getF32(context));
  bool isAligned = reinterpret_cast<uintptr_t>(bytes.bytes.data()) % alignof(float) == 0;
  if (tensor.data_type() == onnx::TensorProto::FLOAT && isAligned) {
    ArrayRef<char> data(bytes.bytes.data(), bytes.bytes.size());
    auto keepAlive = [owner = bytes.owner](void *, size_t, size_t) {};
    return DenseResourceElementsAttr::get(type, tensor.name(),
                                          AsmResourceBlob(data, alignof(float), keepAlive, /*dataIsMutable=*/false));
  }
  uint64_t count = elementCount(tensor);
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(count * sizeof(float), alignof(float), /*dataIsMutable=*/true);
  char *values = blob.getMutableData().data();
  if (tensor.data_type() == onnx::TensorProto::FLOAT) {
    std::memcpy(values, bytes.bytes.data(), bytes.bytes.size());
  } else {
    auto stored = cast<FloatType>(storedElementType(context, tensor.data_type()));
    for (uint64_t i = 0; i < count; ++i) {
      auto value = float(readFloat(bytes.bytes, int64_t(i), stored));
      std::memcpy(values + i * sizeof(float), &value, sizeof(float));
    }
  }
  return DenseResourceElementsAttr::get(type, tensor.name(), std::move(blob));
}

} // namespace llmc
