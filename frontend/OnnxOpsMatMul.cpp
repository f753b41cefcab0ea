// Contractions: MatMul of any ranks and Gemm, as matmuls of equal rank. A weight matrix times a batch of rows is one
// 2-D matmul.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// Both operands with the same leading dimensions; null operands when these do not broadcast.
static void broadcastBatch(OnnxNode &node, Value &a, Value &b) {
  FailureOr<SmallVector<int64_t>> batch = broadcastShapes(shapeOf(a).drop_back(2), shapeOf(b).drop_back(2));
  if (failed(batch)) {
    a = node.fail("batches of " + shapeText(shapeOf(a)) + " and " + shapeText(shapeOf(b)) + " do not broadcast");
    return;
  }
  auto whole = [&](Value value) {
    SmallVector<int64_t> shape(*batch);
    llvm::append_range(shape, shapeOf(value).take_back(2));
    return node.broadcastTo(value, shape);
  };
  a = whole(a);
  b = whole(b);
}

static LogicalResult importMatMul(OnnxNode &node) {
  Value a = node.input(0), b = node.input(1);
  if (!a || !b)
    return failure();
  int64_t rankA = rankOf(a), rankB = rankOf(b);
  if (rankA == 0 || rankB == 0)
    return node.error("expects vectors, matrices or batches of matrices");
  // A vector is a row on the left and a column on the right; that dimension goes at the end.
  if (rankA == 1)
    a = node.reshape(a, {1, shapeOf(a)[0]});
  if (rankB == 1)
    b = node.reshape(b, {shapeOf(b)[0], 1});
  SmallVector<int64_t> rows(shapeOf(a).drop_back());
  bool isFlat = rankOf(b) == 2;
  if (isFlat)
    a = node.reshape(a, {productOf(rows), shapeOf(a).back()});
  else
    broadcastBatch(node, a, b);
  Value y = node.matmul(a, b);
  if (!y)
    return failure();
  SmallVector<int64_t> shape(isFlat ? ArrayRef<int64_t>(rows) : shapeOf(y).drop_back());
  shape.push_back(shapeOf(y).back());
  if (rankB == 1)
    shape.pop_back();
  if (rankA == 1)
    shape.erase(shape.end() - (rankB == 1 ? 1 : 2));
  return node.set(node.reshape(y, shape));
}

static LogicalResult importGemm(OnnxNode &node) {
  Value a = node.input(0), b = node.input(1), c = node.optionalInput(2);
  if (!a || !b || (node.has(2) && !c))
    return failure();
  if (rankOf(a) != 2 || rankOf(b) != 2)
    return node.error("expects matrices");
  double alpha = node.attribute("alpha", 1.0), beta = node.attribute("beta", 1.0);
  bool transposeA = node.attribute("transA", int64_t(0)) != 0, transposeB = node.attribute("transB", int64_t(0)) != 0;
  int64_t n = shapeOf(b)[transposeB ? 0 : 1];
  bool isBias = c && alpha == 1 && beta == 1 && isFloat(c) && typeOf(c).getNumElements() == n &&
                (rankOf(c) == 0 || shapeOf(c).back() == n);
  Value y = node.matmul(a, b, isBias ? node.reshape(c, {n}) : Value(), transposeA, transposeB);
  if (alpha != 1)
    y = node.binary<MulOp>(y, node.scalar(alpha, node.f32()));
  if (!y || !c || isBias)
    return node.set(y);
  SmallVector<int64_t> shape(shapeOf(y));
  Value sum = node.binary<AddOp>(y, beta == 1 ? c : node.binary<MulOp>(c, node.scalar(beta, node.f32())));
  if (sum && shapeOf(sum) != ArrayRef<int64_t>(shape))
    return node.error("C " + shapeText(shapeOf(c)) + " does not broadcast to " + shapeText(shape));
  return node.set(sum);
}

static constexpr OnnxOp kOps[] = {
    {"MatMul", 1, kNewestOpset, importMatMul},
    {"Gemm", 7, kNewestOpset, importGemm},
};

ArrayRef<OnnxOp> onnxMatMulOps() { return kOps; }

} // namespace llmc
