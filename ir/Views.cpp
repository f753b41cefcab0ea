// Views by their interface; an op that may be one (slice) answers for each instance.
#include "ir/Views.h"

#include "ir/Dialect.h"

using namespace mlir;

namespace llmc {

bool isView(Operation *op) {
  auto view = dyn_cast_or_null<ViewOpInterface>(op);
  return view && view.isView();
}

bool isLaunch(Operation *op) { return isa<KernelOpInterface>(op) && !isView(op); }

Value rootOf(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

} // namespace llmc
