// A fusion is one generated kernel. Its rules keep the body inside what the emitters can walk: values of the iteration
// space's form, row reductions usable by later ops, column reductions only as results.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

namespace {
/// How a value lies in the iteration space.
enum class Reduces { none, row, column, other };
} // namespace

int64_t FusionOp::getRows() {
  int64_t rows = 1;
  for (int64_t size : getSpace().drop_back())
    rows *= size;
  return rows;
}

static bool isReduction(Operation *op) { return isa<ReduceSumOp, ReduceMaxOp>(op); }

/// Over which axes of the space an op of the body reduces.
static Reduces reduces(Operation *op, int64_t rank) {
  if (!op || !isReduction(op))
    return Reduces::none;
  ArrayRef<int64_t> axes = op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef();
  if (axes == ArrayRef(rank - 1))
    return Reduces::row;
  auto leading = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  return !leading.empty() && axes == ArrayRef(leading) ? Reduces::column : Reduces::other;
}

bool FusionOp::isColumnReduction(Operation *op) { return reduces(op, getSpace().size()) == Reduces::column; }

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===-- Rules

/// fusion_c1: of the space's rank, each dimension full or 1.
static LogicalResult verifyForm(FusionOp fusion, Operation *where, Value value) {
  ArrayRef<int64_t> space = fusion.getSpace(), shape = typeOf(value).getShape();
  bool fits = shape.size() == space.size();
  for (size_t d = 0; fits && d < space.size(); ++d)
    fits = shape[d] == space[d] || shape[d] == 1;
  if (!fits)
    return where->emitOpError() << "body values must have dimensions of the space (" << space << ") or 1, found "
                                << value.getType();
  return success();
}

static LogicalResult verifyInputs(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  if (body.getNumArguments() != fusion.getInputs().size())
    return fusion.emitOpError() << "the body must have one argument per input, " << fusion.getInputs().size()
                                << ", found " << body.getNumArguments();
  for (auto [i, input, argument] : llvm::enumerate(fusion.getInputs(), body.getArguments())) {
    if (failed(verifyForm(fusion, fusion, argument)))
      return failure();
    RankedTensorType outside = typeOf(input), inside = typeOf(argument);
    if (outside.getNumElements() != inside.getNumElements() || outside.getElementType() != inside.getElementType())
      return fusion.emitOpError() << "input " << i << " must have the elements of its argument " << inside << ", found "
                                  << outside;
  }
  return success();
}

static LogicalResult verifyBodyOp(FusionOp fusion, Operation &op) {
  int64_t rank = fusion.getSpace().size();
  if (op.hasTrait<OpTrait::ConstantLike>() && typeOf(op.getResult(0)).getRank() == 0)
    return success();
  // fusion_c1
  if (!op.hasTrait<OpTrait::ConstantLike>() && !isa<LaneOpInterface>(op) && !isReduction(&op))
    return op.emitOpError() << "a fusion holds elementwise ops, constants, reduce_sum and reduce_max only";
  if (failed(verifyForm(fusion, &op, op.getResult(0))))
    return failure();
  // fusion_c2
  switch (reduces(&op, rank)) {
  case Reduces::none:
    return success();
  case Reduces::other:
    return op.emitOpError() << "a fusion reduces over the last axis, or over all others";
  case Reduces::row:
    if (int64_t(fusion.getColBlock()) < fusion.getCols())
      return op.emitOpError() << "a row reduction needs whole rows, found colBlock " << fusion.getColBlock() << " of "
                              << fusion.getCols();
    return success();
  case Reduces::column:
    if (typeOf(op.getOperand(0)).getShape() != fusion.getSpace() ||
        !isa<FloatType>(typeOf(op.getOperand(0)).getElementType()))
      return op.emitOpError() << "a column reduction must be of floats over the whole space, found "
                              << op.getOperand(0).getType();
    for (Operation *user : op.getUsers())
      if (!isa<YieldOp>(user))
        return op.emitOpError() << "a column reduction may only be yielded: it is partial sums";
    return success();
  }
  llvm_unreachable("all cases return");
}

/// The number of elements that yielding a value writes; nothing for a value that cannot be yielded.
static std::optional<int64_t> yieldedElements(FusionOp fusion, Value value) {
  ArrayRef<int64_t> space = fusion.getSpace(), shape = typeOf(value).getShape();
  if (fusion.isColumnReduction(value.getDefiningOp()))
    return fusion.getNumRowBlocks() * fusion.getCols();
  if (shape == space)
    return typeOf(value).getNumElements();
  if (shape.size() == space.size() && shape.drop_back() == space.drop_back() && shape.back() == 1)
    return fusion.getRows();
  return std::nullopt;
}

