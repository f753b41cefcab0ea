// Program results, together with their attributes.
#include "passes/ProgramResults.h"

using namespace mlir;

namespace llmc {

ProgramResults ProgramResults::of(ProgramOp program) {
  ProgramResults results;
  for (auto [i, value] : llvm::enumerate(program.getBody().front().getTerminator()->getOperands())) {
    DictionaryAttr attributes = program.getResultAttrDict(i);
    results.add(value, attributes ? attributes : DictionaryAttr::get(program.getContext()));
  }
  return results;
}

void ProgramResults::setOn(ProgramOp program) const {
  program.getBody().front().getTerminator()->setOperands(values);
  program.setFunctionType(
      FunctionType::get(program.getContext(), program.getArgumentTypes(), TypeRange(ValueRange(values))));
  program.setAllResultAttrs(attributes);
}

void ProgramResults::add(Value value, DictionaryAttr dictionary) {
  values.push_back(value);
  attributes.push_back(dictionary);
}

std::optional<unsigned> lossResult(ProgramOp program) {
  for (unsigned i = 0; i < program.getNumResults(); ++i)
    if (auto role = program.getResultAttrOfType<StringAttr>(i, "llmc.role"); role && role == "loss")
      return i;
  return std::nullopt;
}

} // namespace llmc
