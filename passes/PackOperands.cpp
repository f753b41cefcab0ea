// Layouts of what contractions read. oneDNN multiplies bf16 fastest by a rhs in blocks of 16 x 64 pairs and a lhs in
// rows; packing reads each element once, a product reads it many times.
#include "passes/Match.h"
#include "passes/Memory.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_PACKOPERANDS
#include "passes/Passes.h.inc"

/// Fewer rows than this read a packed rhs too seldom to pay for it, fewer columns leave its blocks empty.
static constexpr int64_t kLeastRows = 32, kLeastColumns = 49;

static bool isBf16(Value value) { return getElementTypeOrSelf(value.getType()).isBF16(); }

/// Why the operands stay as they are; "" when they are packed.
static StringRef whyNot(MatMulOp op) {
  RankedTensorType result = op.getResult().getType();
  if (!isBf16(op.getLhs()) || !isBf16(op.getRhs()))
    return "f32 gains nothing from it";
  if (result.getRank() != 2)
    return "it is a batch of products";
  if (result.getDimSize(0) < kLeastRows || result.getDimSize(1) < kLeastColumns)
    return "it is too small";
  return "";
}

namespace {
struct PackOperands : impl::PackOperandsBase<PackOperands> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      packed.clear();
      for (MatMulOp op : llvm::make_early_inc_range(program.getBody().front().getOps<MatMulOp>())) {
        if (StringRef reason = whyNot(op); !reason.empty()) {
          remarkOn(op) << "declined: packing the operands: " << reason;
          continue;
        }
        op.getRhsMutable().assign(pack(op, op.getRhs(), op.getTransposeRhs(), blocked()));
        op.setTransposeRhs(false);
        if (op.getTransposeLhs())
          op.getLhsMutable().assign(pack(op, op.getLhs(), true, Attribute()));
        op.setTransposeLhs(false);
        remarkOn(op) << "applied: reads rhs in blocks";
      }
      eraseDeadOps(program);
    }
  }

private:
  Attribute blocked() { return PackedAttr::get(&getContext(), PackedLayout::blocked16x64x2); }

  /// `value` in a layout (row-major without `encoding`), rounded from the parameter itself where it is a parameter's
  /// copy.
  Value pack(MatMulOp reader, Value value, bool transpose, Attribute encoding) {
    if (auto cast = value.getDefiningOp<CastOp>(); cast && isa_and_nonnull<GetOp>(rootOf(cast.getA()).getDefiningOp()))
      value = cast.getA();
    Value &known = packed[{value, transpose, encoding}];
    if (known)
      return known;
    auto from = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(from.getShape());
    if (transpose)
      std::swap(shape[0], shape[1]);
    OpBuilder builder(reader);
    auto type = RankedTensorType::get(shape, builder.getBF16Type(), encoding);
    return known = builder.create<PackOp>(reader.getLoc(), type, value, transpose);
  }

  DenseMap<std::tuple<Value, unsigned, Attribute>, Value> packed; ///< by source and layout
};
} // namespace
} // namespace llmc
