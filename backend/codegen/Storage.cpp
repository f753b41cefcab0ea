// Conversions by integer arithmetic, one instruction or a few for a register of lanes.
#include "backend/codegen/Storage.h"
#include "backend/codegen/LaneOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace llmc {

Type memoryType(Type storage) {
  if (storage.isBF16())
    return IntegerType::get(storage.getContext(), 16);
  return storage.isInteger(1) ? IntegerType::get(storage.getContext(), 8) : storage;
}

unsigned storageBytes(Type storage) { return memoryType(storage).getIntOrFloatBitWidth() / 8; }

Lanes fromStorage(Lanes loaded, Type storage) {
  OpBuilder &builder = *loaded.builder;
  if (storage.isInteger(1))
    return logicalNot(equal(loaded, loaded.constant(0)));
  if (!storage.isBF16())
    return loaded;
  Lanes wide = convert<arith::ExtUIOp>(loaded, builder.getI32Type());
  return convert<arith::BitcastOp>(apply<arith::ShLIOp>(wide, wide.constant(16)), builder.getF32Type());
}

Lanes toStorage(Lanes lanes, Type storage, bool hasBf16) {
  OpBuilder &builder = *lanes.builder;
  if (storage.isInteger(1))
    return convert<arith::ExtUIOp>(lanes, builder.getI8Type());
  if (!storage.isBF16())
    return lanes;
  if (hasBf16)
    return convert<arith::BitcastOp>(convert<arith::TruncFOp>(lanes, builder.getBF16Type()), builder.getI16Type());
  // Adds just under half of the last kept bit, and one more when that bit is odd; a NaN keeps its top bits and stays
  // quiet.
  Lanes bits = convert<arith::BitcastOp>(lanes, builder.getI32Type());
  Lanes odd = apply<arith::AndIOp>(apply<arith::ShRUIOp>(bits, bits.constant(16)), bits.constant(1));
  Lanes rounded = bits + odd + bits.constant(0x7fff);
  Lanes quiet = apply<arith::OrIOp>(bits, bits.constant(0x400000));
  Lanes high = apply<arith::ShRUIOp>(select(isNan(lanes), quiet, rounded), bits.constant(16));
  return convert<arith::TruncIOp>(high, builder.getI16Type());
}

} // namespace llmc
