// Collectives as ops. Start and wait share everything but the kernel they name: value semantics, with each result tied
// to its operand's buffer, is what keeps other ops away from memory that the network writes.
#include "ir/Dialect.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llmc {

LogicalResult verifyCollective(Operation *op, int64_t position) {
  // all_reduce_c1
  if (op->getNumOperands() == 0)
    return op->emitOpError() << "needs at least one part";
  Type first = getElementTypeOrSelf(op->getOperand(0).getType());
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (getElementTypeOrSelf(type) != first)
      return op->emitOpError() << "parts must have one element type, " << first << ", found " << type << " as part "
                               << i;
  // all_reduce_c2
  if (position < 0)
    return op->emitOpError() << "position must not be negative, found " << position;
  return success();
}

static int64_t numElements(ValueRange parts) {
  int64_t elements = 0;
  for (Value part : parts)
    elements += cast<RankedTensorType>(part.getType()).getNumElements();
  return elements;
}

/// Elementwise: "ab,c->ab,c". A partial sum may not pass: what is not complete cannot be summed over ranks.
std::string collectiveShardingRule(ValueRange parts) {
  SmallVector<std::string> terms;
  char letter = 'a';
  for (Value part : parts) {
    std::string &term = terms.emplace_back();
    for (int64_t dim = 0; dim < cast<RankedTensorType>(part.getType()).getRank(); ++dim)
      term += letter++;
  }
  return llvm::join(terms, ",") + "->" + llvm::join(terms, ",");
}

/// The kernel works in place: its operands are the results, and with them the parts.
static void describeCollective(Operation *op, StringRef kernel, int64_t position, LaunchDescription &launch) {
  launch.kernel = kernel;
  llvm::append_range(launch.operands, op->getResults());
  launch.ints = {{"position", position}, {"type", elementTypeNumber(getElementTypeOrSelf(op->getResult(0).getType()))}};
}

double AllReduceStartOp::getFlops() { return double(numElements(getParts())); }
double AllReduceWaitOp::getFlops() { return 0; }

bool AllReduceStartOp::isStart() { return true; }
bool AllReduceWaitOp::isStart() { return false; }

void AllReduceStartOp::describeLaunch(LaunchDescription &launch) {
  describeCollective(*this, "all_reduce_start", getPosition(), launch);
}
void AllReduceWaitOp::describeLaunch(LaunchDescription &launch) {
  describeCollective(*this, "all_reduce_wait", getPosition(), launch);
}

} // namespace llmc
