// From cluster to fusion. Dimensions that every value has whole, or every value lacks, become one; the last dimension
// are the lanes.
#include "passes/FusionBuilder.h"
#include "passes/FusionBlocks.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace llmc {

namespace {
/// How a cluster's iteration space is collapsed.
class Collapse {
public:
  Collapse(const FusionNode &cluster, const FusibleOps &fusible) : fusible(fusible), space(cluster.space) {
    // groups[d]: the collapsed dimension of dimension d.
    groups.assign(space.size(), 0);
    for (size_t d = 1; d < space.size(); ++d)
      groups[d] = groups[d - 1] + (mustStayApart(cluster, d) ? 1 : 0);
    for (size_t d = 0; d < space.size(); ++d) {
      if (d == 0 || groups[d] != groups[d - 1])
        collapsed.push_back(1);
      collapsed.back() *= space[d];
    }
    if (collapsed.empty())
      collapsed.push_back(1);
  }

  ArrayRef<int64_t> shape() const { return collapsed; }
  int64_t originalRank() const { return space.size(); }
  int64_t dimension(int64_t d) const { return groups[d]; }

  /// A value's type in the body: each collapsed dimension full or 1.
  RankedTensorType typeOf(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(collapsed.size(), 1);
    size_t missing = space.size() - type.getRank();
    for (int64_t d = 0; d < type.getRank(); ++d)
      shape[groups.empty() ? 0 : groups[missing + d]] *= type.getDimSize(d);
    return RankedTensorType::get(shape, type.getElementType());
  }

private:
  /// Whether some value is whole in one of dimensions d-1 and d but not in the other.
  bool mustStayApart(const FusionNode &cluster, size_t d) const {
    auto isWhole = [&](RankedTensorType type, size_t at) {
      size_t missing = space.size() - type.getRank();
      return at >= missing && type.getDimSize(at - missing) == space[at];
    };
    // Dimensions of size one belong to either side.
    size_t previous = d;
    while (previous > 0 && space[--previous] == 1)
      ;
    auto differs = [&](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      return space[d] != 1 && space[previous] != 1 && isWhole(type, d) != isWhole(type, previous);
    };
    for (Operation *op : cluster.ops) {
      // Free operands are copied in with this shape, an iota counts along one dimension.
      if (llvm::any_of(op->getResults(), differs) || llvm::any_of(op->getOperands(), differs))
        return true;
      if (isRowReduction(op) && d == space.size() - 1)
        return true;
      if (isColumnReduction(op) && d == space.size() - 1)
        return true;
      if (readsIota(op))
        return true;
    }
    return false;
  }

  /// Whether an iota is copied in for `op`, itself or behind other free ops.
  bool readsIota(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return producer && fusible.isFree(producer) && (isa<IotaOp>(producer) || readsIota(producer));
    });
  }

  const FusibleOps &fusible;
  ArrayRef<int64_t> space;
  SmallVector<int64_t> groups, collapsed;
};

/// Copies a cluster's ops into the body of its fusion.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder builder, const Collapse &collapse) : builder(builder), collapse(collapse) {}

  void map(Value outside, Value inside) { mapping.map(outside, inside); }

  Value valueOf(Value outside) {
    if (Value inside = mapping.lookupOrNull(outside))
      return inside;
    // Not an input and not in the cluster: a free op, copied in.
    copy(outside.getDefiningOp());
    return mapping.lookup(outside);
  }

  void copy(Operation *op) {
    Location loc = op->getLoc();
    Value result = op->getResult(0);
    if (op->hasTrait<OpTrait::ConstantLike>()) {
      Value scalar = builder.create<ConstantOp>(loc, RankedTensorType::get({}, getElementTypeOrSelf(result.getType())),
                                                splatOf(result));
      return map(result, scalar);
    }
    if (isa<ReshapeOp>(op))
      return map(result, valueOf(op->getOperand(0)));
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(valueOf(operand));
    OperationState state(loc, op->getName(), operands, TypeRange{collapse.typeOf(result)}, op->getAttrs());
    if (auto iota = dyn_cast<IotaOp>(op))
      state.attributes.set("dim", builder.getI64IntegerAttr(collapse.dimension(iota.getDim() + missingDims(result))));
    if (isRowReduction(op))
      state.attributes.set("axes", builder.getDenseI64ArrayAttr({lastDim()}));
    if (isColumnReduction(op))
      state.attributes.set("axes", builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, lastDim()))));
    map(result, builder.create(state)->getResult(0));
  }

