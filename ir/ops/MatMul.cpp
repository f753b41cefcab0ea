// Contractions. The sizes are read once, from the stored shapes and the transpose flags, into MatMulSizes; everything
// else follows.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

namespace {
/// y (batch, m, n) = op(lhs) (batch, m, k) op(rhs) (batch, k, n).
struct MatMulSizes {
  int64_t batch = 1, m, n, k;
  int64_t lhsColumns, rhsColumns; ///< as stored
};
} // namespace

static MatMulSizes sizesOf(MatMulOp op) {
  ArrayRef<int64_t> lhs = op.getLhs().getType().getShape(), rhs = op.getRhs().getType().getShape();
  MatMulSizes sizes;
  for (int64_t size : lhs.drop_back(2))
    sizes.batch *= size;
  auto [lhsRows, lhsColumns] = std::pair(lhs[lhs.size() - 2], lhs.back());
  sizes.m = op.getTransposeLhs() ? lhsColumns : lhsRows;
  sizes.k = op.getTransposeLhs() ? lhsRows : lhsColumns;
  sizes.n = op.getTransposeRhs() ? rhs[rhs.size() - 2] : rhs.back();
  sizes.lhsColumns = lhsColumns;
  sizes.rhsColumns = rhs.back();
  return sizes;
}

void MatMulOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs, bool transposeLhs,
                     bool transposeRhs) {
  build(builder, state, lhs, rhs, /*bias=*/Value(), /*init=*/Value(), transposeLhs, transposeRhs);
}

/// matmul_c1.
static bool haveMatrices(RankedTensorType lhs, RankedTensorType rhs) {
  return lhs.getRank() >= 2 && lhs.getRank() == rhs.getRank() &&
         lhs.getShape().drop_back(2) == rhs.getShape().drop_back(2);
}

LogicalResult MatMulOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType()),
       rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  if (!haveMatrices(lhs, rhs))
    return emitOptionalError(location, "lhs and rhs are no matrices, found ", lhs, " and ", rhs);
  SmallVector<int64_t> shape(lhs.getShape());
  int64_t rank = lhs.getRank();
  shape[rank - 2] = lhs.getDimSize(adaptor.getTransposeLhs() ? rank - 1 : rank - 2);
  shape[rank - 1] = rhs.getDimSize(adaptor.getTransposeRhs() ? rank - 2 : rank - 1);
  types.push_back(lhs.clone(shape));
  return success();
}

bool MatMulOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange stated) {
  if (inferred.size() != 1 || stated.size() != 1)
    return false;
  auto a = dyn_cast<RankedTensorType>(inferred[0]), b = dyn_cast<RankedTensorType>(stated[0]);
  return a && b && a.getShape() == b.getShape() && isa<FloatType>(b.getElementType());
}

LogicalResult MatMulOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  // matmul_c1
  if (!haveMatrices(lhs, rhs))
    return emitOpError() << "lhs and rhs must have one rank of two or more and the same leading dimensions, found "
                         << lhs << " and " << rhs;
  int64_t rank = lhs.getRank();
  int64_t lhsContracted = lhs.getDimSize(getTransposeLhs() ? rank - 2 : rank - 1);
  int64_t rhsContracted = rhs.getDimSize(getTransposeRhs() ? rank - 1 : rank - 2);
  // matmul_c2
  if (lhsContracted != rhsContracted)
    return emitOpError() << "contracted sizes must agree, found " << lhsContracted << " in lhs and " << rhsContracted
                         << " in rhs";
  // matmul_c3
  RankedTensorType result = getResult().getType();
  int64_t n = rhs.getDimSize(getTransposeRhs() ? rank - 2 : rank - 1);
  if (getBias() && getBias().getType().getShape() != ArrayRef(n))
    return emitOpError() << "bias must have shape (" << n << "), found " << getBias().getType();
  if (getInit() && getInit().getType() != result)
    return emitOpError() << "init must have the result's type " << result << ", found " << getInit().getType();
  // matmul_c4
  if (lhs.getEncoding() || result.getEncoding() || (rhs.getEncoding() && (rank != 2 || getTransposeRhs())))
    return emitOpError() << "only a rhs that is a matrix and not transposed may be packed, found " << lhs << " and "
                         << rhs;
  return success();
}

