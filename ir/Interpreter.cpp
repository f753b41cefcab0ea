// The host interpreter: one walk, values in a map. Elements that llmc.empty leaves undefined are NaN, so that reading
// one shows.
#include "ir/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {

static HostTensor undefinedTensor(RankedTensorType type) {
  HostTensor tensor = HostTensor::zeros(type);
  std::fill(tensor.floats.begin(), tensor.floats.end(), std::numeric_limits<double>::quiet_NaN());
  return tensor;
}

LogicalResult Interpreter::evaluate(Operation &op, SmallVectorImpl<HostTensor> &results) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](GetOp get) -> LogicalResult {
        auto found = variables.find(get.getVariable());
        if (found == variables.end())
          return get.emitOpError("has no value to read");
        results.push_back(found->second);
        return success();
      })
      .Case([&](SetOp set) -> LogicalResult {
        variables[set.getVariable()] = at(set.getValue());
        return success();
      })
      .Case([&](ScalarOp scalar) -> LogicalResult {
        auto found = scalars.find(scalar.getName());
        if (found == scalars.end())
          return scalar.emitOpError("has no value to read");
        HostTensor tensor = HostTensor::zeros(scalar.getResult().getType());
        tensor.floats.assign(tensor.floats.size(), found->second);
        tensor.integers.assign(tensor.integers.size(), int64_t(found->second));
        results.push_back(std::move(tensor));
        return success();
      })
      .Case([&](EmptyOp empty) -> LogicalResult {
        results.push_back(undefinedTensor(empty.getResult().getType()));
        return success();
      })
      .Case([&](EvaluableOpInterface evaluable) -> LogicalResult {
        SmallVector<HostTensor> operands;
        for (Value operand : op.getOperands())
          operands.push_back(at(operand));
        if (failed(evaluable.evaluate(operands, results)))
          return op.emitOpError("is not defined for these values");
        return success();
      })
      .Default([](Operation *other) -> LogicalResult { return other->emitOpError("cannot be evaluated on the host"); });
}

LogicalResult Interpreter::run(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    SmallVector<HostTensor> results;
    if (failed(evaluate(op, results)))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results))
      values[value] = std::move(tensor);
  }
  return success();
}

FailureOr<SmallVector<HostTensor>> Interpreter::run(ProgramOp program, ArrayRef<HostTensor> arguments) {
  Block &body = program.getBody().front();
  for (auto [argument, tensor] : llvm::zip_equal(body.getArguments(), arguments))
    bind(argument, tensor);
  if (failed(run(body)))
    return failure();
  SmallVector<HostTensor> results;
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(at(result));
  return results;
}

} // namespace llmc