private:
  int64_t lastDim() const { return int64_t(collapse.shape().size()) - 1; }
  int64_t missingDims(Value value) const {
    return collapse.originalRank() - cast<RankedTensorType>(value.getType()).getRank();
  }
  static ElementsAttr splatOf(Value constant) {
    auto elements = cast<DenseElementsAttr>(cast<ConstantOp>(constant.getDefiningOp()).getValue());
    auto scalar = RankedTensorType::get({}, elements.getElementType());
    return cast<ElementsAttr>(elements.isSplat() ? elements.resizeSplat(scalar) : elements.reshape(scalar));
  }

  OpBuilder builder;
  const Collapse &collapse;
  IRMapping mapping;
};
} // namespace

/// Sums the (P, cols) partial sums of a column reduction.
static Value sumPartials(OpBuilder &builder, Location loc, Value partials, RankedTensorType type, bool isGpu) {
  auto partialType = cast<RankedTensorType>(partials.getType());
  auto [rowBlock, colBlock] = sumBlocks(partialType.getDimSize(0), partialType.getDimSize(1), isGpu);
  auto fusion = builder.create<FusionOp>(loc, TypeRange{type}, ValueRange{partials},
                                         builder.getDenseI64ArrayAttr(partialType.getShape()),
                                         builder.getI64IntegerAttr(rowBlock), builder.getI64IntegerAttr(colBlock));
  Block &body = fusion.getBody().emplaceBlock();
  Value argument = body.addArgument(partialType, loc);
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  Value sum = inside.create<ReduceSumOp>(loc, argument, inside.getDenseI64ArrayAttr({0}));
  inside.create<YieldOp>(loc, ValueRange{sum});
  return fusion.getResult(0);
}

FusionOp buildFusion(OpBuilder &builder, const FusionNode &cluster, const FusibleOps &fusible, bool isGpu) {
  Collapse collapse(cluster, fusible);
  DenseSet<Operation *> inside(cluster.ops.begin(), cluster.ops.end());
  llvm::SetVector<Value> inputs, outputs;
  std::function<void(Value)> addInput = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    if (producer && inside.contains(producer))
      return;
    if (producer && fusible.isFree(producer)) {
      for (Value operand : producer->getOperands())
        addInput(operand);
      return;
    }
    inputs.insert(value);
  };
  bool hasRowReduction = false, hasColumnReduction = false;
  SmallVector<Location> locations;
  for (Operation *op : cluster.ops) {
    for (Value operand : op->getOperands())
      addInput(operand);
    hasRowReduction |= isRowReduction(op);
    hasColumnReduction |= isColumnReduction(op);
    locations.push_back(op->getLoc());
    // A free op outside keeps its operands alive until it is erased; only real users make an output.
    Value result = op->getResult(0);
    std::function<bool(Value)> isUsedOutside = [&](Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) {
        if (inside.contains(user))
          return false;
        return fusible.isFree(user) ? isUsedOutside(user->getResult(0)) : true;
      });
    };
    if (isUsedOutside(result))
      outputs.insert(result);
  }

  int64_t cols = collapse.shape().back(), rows = 1;
  for (int64_t size : collapse.shape().drop_back())
    rows *= size;
  auto [rowBlock, colBlock] = chooseBlocks({rows, cols, hasRowReduction, hasColumnReduction}, isGpu);
  int64_t numRowBlocks = llvm::divideCeil(std::max<int64_t>(rows, 1), rowBlock);
  SmallVector<Type> types;
  for (Value output : outputs) {
    bool isPartial = isColumnReduction(output.getDefiningOp()) && numRowBlocks > 1;
    types.push_back(isPartial ? RankedTensorType::get({numRowBlocks, cols}, getElementTypeOrSelf(output.getType()))
                              : output.getType());
  }
  Location loc = builder.getFusedLoc(locations);
  auto fusion =
      builder.create<FusionOp>(loc, types, inputs.getArrayRef(), builder.getDenseI64ArrayAttr(collapse.shape()),
                               builder.getI64IntegerAttr(rowBlock), builder.getI64IntegerAttr(colBlock));
  Block &body = fusion.getBody().emplaceBlock();
  BodyBuilder bodyBuilder(OpBuilder::atBlockEnd(&body), collapse);
  for (Value input : inputs)
    bodyBuilder.map(input, body.addArgument(collapse.typeOf(input), input.getLoc()));
  for (Operation *op : cluster.ops)
    bodyBuilder.copy(op);
  SmallVector<Value> yielded;
  for (Value output : outputs)
    yielded.push_back(bodyBuilder.valueOf(output));
  OpBuilder::atBlockEnd(&body).create<YieldOp>(loc, yielded);

  for (auto [output, result] : llvm::zip_equal(outputs, fusion.getResults())) {
    Value replacement = result;
    if (result.getType() != output.getType())
      replacement = sumPartials(builder, output.getLoc(), result, cast<RankedTensorType>(output.getType()), isGpu);
    Value(output).replaceUsesWithIf(replacement, [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  }
  return fusion;
}

} // namespace llmc
