// Layouts of what contractions read. oneDNN multiplies bf16 fastest by a rhs in blocks of 16 x 64 pairs and a lhs in
// rows; packing reads each element once, a product reads it many times. Sums over chunks of rows that are all there
// when the first is added become one product: the chunks are copied once, where the sum was read and written for each.
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

/// Whether a sum over the rows of both operands can take part in a longer one.
static bool sumsOverRows(MatMulOp op) {
  return op && op.getTransposeLhs() && !op.getTransposeRhs() && whyNot(op).empty();
}

/// The products that add up to `last`, from first to last, when it is worth making them one: `last` is a sum that its
/// reader goes on from, so chunk-loss let it wait for that.
static SmallVector<MatMulOp> chunksOf(MatMulOp last) {
  SmallVector<MatMulOp> chunks = {last};
  Value sum = last.getResult();
  if (!sumsOverRows(last) || !sum.hasOneUse() || llvm::none_of(sum.user_begin()->getResults(), [&](OpResult result) {
        return tiedOperand(result) == &*sum.use_begin();
      }))
    return chunks;
  while (Value init = chunks.back().getInit()) {
    auto before = init.getDefiningOp<MatMulOp>();
    if (!sumsOverRows(before) || !init.hasOneUse())
      break;
    chunks.push_back(before);
  }
  return {chunks.rbegin(), chunks.rend()};
}

namespace {
struct PackOperands : impl::PackOperandsBase<PackOperands> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      packed.clear();
      merged.clear();
      SmallVector<MatMulOp> ops(program.getBody().front().getOps<MatMulOp>());
      for (MatMulOp op : llvm::reverse(ops))
        if (SmallVector<MatMulOp> chunks = chunksOf(op); chunks.size() > 1)
          makeOne(chunks);
      for (MatMulOp op : ops) {
        if (merged.contains(op))
          continue;
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

  /// One product over the rows of all chunks, in the last one's place.
  void makeOne(ArrayRef<MatMulOp> chunks) {
    MatMulOp first = chunks.front(), last = chunks.back();
    SmallVector<Value> lhs, rhs;
    for (MatMulOp chunk : chunks) {
      merged.insert(chunk);
      lhs.push_back(chunk.getLhs());
      rhs.push_back(chunk.getRhs());
    }
    OpBuilder builder(last);
    Value allLhs = pack(last, stack(builder, lhs), true, Attribute()),
          allRhs = pack(last, stack(builder, rhs), false, blocked());
    auto sum = builder.create<MatMulOp>(last.getLoc(), last.getResult().getType(), allLhs, allRhs, first.getBias(),
                                        first.getInit(), false, false);
    last.getResult().replaceAllUsesWith(sum.getResult());
    remarkOn(sum) << "applied: one product for the sum of " << chunks.size();
  }

  /// The rows of all parts.
  static Value stack(OpBuilder &builder, ArrayRef<Value> parts) {
    SmallVector<int64_t> starts, steps(2 * parts.size(), 1);
    auto type = cast<RankedTensorType>(parts[0].getType());
    int64_t rows = 0;
    for (Value part : parts) {
      llvm::append_range(starts, ArrayRef<int64_t>{rows, 0});
      rows += cast<RankedTensorType>(part.getType()).getDimSize(0);
    }
    return builder.create<PlaceOp>(
        parts[0].getLoc(), RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType()), parts,
        builder.getDenseI64ArrayAttr(starts), builder.getDenseI64ArrayAttr(steps), builder.getF64FloatAttr(0));
  }

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
  DenseSet<Operation *> merged;                                   ///< products that are part of another now
};
} // namespace
} // namespace llmc
