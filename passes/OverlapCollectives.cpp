// Says of each wait that other launches may come before it. Where it then goes is the schedule's affair; a pass of its
// own, so that what the overlap is worth can be measured by leaving it out.
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {
struct OverlapCollectives : impl::OverlapCollectivesBase<OverlapCollectives> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      unsigned numWaits = 0;
      for (auto collective : program.getBody().front().getOps<CollectiveOpInterface>())
        if (!collective.isStart()) {
          collective->setAttr("llmc.deferred", UnitAttr::get(&getContext()));
          ++numWaits;
        }
      if (numWaits > 0)
        remarkOn(program) << "applied: " << numWaits << " messages may travel while other launches run";
    }
  }
};
} // namespace
} // namespace llmc
