// The dialect's registration, and what is common to all its types.
#include "ir/Dialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/Dialect.cpp.inc"
#include "ir/Enums.cpp.inc"
#include "ir/Interfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.cpp.inc"

namespace llmc {

void LlmcDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Ops.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attributes.cpp.inc"
      >();
}

Operation *LlmcDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return builder.create<ConstantOp>(location, type, elements);
}

int64_t elementTypeNumber(Type type) {
  if (type.isF32())
    return 0;
  if (type.isBF16())
    return 1;
  if (type.isF16())
    return 2;
  if (type.isF64())
    return 3;
  if (type.isInteger(64))
    return 4;
  if (type.isInteger(32))
    return 5;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? 7 : 6;
  return type.isInteger(1) ? 8 : -1;
}

int64_t PackedAttr::numElements(int64_t k, int64_t n) const {
  int64_t rowBlock = getLayout() == PackedLayout::blocked16x64x2 ? 32 : 16;
  return (k + rowBlock - 1) / rowBlock * rowBlock * ((n + 63) / 64 * 64);
}

int64_t tensorBytes(RankedTensorType type) {
  auto packed = dyn_cast_or_null<PackedAttr>(type.getEncoding());
  int64_t elements = packed ? packed.numElements(type.getDimSize(0), type.getDimSize(1)) : type.getNumElements();
  return elements * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

} // namespace llmc

#define GET_OP_CLASSES
#include "ir/Ops.cpp.inc"
