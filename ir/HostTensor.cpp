// Host tensors: to and from attributes, and the index arithmetic of broadcasting.
#include "ir/HostTensor.h"

#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>

using namespace mlir;

namespace llmc {

HostTensor HostTensor::zeros(RankedTensorType type) {
  HostTensor tensor{type, {}, {}};
  if (tensor.isFloat())
    tensor.floats.assign(type.getNumElements(), 0.0);
  else
    tensor.integers.assign(type.getNumElements(), 0);
  return tensor;
}

/// Reads element i of `data`, which holds elements of the tensor's type and need not be aligned.
static void readElement(HostTensor &tensor, int64_t i, const char *data) {
  Type element = tensor.type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    unsigned bytes = floatType.getWidth() / 8;
    uint64_t bits = 0;
    std::memcpy(&bits, data + i * bytes, bytes);
    APFloat value(floatType.getFloatSemantics(), APInt(floatType.getWidth(), bits));
    bool losesInfo;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    tensor.floats[i] = value.convertToDouble();
    return;
  }
  unsigned width = element.getIntOrFloatBitWidth(), bytes = std::max(1u, width / 8);
  uint64_t bits = 0;
  std::memcpy(&bits, data + i * bytes, bytes);
  tensor.integers[i] = width == 1 ? int64_t(bits != 0) : APInt(width, bits).getSExtValue();
}

static FailureOr<HostTensor> fromResource(DenseResourceElementsAttr attribute, RankedTensorType type) {
  AsmResourceBlob *blob = attribute.getRawHandle().getBlob();
  uint64_t bytesPerElement = std::max(1u, type.getElementTypeBitWidth() / 8);
  if (!blob || blob->getData().size() != uint64_t(type.getNumElements()) * bytesPerElement)
    return failure();
  HostTensor tensor = HostTensor::zeros(type);
  if (type.getElementType().isF32()) {
    for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
      float value;
      std::memcpy(&value, blob->getData().data() + i * sizeof(float), sizeof(float));
      tensor.floats[i] = value;
    }
    return tensor;
  }
  for (int64_t i = 0, n = tensor.size(); i < n; ++i)
    readElement(tensor, i, blob->getData().data());
  return tensor;
}

FailureOr<HostTensor> HostTensor::fromAttribute(ElementsAttr attribute) {
  auto type = dyn_cast<RankedTensorType>(attribute.getType());
  if (!type || !type.hasStaticShape())
    return failure();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute))
    return fromResource(resource, type);
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense)
    return failure();
  HostTensor tensor = zeros(type);
  int64_t i = 0;
  if (tensor.isFloat()) {
    for (APFloat value : dense.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      tensor.floats[i++] = value.convertToDouble();
    }
    return tensor;
  }
  bool isBoolean = type.getElementType().isInteger(1);
  for (const APInt &value : dense.getValues<APInt>())
    tensor.integers[i++] = isBoolean ? int64_t(value.getBoolValue()) : value.getSExtValue();
  return tensor;
}

ElementsAttr HostTensor::toAttribute() const {
  if (auto floatType = dyn_cast<FloatType>(type.getElementType())) {
    if (floatType.isF32()) {
      std::vector<float> values(floats.begin(), floats.end());
      return DenseElementsAttr::get(type, ArrayRef<float>(values));
    }
    SmallVector<APFloat> values;
    for (double value : floats) {
      APFloat converted(value);
      bool losesInfo;
      converted.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(converted);
    }
    return DenseElementsAttr::get(type, values);
  }
  if (type.getElementType().isInteger(64))
    return DenseElementsAttr::get(type, ArrayRef<int64_t>(integers));
  SmallVector<APInt> values;
  unsigned width = type.getElementTypeBitWidth();
  for (int64_t value : integers)
    values.push_back(width == 1 ? APInt(1, value != 0) : APInt(64, uint64_t(value)).trunc(width));
  return DenseElementsAttr::get(type, values);
}

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = int64_t(shape.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

FailureOr<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  SmallVector<int64_t> shape(rank);
  for (size_t d = 0; d < rank; ++d) {
    int64_t sizeA = d < rank - a.size() ? 1 : a[d - (rank - a.size())];
    int64_t sizeB = d < rank - b.size() ? 1 : b[d - (rank - b.size())];
    if (sizeA != sizeB && sizeA != 1 && sizeB != 1)
      return failure();
    shape[d] = sizeA == 1 ? sizeB : sizeA;
  }
  return shape;
}

std::vector<int64_t> broadcastIndices(ArrayRef<int64_t> shape, ArrayRef<int64_t> operandShape) {
  size_t rank = shape.size(), missing = rank - operandShape.size();
  SmallVector<int64_t> operandStrides = rowMajorStrides(operandShape), strides(rank, 0), index(rank, 0);
  for (size_t d = missing; d < rank; ++d)
    strides[d] = operandShape[d - missing] == 1 ? 0 : operandStrides[d - missing];
  int64_t count = 1, at = 0;
  for (int64_t size : shape)
    count *= size;
  std::vector<int64_t> indices(count);
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = at;
    for (int64_t d = int64_t(rank) - 1; d >= 0; --d) {
      at += strides[d];
      if (++index[d] < shape[d])
        break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return indices;
}

} // namespace llmc
