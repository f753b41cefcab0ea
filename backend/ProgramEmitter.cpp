// Each kernel op describes its launch by names (ir/Interfaces.td); here the names are put in the order of Kernels.def.
// Ranges say how long each piece of the arena holds values: a result written over an operand continues the operand's
// range.
#include "backend/ProgramEmitter.h"
#include "backend/LaunchTraffic.h"
#include "backend/StateEmitter.h"
#include "ir/Views.h"

using namespace mlir;

namespace llmc {

static const KernelInfo *findKernel(StringRef name) {
  for (const KernelInfo &info : allKernels())
    if (name == info.name)
      return &info;
  return nullptr;
}

static std::optional<ProgramKind> programKind(StringRef name) {
  for (uint8_t number = 0; number < kNumProgramKinds; ++number)
    if (auto kind = static_cast<ProgramKind>(number); name == programKindName(kind))
      return kind;
  return std::nullopt;
}

/// The values of `byName` in the order of a row of Kernels.def; the names that it does not have.
template <typename T>
static std::string inOrder(StringRef names, const llvm::StringMap<T> &byName, std::vector<T> &values) {
  SmallVector<StringRef> words;
  names.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    values.push_back(byName.lookup(word));
  std::string unknown;
  for (const auto &entry : byName)
    if (!llvm::is_contained(words, entry.getKey()))
      unknown += (unknown.empty() ? "" : " ") + entry.getKey().str();
  return unknown;
}

namespace {

class ProgramEmitter {
public:
  ProgramEmitter(ProgramOp program, const DenseMap<Operation *, int64_t> &fusions) : op(program), fusions(fusions) {}

  FailureOr<Program> run() {
    std::optional<ProgramKind> kind = programKind(op.getKind());
    if (!kind)
      return op.emitOpError() << "kind \"" << op.getKind() << "\" is no program of a plan";
    program.kind = *kind;
    program.arenaBytes = op->getAttrOfType<IntegerAttr>("llmc.arena_bytes").getInt();
    program.arenaLowerBoundBytes = op->getAttrOfType<IntegerAttr>("llmc.lower_bound_bytes").getInt();
    findForward();
    for (Operation &launch : op.getBody().front())
      if (isLaunch(&launch) && failed(addLaunch(launch)))
        return failure();
    // Outputs in the arena stay till the end.
    for (Value output : op.getBody().front().getTerminator()->getOperands())
      if (auto range = rangeOf.find(rootOf(output)); range != rangeOf.end())
        program.values[range->second].lastLaunch = static_cast<uint32_t>(program.launches.size()) - 1;
    return std::move(program);
  }

private:
  LogicalResult addLaunch(Operation &source) {
    LaunchDescription description;
    cast<KernelOpInterface>(source).describeLaunch(description);
    const KernelInfo *info = findKernel(description.kernel);
    if (!info)
      return source.emitOpError() << "names kernel \"" << description.kernel
                                  << "\", which runtime/Kernels.def does not have";
    Launch launch;
    launch.kind = info->kind;
    launch.name = nodeNames(source.getLoc());
    if (launch.name.empty())
      launch.name = source.getName().stripDialect().str();
    for (Value operand : description.operands)
      launch.operands.push_back(operand ? bufferOf(operand) : BufferRef());
    if (auto fusion = fusions.find(&source); fusion != fusions.end())
      launch.entry = static_cast<int32_t>(fusion->second);
    std::string unknown =
        inOrder(info->ints, description.ints, launch.ints) + inOrder(info->floats, description.floats, launch.floats);
    if (!unknown.empty())
      return source.emitOpError() << "names arguments that runtime/Kernels.def does not have for \"" << info->name
                                  << "\": " << unknown;
    if (auto cost = dyn_cast<CostOpInterface>(source))
      launch.flops = cost.getFlops();
    launch.bytes = trafficBytes(launch);
    addRanges(source, description, launch);
    program.launches.push_back(std::move(launch));
    return success();
  }