LogicalResult MatMulOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  MatMulSizes sizes = sizesOf(*this);
  auto [batch, m, n, k, lhsColumns, rhsColumns] = sizes;
  const std::vector<double> &lhs = operands[0].floats, &rhs = operands[1].floats;
  const HostTensor *bias = getBias() ? &operands[2] : nullptr;
  const HostTensor *init = getInit() ? &operands.back() : nullptr;
  HostTensor y = HostTensor::zeros(getResult().getType());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t at = (b * m + i) * n + j;
        double sum = (bias ? bias->floats[j] : 0) + (init ? init->floats[at] : 0);
        for (int64_t c = 0; c < k; ++c)
          sum += lhs[b * m * k + (getTransposeLhs() ? c * lhsColumns + i : i * lhsColumns + c)] *
                 rhs[b * k * n + (getTransposeRhs() ? j * rhsColumns + c : c * rhsColumns + j)];
        y.floats[at] = sum;
      }
  results.push_back(std::move(y));
  return success();
}

SmallVector<Value> MatMulOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  Value lhs = getLhs(), rhs = getRhs(), dy = resultGradients[0];
  auto multiply = [&](Value gradientOf, Value a, Value b, bool transposeA, bool transposeB) -> Value {
    return builder.create<MatMulOp>(getLoc(), gradientOf.getType(), a, b, Value(), Value(), transposeA, transposeB);
  };
  // With A = op(lhs), B = op(rhs): dA = dy B^T and dB = A^T dy; of a transposed operand the transpose of that, the
  // factors swapped.
  bool left = getTransposeLhs(), right = getTransposeRhs();
  SmallVector<Value> gradients;
  gradients.push_back(left ? multiply(lhs, rhs, dy, right, true) : multiply(lhs, dy, rhs, false, !right));
  gradients.push_back(right ? multiply(rhs, dy, lhs, true, left) : multiply(rhs, lhs, dy, !left, false));
  ExprScope scope{builder, getLoc()};
  if (getBias())
    gradients.push_back(asType(reduceSum(asRows(scope(dy)), {0}), getBias().getType()));
  if (getInit())
    gradients.push_back(dy);
  return gradients;
}

/// The factors; bias and init are added in f32.
PrecisionPolicy MatMulOp::getOperandPrecision(unsigned operand) {
  return operand < 2 ? PrecisionPolicy::bf16 : PrecisionPolicy::keepF32;
}

/// A running sum would be rounded at every addition.
PrecisionPolicy MatMulOp::getResultPrecision(unsigned) {
  return getInit() ? PrecisionPolicy::keepF32 : PrecisionPolicy::follow;
}

double MatMulOp::getFlops() {
  MatMulSizes sizes = sizesOf(*this);
  return 2.0 * double(sizes.batch) * double(sizes.m) * double(sizes.n) * double(sizes.k);
}

std::string MatMulOp::getShardingRule() {
  std::string batch;
  for (int64_t dim = 0; dim < getLhs().getType().getRank() - 2; ++dim)
    batch += char('a' + dim);
  std::string result = batch + "ij";
  std::string rule = batch + (getTransposeLhs() ? "ki" : "ik") + "," + batch + (getTransposeRhs() ? "jk" : "kj");
  if (getBias())
    rule += ",j";
  if (getInit())
    rule += "," + result;
  return rule + "->" + result;
}

/// rhsLayout's number in runtime/Kernels.def.
static int64_t layoutNumber(RankedTensorType type) {
  auto packed = dyn_cast_or_null<PackedAttr>(type.getEncoding());
  return packed ? int64_t(packed.getLayout()) : 0;
}

