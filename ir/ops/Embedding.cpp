// Rows of a table picked by ids: a gather, and its gradient, a sum in order of position.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

/// Elements of one row of a table (V, C…).
static int64_t tableRowSize(RankedTensorType table) {
  int64_t size = 1;
  for (int64_t dim : table.getShape().drop_front())
    size *= dim;
  return size;
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto table = dyn_cast<RankedTensorType>(adaptor.getTable().getType()),
       ids = dyn_cast<RankedTensorType>(adaptor.getIds().getType());
  // embedding_c1
  if (!table || !ids || table.getRank() == 0)
    return emitOptionalError(location, "table must have a first dimension to pick from, found ",
                             adaptor.getTable().getType());
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  types.push_back(table.clone(shape));
  return success();
}

OpFoldResult EmbeddingOp::fold(FoldAdaptor adaptor) { return foldByEvaluation(getOperation(), adaptor.getOperands()); }

LogicalResult EmbeddingOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &table = operands[0], &ids = operands[1];
  HostTensor y = HostTensor::zeros(getResult().getType());
  int64_t row = tableRowSize(table.type);
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t id = ids.integers[i];
    if (id < 0 || id >= table.type.getDimSize(0))
      return failure();
    for (int64_t c = 0; c < row; ++c)
      if (y.isFloat())
        y.floats[i * row + c] = table.floats[id * row + c];
      else
        y.integers[i * row + c] = table.integers[id * row + c];
  }
  results.push_back(std::move(y));
  return success();
}

SmallVector<Value> EmbeddingOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  Value dTable =
      builder.create<EmbeddingGradOp>(getLoc(), getTable().getType(), getIds(), resultGradients[0], /*init=*/Value());
  return {dTable, Value()};
}

double EmbeddingOp::getFlops() { return 0; }

void EmbeddingOp::describeLaunch(LaunchDescription &launch) {
  RankedTensorType table = getTable().getType();
  launch.kernel = "embedding";
  launch.operands = {getTable(), getIds(), getResult()};
  launch.ints = {{"n", getIds().getType().getNumElements()},
                 {"v", table.getDimSize(0)},
                 {"c", tableRowSize(table)},
                 {"tableType", elementTypeNumber(table.getElementType())},
                 {"dstType", elementTypeNumber(getResult().getType().getElementType())}};
}

//===-- embedding_grad

LogicalResult EmbeddingGradOp::verify() {
  // embedding_grad_c1
  RankedTensorType dTable = getDTable().getType();
  if (dTable.getRank() == 0)
    return emitOpError() << "dTable must have a first dimension, found " << dTable;
  SmallVector<int64_t> expected(getIds().getType().getShape());
  llvm::append_range(expected, dTable.getShape().drop_front());
  if (getDOut().getType().getShape() != ArrayRef(expected))
    return emitOpError() << "dOut must have the shape of ids followed by the table's row, (" << expected << "), found "
                         << getDOut().getType();
  if (getInit() && getInit().getType() != dTable)
    return emitOpError() << "init must have the result's type " << dTable << ", found " << getInit().getType();
  return success();
}

LogicalResult EmbeddingGradOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &ids = operands[0], &dOut = operands[1];
  HostTensor dTable = getInit() ? operands[2] : HostTensor::zeros(getDTable().getType());
  int64_t row = tableRowSize(dTable.type);
  for (int64_t i = 0; i < ids.size(); ++i) {
    int64_t id = ids.integers[i];
    if (id < 0 || id >= dTable.type.getDimSize(0))
      return failure();
    for (int64_t c = 0; c < row; ++c)
      dTable.floats[id * row + c] += dOut.floats[i * row + c];
  }
  results.push_back(std::move(dTable));
  return success();
}

double EmbeddingGradOp::getFlops() { return double(getDOut().getType().getNumElements()); }

void EmbeddingGradOp::describeLaunch(LaunchDescription &launch) {
  RankedTensorType dTable = getDTable().getType();
  launch.kernel = "embedding_grad";
  launch.operands = {getIds(), getDOut(), getDTable()};
  launch.ints = {{"n", getIds().getType().getNumElements()},
                 {"v", dTable.getDimSize(0)},
                 {"c", tableRowSize(dTable)},
                 {"dOutType", elementTypeNumber(getDOut().getType().getElementType())},
                 {"dTableType", elementTypeNumber(dTable.getElementType())},
                 {"accumulate", getInit() != nullptr}};
}

int EmbeddingGradOp::getTiedOperand(unsigned) { return getInit() ? 2 : -1; }

} // namespace llmc
