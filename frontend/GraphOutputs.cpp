// The ends of the graph. Roles follow from use: tokens are what an embedding looks up, labels what a cross-entropy
// compares with.
#include "frontend/GraphOutputs.h"

#include "frontend/OnnxError.h"
#include "ir/LabelPath.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace llmc {

//===-- Outputs

/// Checks an output against what the file declares of it.
static LogicalResult checkDeclared(const GraphState &state, const GraphInputs &inputs,
                                   const onnx::ValueInfoProto &output, Value value) {
  MLIRContext *context = value.getContext();
  const onnx::TypeProto_Tensor &type = output.type().tensor_type();
  auto mismatch = [&](const Twine &declared, const Twine &computed) {
    return fileError(context, state.file.path) << "output " << inQuotes(output.name()) << " is declared as " << declared
                                               << ", the graph computes " << computed;
  };
  if (type.elem_type() != 0 && graphElementType(context, type.elem_type()) != elementOf(value))
    return mismatch(onnxTypeName(type.elem_type()), isFloat(value) ? "floats" : "integers");
  if (!type.has_shape())
    return success();
  if (type.shape().dim_size() != rankOf(value))
    return mismatch("a tensor of " + Twine(type.shape().dim_size()) + " dimensions", shapeText(shapeOf(value)));
  for (auto [place, size] : llvm::enumerate(shapeOf(value))) {
    const onnx::TensorShapeProto_Dimension &dim = type.shape().dim(int(place));
    auto bound = inputs.dims.find(dim.dim_param());
    bool isNamed = !dim.dim_param().empty() && bound != inputs.dims.end();
    if ((dim.has_dim_value() && dim.dim_value() != size) || (isNamed && bound->second != size))
      return mismatch(Twine(isNamed ? bound->second : dim.dim_value()) + " along dimension " + Twine(place),
                      shapeText(shapeOf(value)));
  }
  return success();
}

static FailureOr<SmallVector<GraphOutput>> declaredOutputs(GraphState &state, const GraphInputs &inputs) {
  MLIRContext *context = state.builder.getContext();
  SmallVector<GraphOutput> outputs;
  for (const onnx::ValueInfoProto &output : state.file.model.graph().output()) {
    auto found = state.values.find(output.name());
    if (found == state.values.end()) {
      auto reason = state.notImported.find(output.name());
      return LogicalResult(
          fileError(context, state.file.path)
          << "output " << inQuotes(output.name()) << " "
          << (reason != state.notImported.end() ? reason->second : std::string("is no tensor that a node gives")));
    }
    if (failed(checkDeclared(state, inputs, output, found->second)))
      return failure();
    if (output.name() == "grad_norm")
      return LogicalResult(fileError(context, state.file.path)
                           << "output 'grad_norm' has the name of what training adds: rename it in the model");
    outputs.push_back({output.name(), "", found->second});
  }
  if (outputs.empty())
    return LogicalResult(fileError(context, state.file.path) << "the graph has no outputs: there is nothing to train");
  return outputs;
}

static bool isScalarFloat(const GraphOutput &output) {
  return isFloat(output.value) && typeOf(output.value).getNumElements() == 1;
}

static std::string listOf(ArrayRef<GraphOutput> outputs) {
  std::string list;
  for (const GraphOutput &output : outputs)
    list += (list.empty() ? "" : ", ") + inQuotes(output.name);
  return list;
}

/// The output that is the loss: the one asked for, or the only scalar; null when there is none.
static FailureOr<GraphOutput *> findLoss(const GraphState &state, MutableArrayRef<GraphOutput> outputs,
                                         const ImportOptions &options) {
  MLIRContext *context = outputs.front().value.getContext();
  SmallVector<GraphOutput> scalars;
  GraphOutput *loss = nullptr;
  for (GraphOutput &output : outputs) {
    if (options.lossOutput.empty() ? isScalarFloat(output) : output.name == options.lossOutput)
      loss = loss ? loss : &output;
    if (isScalarFloat(output))
      scalars.push_back(output);
  }
  if (!options.lossOutput.empty() && !loss)
    return LogicalResult(fileError(context, state.file.path)
                         << "--loss " << inQuotes(options.lossOutput) << ": there is no such output; there are "
                         << listOf(outputs));
  if (loss && !isScalarFloat(*loss))
    return LogicalResult(fileError(context, state.file.path)
                         << "--loss " << inQuotes(loss->name) << ": a loss is one float, this output has shape "
                         << shapeText(shapeOf(loss->value)));
  if (options.lossOutput.empty() && scalars.size() > 1)
    return LogicalResult(fileError(context, state.file.path)
                         << "several outputs may be the loss: " << listOf(scalars) << "; choose by --loss");
  return loss;
}

/// Mean cross-entropy of logits (…, V) against a new input targets (…), position by position.
static FailureOr<GraphOutput> appendLoss(GraphState &state, GraphOutput &logits, ProgramOp program) {
  constexpr StringLiteral kTargets = "targets";
  constexpr int64_t kIgnored = -100;
  if (state.values.count(kTargets))
    return LogicalResult(fileError(program.getContext(), state.file.path)
                         << "the graph has no loss but already a value named '" << kTargets
                         << "', the name of the input that would be added");
  Location loc = NameLoc::get(state.builder.getStringAttr("loss"));
  Emitter emit(state.builder, loc, state.file.path + ": loss of output " + inQuotes(logits.name));
  ArrayRef<int64_t> shape = shapeOf(logits.value);
  int64_t rows = productOf(shape.drop_back());
  Value targets = program.getBody().front().addArgument(RankedTensorType::get(shape.drop_back(), emit.i64()), loc);
  Value scores = emit.reshape(logits.value, {rows, shape.back()}), labels = emit.reshape(targets, {rows});
  if (!scores || !labels)
    return failure();
  auto loss = state.builder.create<SoftmaxCrossEntropyOp>(
      loc, TypeRange{RankedTensorType::get({}, emit.f32()), RankedTensorType::get({rows, 1}, emit.f32())}, scores,
      labels, /*scale=*/Value(),
      /*mean=*/true, uint64_t(kIgnored));
  state.values[kTargets] = targets;
  return GraphOutput{"loss", "loss", loss.getLoss()};
}