void MatMulOp::describeLaunch(LaunchDescription &launch) {
  MatMulSizes sizes = sizesOf(*this);
  launch.kernel = "matmul";
  launch.operands = {getLhs(), getRhs(), getBias(), getResult(), /*workspace=*/Value()};
  launch.ints = {{"batch", sizes.batch},
                 {"m", sizes.m},
                 {"n", sizes.n},
                 {"k", sizes.k},
                 {"transposeLhs", getTransposeLhs()},
                 {"transposeRhs", getTransposeRhs()},
                 {"ldLhs", sizes.lhsColumns},
                 {"ldRhs", sizes.rhsColumns},
                 {"ldDst", sizes.n},
                 {"lhsStride", sizes.m * sizes.k},
                 {"rhsStride", sizes.k * sizes.n},
                 {"dstStride", sizes.m * sizes.n},
                 {"lhsType", elementTypeNumber(getLhs().getType().getElementType())},
                 {"rhsType", elementTypeNumber(getRhs().getType().getElementType())},
                 {"dstType", elementTypeNumber(getResult().getType().getElementType())},
                 {"accumulate", getInit() != nullptr},
                 {"rhsLayout", layoutNumber(getRhs().getType())}};
}

int MatMulOp::getTiedOperand(unsigned) { return getInit() ? int(getNumOperands()) - 1 : -1; }

/// A transpose that swaps the last two dimensions and nothing else.
static TransposeOp definingMatrixTranspose(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose || transpose.getPermutation().size() < 2)
    return {};
  SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, transpose.getPermutation().size()));
  std::swap(swapped[swapped.size() - 2], swapped.back());
  return transpose.getPermutation() == ArrayRef(swapped) ? transpose : TransposeOp();
}

/// matmul(transpose(a), b) reads a with the flag turned, and so for b.
static LogicalResult absorbTranspose(MatMulOp op, PatternRewriter &rewriter) {
  TransposeOp lhs = definingMatrixTranspose(op.getLhs()), rhs = definingMatrixTranspose(op.getRhs());
  if (!lhs && !rhs)
    return rewriter.notifyMatchFailure(op, "no operand is a transpose of the last two dimensions");
  rewriter.modifyOpInPlace(op, [&] {
    if (lhs) {
      op.getLhsMutable().assign(lhs.getA());
      op.setTransposeLhs(!op.getTransposeLhs());
    }
    if (rhs) {
      op.getRhsMutable().assign(rhs.getA());
      op.setTransposeRhs(!op.getTransposeRhs());
    }
  });
  return success();
}

void MatMulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(absorbTranspose);
}

//===-- Packing

LogicalResult PackOp::verify() {
  RankedTensorType from = getA().getType(), to = getResult().getType();
  // pack_c1
  if (from.getRank() != 2 || from.getEncoding())
    return emitOpError() << "a must be a row-major matrix, found " << from;
  SmallVector<int64_t> shape(from.getShape());
  if (getTranspose())
    std::swap(shape[0], shape[1]);
  if (to.getShape() != ArrayRef(shape))
    return emitOpError() << "the result must have shape (" << shape << "), found " << to;
  // pack_c2
  auto packed = dyn_cast_or_null<PackedAttr>(to.getEncoding());
  if ((to.getEncoding() && !packed) ||
      (packed && (packed.getLayout() == PackedLayout::blocked16x64 ? !to.getElementType().isF32()
                                                                   : !to.getElementType().isBF16())))
    return emitOpError() << "no layout for this element type, found " << to;
  return success();
}

LogicalResult PackOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor y = HostTensor::zeros(getResult().getType());
  int64_t rows = y.type.getDimSize(0), columns = y.type.getDimSize(1);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      y.floats[i * columns + j] = operands[0].floats[getTranspose() ? j * rows + i : i * columns + j];
  results.push_back(std::move(y));
  return success();
}

void PackOp::describeLaunch(LaunchDescription &launch) {
  RankedTensorType to = getResult().getType();
  launch.kernel = "pack";
  launch.operands = {getA(), getResult()};
  launch.ints = {{"k", to.getDimSize(0)},
                 {"n", to.getDimSize(1)},
                 {"transpose", getTranspose()},
                 {"srcType", elementTypeNumber(getA().getType().getElementType())},
                 {"dstType", elementTypeNumber(to.getElementType())},
                 {"layout", layoutNumber(to)}};
}

} // namespace llmc
