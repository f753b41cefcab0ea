// A fusion's kernel as text: what its code is made of, in order, with values numbered and dimensions reduced to full
// ('f') or one ('1'). And its name.
#include "backend/codegen/Codegen.h"
#include "backend/codegen/FusionStages.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llmc {

static void printForm(raw_ostream &out, Value value, ArrayRef<int64_t> space) {
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    out << (size == space[d] ? 'f' : '1');
  out << type.getElementType();
}

std::string kernelKey(const FusionStages &stages) {
  std::string text;
  llvm::raw_string_ostream out(text);
  DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) { return numbers.try_emplace(value, numbers.size()).first->second; };
  Block &body = stages.body();
  if (stages.isLinear())
    out << "linear";
  else
    llvm::interleave(stages.space, out, "x");
  if (!stages.isLinear() && !stages.hasWholeRows())
    out << " columns" << (stages.cols % 16 == 0 && stages.colBlock % 16 == 0 ? "/16" : "");
  if (llvm::any_of(stages.results, [](const FusionResult &result) { return result.partial.has_value(); }))
    out << " rowBlock " << stages.rowBlock;
  for (BlockArgument argument : body.getArguments()) {
    out << "\n" << number(argument) << " ";
    printForm(out, argument, stages.space);
  }
  for (Operation &op : body.without_terminator()) {
    out << "\n" << number(op.getResult(0)) << " " << op.getName();
    for (Value operand : op.getOperands())
      out << " " << number(operand);
    if (Attribute properties = op.getPropertiesAsAttribute())
      out << " " << properties;
    out << " ";
    printForm(out, op.getResult(0), stages.space);
  }
  out << "\nyield";
  for (Value value : body.getTerminator()->getOperands())
    out << " " << number(value);
  return text;
}

std::string describeKernel(const FusionStages &stages) {
  static constexpr size_t kLongest = 60;
  std::string name;
  for (Operation &op : stages.body().without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    std::string next = (name.empty() ? "" : "+") + op.getName().stripDialect().str();
    if (name.size() + next.size() > kLongest)
      return name + "+";
    name += next;
  }
  return name.empty() ? "copy" : name;
}

std::string kernelKey(FusionOp fusion) {
  FailureOr<FusionStages> stages = FusionStages::analyze(fusion);
  return failed(stages) ? std::string() : kernelKey(*stages);
}

} // namespace llmc