FailureOr<SmallVector<GraphOutput>> findOutputs(GraphState &state, const GraphInputs &inputs,
                                                const ImportOptions &options, ProgramOp program) {
  MLIRContext *context = program.getContext();
  FailureOr<SmallVector<GraphOutput>> outputs = declaredOutputs(state, inputs);
  if (failed(outputs))
    return failure();
  FailureOr<GraphOutput *> loss = findLoss(state, *outputs, options);
  if (failed(loss))
    return failure();
  // The first float tensor of two or more dimensions: models that give more than logits give these first.
  auto logits = llvm::find_if(
      *outputs, [](const GraphOutput &output) { return isFloat(output.value) && rankOf(output.value) >= 2; });
  if (logits != outputs->end())
    logits->role = "logits";
  GraphOutput first;
  if (*loss) {
    first = {(*loss)->name, "loss", (*loss)->value};
    if (rankOf(first.value) > 0) {
      Emitter emit(state.builder, first.value.getLoc(), state.file.path + ": output " + inQuotes(first.name));
      first.value = emit.reshape(first.value, {});
    }
    outputs->erase(*loss);
  } else {
    if (logits == outputs->end())
      return LogicalResult(fileError(context, state.file.path) << "no output is a loss or logits: " << listOf(*outputs)
                                                               << "; there is nothing to differentiate");
    if (llvm::any_of(*outputs, [](const GraphOutput &output) { return output.name == "loss"; }))
      return LogicalResult(
          fileError(context, state.file.path)
          << "output 'loss' is no scalar, and the loss that would be added has this name: rename it in "
             "the model, or choose the loss by --loss");
    FailureOr<GraphOutput> appended = appendLoss(state, *logits, program);
    if (failed(appended))
      return failure();
    first = *appended;
  }
  outputs->insert(outputs->begin(), first);
  return outputs;
}

//===-- Roles of inputs

namespace {
/// Where ids come from: an input of the program, and whether they were shifted on the way.
struct Source {
  BlockArgument input;
  bool isShifted = false;
};
} // namespace

static Source sourceOf(Value ids) {
  Source source;
  llvm::DenseSet<Value> seen{ids};
  SmallVector<Value> open{ids};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      source.input = argument;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!isa<ReshapeOp, TransposeOp, BroadcastToOp, SliceOp, PlaceOp, CastOp, SelectOp>(op))
      continue;
    source.isShifted |= isa<SliceOp, PlaceOp>(op);
    for (Value operand : op->getOperands())
      if (!(isa<SelectOp>(op) && operand == op->getOperand(0)) && seen.insert(operand).second)
        open.push_back(operand);
  }
  return source;
}

static void setRole(ProgramOp program, BlockArgument input, StringRef role, int64_t vocabulary) {
  unsigned number = input.getArgNumber();
  OpBuilder builder(program);
  auto known = program.getArgAttrOfType<StringAttr>(number, "llmc.role");
  if (known && !known.getValue().empty() && known.getValue() != role)
    return;
  auto size = program.getArgAttrOfType<IntegerAttr>(number, "llmc.vocabulary");
  program.setArgAttr(number, "llmc.role", builder.getStringAttr(role));
  program.setArgAttr(number, "llmc.vocabulary",
                     builder.getI64IntegerAttr(size ? std::min(size.getInt(), vocabulary) : vocabulary));
}

LogicalResult setInputRoles(const ModelFile &file, const ImportOptions &options, ProgramOp program) {
  LogicalResult result = success();
  for (EmbeddingOp op : program.getBody().getOps<EmbeddingOp>()) {
    BlockArgument input = sourceOf(op.getIds()).input;
    if (!input || !isa<IntegerType>(elementOf(input)))
      continue;
    setRole(program, input, "tokens", shapeOf(op.getTable())[0]);
    const std::optional<int64_t> flags[] = {options.batch, options.seq};
    for (auto [place, flag] : llvm::enumerate(flags))
      if (flag && rankOf(input) > int64_t(place) && shapeOf(input)[place] != *flag) {
        auto name = program.getArgAttrOfType<StringAttr>(input.getArgNumber(), "llmc.name");
        result = fileError(program.getContext(), file.path)
                 << (place == 0 ? "--batch " : "--seq ") << *flag << ": input " << inQuotes(name.getValue())
                 << " has shape " << shapeText(shapeOf(input)) << " in the model";
      }
  }
  for (SoftmaxCrossEntropyOp op : program.getBody().getOps<SoftmaxCrossEntropyOp>()) {
    Source source = sourceOf(op.getLabels());
    if (!source.input)
      continue;
    std::optional<LabelPath> path = labelPathOf(op.getLabels(), int64_t(op.getIgnoreIndex()));
    // Another slice than by one token: which window of tokens the labels are is for the user to say.
    StringRef role = path && path->isShifted ? "labels_unshifted" : source.isShifted ? "" : "labels";
    setRole(program, source.input, role, shapeOf(op.getLogits()).back());
    program.setArgAttr(source.input.getArgNumber(), "llmc.ignore_index", op.getIgnoreIndexAttr());
  }
  return result;
}

} // namespace llmc