  void addRanges(Operation &source, const LaunchDescription &description, const Launch &launch) {
    auto number = static_cast<uint32_t>(program.launches.size());
    for (Value operand : source.getOperands())
      if (auto range = rangeOf.find(rootOf(operand)); range != rangeOf.end())
        program.values[range->second].lastLaunch = number;
    for (OpResult result : source.getResults()) {
      BufferRef buffer = bufferOf(result);
      if (buffer.space != Space::arena)
        continue;
      std::optional<size_t> continued = rangeWrittenOver(source, result, buffer);
      if (!continued) {
        continued = program.values.size();
        std::string name =
            source.getNumResults() == 1 ? launch.name : launch.name + ":" + std::to_string(result.getResultNumber());
        program.values.push_back({name, categoryOf(result, description), buffer, number, number});
      }
      rangeOf[result] = *continued;
    }
  }

  /// What a value of the arena is for. What a kernel only needs while it runs, and what only hands a sum on to the next
  /// kernel, is workspace.
  std::string categoryOf(OpResult result, const LaunchDescription &description) {
    if (isWorkspace(result, description) || isPartialSum(result))
      return "workspace";
    return isForward.contains(result.getOwner()) ? "activations" : "gradients";
  }

  /// What is packed for a contraction, or what Kernels.def calls workspace.
  static bool isWorkspace(OpResult result, const LaunchDescription &description) {
    const KernelInfo *info = findKernel(description.kernel);
    if (info->kind == KernelKind::Pack)
      return true;
    SmallVector<StringRef> names;
    StringRef(info->operands).split(names, ' ', -1, /*KeepEmpty=*/false);
    for (auto [name, operand] : llvm::zip(names, description.operands))
      if (name == "workspace?" && operand == result)
        return true;
    return false;
  }

  /// A column reduction over several blocks of rows: another kernel sums the blocks (fusion_c2).
  static bool isPartialSum(OpResult result) {
    auto fusion = dyn_cast<FusionOp>(result.getOwner());
    if (!fusion || fusion.getNumRowBlocks() == 1)
      return false;
    Value yielded = fusion.getBody().front().getTerminator()->getOperand(result.getResultNumber());
    return fusion.isColumnReduction(yielded.getDefiningOp());
  }

  /// The range of the operand that a result replaces. A chain through llmc.empty starts with no range.
  std::optional<size_t> rangeWrittenOver(Operation &source, OpResult result, BufferRef buffer) {
    for (Value operand : source.getOperands()) {
      auto range = rangeOf.find(rootOf(operand));
      if (range != rangeOf.end() && program.values[range->second].buffer == buffer)
        return range->second;
    }
    return std::nullopt;
  }

  /// What the loss and the model's outputs are computed from is the forward pass.
  void findForward() {
    SmallVector<Value> open;
    for (auto [i, value] : llvm::enumerate(op.getBody().front().getTerminator()->getOperands()))
      if (auto role = op.getResultAttrOfType<StringAttr>(i, "llmc.role"); !role || role.getValue() != "grad_norm")
        open.push_back(value);
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *producer = value.getDefiningOp();
      // A collective brings each of its parts back: the loss is not computed from the gradients that travel with it.
      if (isa_and_nonnull<CollectiveOpInterface>(producer))
        open.push_back(producer->getOperand(cast<OpResult>(value).getResultNumber()));
      else if (producer && isForward.insert(producer).second)
        llvm::append_range(open, producer->getOperands());
    }
  }

  ProgramOp op;
  const DenseMap<Operation *, int64_t> &fusions;
  Program program;
  DenseMap<Value, size_t> rangeOf; ///< by root: index into program.values
  DenseSet<Operation *> isForward;
};

} // namespace

FailureOr<Program> emitProgram(ProgramOp program, const DenseMap<Operation *, int64_t> &fusions) {
  return ProgramEmitter(program, fusions).run();
}

} // namespace llmc
