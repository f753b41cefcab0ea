// Views by their interface; an op that may be one (slice) answers for each instance.
#include "ir/Views.h"

#include "ir/Dialect.h"

using namespace mlir;

namespace llmc {

/// What dyn_cast finds. In builds with asserts that also composes the interface's name, each time, and passes that ask
/// for every value's root would spend most of their time on it.
template <typename Interface> static Interface interfaceOf(Operation *op) {
  auto *found = op->getName().getInterface<Interface>();
  return found ? Interface(op, found) : Interface();
}

bool isView(Operation *op) {
  if (!op)
    return false;
  auto view = interfaceOf<ViewOpInterface>(op);
  return view && view.isView();
}

bool isLaunch(Operation *op) { return interfaceOf<KernelOpInterface>(op) && !isView(op); }

Value rootOf(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

} // namespace llmc