static LogicalResult verifyYield(FusionOp fusion, YieldOp yield) {
  if (yield.getResults().size() != fusion.getOutputs().size())
    return yield.emitOpError() << "must yield one value per result, " << fusion.getOutputs().size() << ", found "
                               << yield.getResults().size();
  for (auto [i, value, output] : llvm::enumerate(yield.getResults(), fusion.getOutputs())) {
    // fusion_c3
    std::optional<int64_t> elements = yieldedElements(fusion, value);
    if (!elements)
      return yield.emitOpError() << "value " << i
                                 << " must have the whole space, (rows, 1) or be a column reduction, found "
                                 << value.getType();
    RankedTensorType outside = typeOf(output);
    if (*elements != outside.getNumElements() || typeOf(value).getElementType() != outside.getElementType())
      return fusion.emitOpError() << "result " << i << " must have " << *elements << " elements of "
                                  << typeOf(value).getElementType() << ", found " << outside;
  }
  return success();
}

LogicalResult FusionOp::verifyRegions() {
  if (getSpace().empty() || llvm::any_of(getSpace(), [](int64_t size) { return size < 1; }))
    return emitOpError() << "space must have positive dimensions, found (" << getSpace() << ")";
  if (int64_t(getRowBlock()) < 1 || int64_t(getColBlock()) < 1)
    return emitOpError() << "rowBlock and colBlock must be positive, found " << int64_t(getRowBlock()) << " and "
                         << int64_t(getColBlock());
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError() << "the body must end in llmc.yield";
  if (failed(verifyInputs(*this)))
    return failure();
  for (Operation &op : getBody().front().without_terminator())
    if (failed(verifyBodyOp(*this, op)))
      return failure();
  return verifyYield(*this, yield);
}

//===-- On the host

/// The partial results of a column reduction, (P, cols): each over rowBlock rows.
static HostTensor partialsOnHost(FusionOp fusion, Operation *op, const HostTensor &operand, RankedTensorType type) {
  int64_t cols = fusion.getCols(), rowBlock = fusion.getRowBlock();
  HostTensor partials = HostTensor::zeros(type);
  for (int64_t i = 0; i < operand.size(); ++i) {
    int64_t row = i / cols, at = row / rowBlock * cols + i % cols;
    double value = operand.floats[i];
    if (isa<ReduceMaxOp>(op))
      partials.floats[at] = row % rowBlock == 0 ? value : max(partials.floats[at], value);
    else
      partials.floats[at] += value;
  }
  return partials;
}

LogicalResult FusionOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  Block &body = getBody().front();
  DenseMap<Value, HostTensor> values;
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), operands)) {
    values[argument] = operand;
    values[argument].type = typeOf(argument);
  }
  for (Operation &op : body.without_terminator()) {
    SmallVector<HostTensor> inputs, computed;
    for (Value operand : op.getOperands())
      inputs.push_back(values.at(operand));
    if (failed(cast<EvaluableOpInterface>(op).evaluate(inputs, computed)))
      return failure();
    values[op.getResult(0)] = std::move(computed[0]);
  }
  for (auto [value, output] : llvm::zip_equal(body.getTerminator()->getOperands(), getOutputs())) {
    HostTensor result = values.at(value);
    Operation *op = value.getDefiningOp();
    if (isColumnReduction(op))
      result = partialsOnHost(*this, op, values.at(op->getOperand(0)), typeOf(output));
    result.type = typeOf(output);
    results.push_back(std::move(result));
  }
  return success();
}

//===-- Launch and cost

double FusionOp::getFlops() {
  double flops = 0;
  for (Operation &op : getBody().front().without_terminator())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      flops += cost.getFlops();
  return flops;
}

void FusionOp::describeLaunch(LaunchDescription &launch) {
  launch.kernel = "generated";
  llvm::append_range(launch.operands, getInputs());
  llvm::append_range(launch.operands, getOutputs());
  launch.ints = {{"rows", getRows()},
                 {"cols", getCols()},
                 {"rowBlock", int64_t(getRowBlock())},
                 {"colBlock", int64_t(getColBlock())}};
}

// Results of the whole space are stored in the last stage, each element after its operands' elements were loaded. So a
// buffer can be shared when operand and result both have the whole space, and nothing else reads that operand in
// another form.
bool FusionOp::canShareBuffer(unsigned operand, unsigned result) {
  Block &body = getBody().front();
  Value yielded = body.getTerminator()->getOperand(result);
  auto full = RankedTensorType::get(getSpace(), typeOf(getInputs()[operand]).getElementType());
  if (yielded.getType() != full || isColumnReduction(yielded.getDefiningOp()))
    return false;
  for (auto [input, argument] : llvm::zip_equal(getInputs(), body.getArguments()))
    if (input == getInputs()[operand] && argument.getType() != full)
      return false;
  return true;
}

} // namespace llmc
