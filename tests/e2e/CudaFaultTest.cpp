// Faults planted into a compiled plan for GPUs by editing it: each is caught on the simulated device, by a message that
// says where, or, where the program stays well-formed, by other weights after training than the plan as compiled gives.
#include "backend/cuda/ProgramOrder.h"
#include "tests/e2e/EditedPlan.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>

namespace llmc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// An argument of the first matmul, by its name in Kernels.def.
int64_t &matMulInt(Editable &edited, std::string_view name) {
  constexpr std::string_view names[] = {"batch",        "m",         "n",      "k",     "transposeLhs",
                                        "transposeRhs", "ldLhs",     "ldRhs",  "ldDst", "lhsStride",
                                        "rhsStride",    "dstStride", "lhsType"};
  return edited.first(KernelKind::MatMul).ints.at(static_cast<size_t>(std::ranges::find(names, name) - names));
}

/// Takes every barrier of a block out of the kernels.
void dropBarriers(Editable &edited) {
  for (size_t at; (at = edited.code.find("bar.sync")) != std::string::npos;)
    std::fill_n(edited.code.begin() + static_cast<int64_t>(at), edited.code.find(';', at) - at, ' ');
}

/// Takes a launch out; values that lived to the last one live to the one before.
bool removeLaunch(Program &program, size_t index) {
  program.launches.erase(program.launches.begin() + static_cast<int64_t>(index));
  auto last = static_cast<uint32_t>(program.launches.size() - 1);
  for (ValueRange &value : program.values) {
    value.firstLaunch = std::min(value.firstLaunch, last);
    value.lastLaunch = std::min(value.lastLaunch, last);
  }
  return true;
}

/// Moves the launch's first operand that can be moved to the place before it.
bool shiftOperand(Launch &launch) {
  for (BufferRef &operand : launch.operands)
    if (operand.offset >= 64 && operand.bytes > 64) {
      operand.offset -= 64;
      return true;
    }
  return false;
}

using Edit = std::function<void(Editable &)>;

/// A fault, and words of the message that must name it.
struct Planted {
  const char *what;
  Edit edit;
  std::vector<const char *> words;
};

std::string errorOf(const Edit &edit) {
  Editable edited = compiled();
  edit(edited);
  return train(edited).error;
}

TEST(CudaFault, thePlanAsCompiledRunsClean) {
  Outcome once = train(compiled()), again = train(compiled());
  EXPECT_EQ(once.error, "");
  EXPECT_EQ(once, again) << "a comparison of outcomes would say nothing";
}

void expectCaught(const std::vector<Planted> &faults) {
  for (const Planted &planted : faults) {
    SCOPED_TRACE(planted.what);
    std::string error = errorOf(planted.edit);
    EXPECT_NE(error, "") << "it runs as if nothing were wrong";
    for (const char *word : planted.words)
      EXPECT_THAT(error, HasSubstr(word));
  }
}

// What the plan's own check finds, when it is written or opened.
TEST(CudaFault, unsoundPlansAreRefused) {
  expectCaught(
      {{"an operand past the arena",
        [](Editable &e) { e.first(KernelKind::Generated).operands[0].offset += 1 << 30; },
        {"program step-fused: launch 1 (generated 'transformer.embedding'): operand 0", "exceed the arena of"}},
       {"an operand between two places",
        [](Editable &e) { e.first(KernelKind::Generated).operands[0].offset += 4; },
        {"is not a multiple of 64"}},
       {"an operand that is needed",
        [](Editable &e) { e.first(KernelKind::Embedding).operands[0] = {}; },
        {"launch 0 (embedding 'transformer.wte'): operand table is absent"}},
       {"an epilogue's workspace",
        [](Editable &e) { e.first(KernelKind::MatMul).operands.pop_back(); },
        {"has 4 operands, needs 5 (lhs rhs bias? dst workspace?)"}},
       {"no blocks",
        [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).gridX = 0; },
        {"code entry 'attention' is launched as 0 blocks of 128 threads"}},
       {"a block that no GPU has",
        [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).blockX = 2048; },
        {"blocks of 2048 threads"}},
       {"shared memory that no GPU has",
        [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).sharedBytes = 228 << 10; },
        {"with 233472 bytes of shared memory"}},
       {"no code",
        [](Editable &e) { e.first(KernelKind::Attention).entry = -1; },
        {"(attention 'transformer.h.0.attn.context'): code entry -1 of"}}});
}

// What the device finds when it makes the programs ready.
TEST(CudaFault, launchesThatTheirKernelsDoNotTakeAreRefused) {
  expectCaught({{"an operand less",
                 [](Editable &e) { e.first(KernelKind::Generated).operands.pop_back(); },
                 {"program step-fused: generated 'transformer.embedding': its kernel takes more than the 2 addresses"}},
                {"an operand more",
                 [](Editable &e) {
                   std::vector<BufferRef> &operands = e.first(KernelKind::Generated).operands;
                   operands.push_back(operands[0]);
                 },
                 {"its kernel does not take 4 addresses: parameter 3 is missing"}},
                {"a symbol that is nowhere",
                 [](Editable &e) { e.entryOf(e.first(KernelKind::Generated)).symbol = "nobody"; },
                 {"generated 'transformer.embedding': the plan's PTX has no kernel 'nobody'"}},
                {"another's kernel",
                 [](Editable &e) { e.first(KernelKind::Attention).entry = e.first(KernelKind::Embedding).entry; },
                 {"attention 'transformer.h.0.attn.context': its kernel does not take 5 addresses"}},
                {"a wrong leading dimension",
                 [](Editable &e) { matMulInt(e, "ldLhs") -= 1; },
                 {"matmul 'transformer.h.0.attn.c_attn': lhs has rows of 32 elements, 31 apart"}},
                {"more rows than there are",
                 [](Editable &e) { matMulInt(e, "m") *= 64; },
                 {"lhs holds 4096 bytes, element 65535 of f32 is outside"}},
                {"an unknown element type",
                 [](Editable &e) { matMulInt(e, "lhsType") = 77; },
                 {"the operands must both be f32"}},
                {"PTX that is none",
                 [](Editable &e) { e.code.replace(e.code.find("ld.global"), 9, "ld.gloxal"); },
                 {"CUDA_ERROR_INVALID_PTX (218)", "ld.gloxal", "unknown instruction"}}});
}

// What the GPU finds when the programs run.
TEST(CudaFault, kernelsThatGoAstrayAreNamed) {
  expectCaught({{"twice the blocks",
                 [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).gridX *= 2; },
                 {"CUDA_ERROR_LAUNCH_FAILED", "_attention: race in global memory at PTX line"}},
                {"blocks behind the end",
                 [](Editable &e) { e.entryOf(e.first(KernelKind::Generated)).gridX += 100000; },
                 {"CUDA_ERROR_ILLEGAL_ADDRESS", "k0_add: access out of bounds at PTX line"}},
                {"twice the threads",
                 [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).blockX *= 2; },
                 {"attention 'transformer.h.0.attn.context': launching: CUDA_ERROR_INVALID_VALUE"}},
                {"half the threads",
                 [](Editable &e) { e.entryOf(e.first(KernelKind::Attention)).blockX /= 2; },
                 {"attention 'transformer.h.0.attn.context': launching: CUDA_ERROR_INVALID_VALUE"}},
                {"no barriers", dropBarriers, {"CUDA_ERROR_LAUNCH_FAILED", "at PTX line", "block ("}}});
}

// Edits that leave the program well-formed: whatever launch they hit, other bits of losses, norms or weights come out.
TEST(CudaFault, noLaunchCanBeMissingOrReadElsewhere) {
  const Outcome good = train(compiled());
  size_t numMessages = 0, numLaunches = Editable(compiled()).step().launches.size();
  for (size_t i = 0; i < numLaunches; i += 3) {
    for (bool isRemoved : {true, false}) {
      Editable edited = compiled();
      if (!(isRemoved ? removeLaunch(edited.step(), i) : shiftOperand(edited.step().launches[i])))
        continue;
      Outcome outcome = train(edited);
      numMessages += outcome.error != "";
      const Program &step = edited.step();
      EXPECT_NE(outcome, good) << (isRemoved ? "removed " : "shifted ") << i << " of " << step.launches.size();
    }
  }
  fmt::print("{} launches: {} edits ended with a message\n", numLaunches, numMessages);
}

// The same launches on two streams, which wait for each other by events: nothing changes, and a missing wait is a race.
// The order is a little stricter than needed: it has a few waits between launches that only read what they share.
TEST(CudaFault, missingWaitsOfTwoStreamsAreRaces) {
  Editable edited = compiled();
  std::vector<Launch> &launches = edited.step().launches;
  for (size_t i = 0; i < launches.size(); ++i)
    launches[i].stream = i % 3 == 2 ? 1 : 0;
  const Outcome good = train(compiled());
  EXPECT_EQ(train(edited), good);
  size_t numWaits = 0, numTried = 0, numCaught = 0;
  for (const cuda::ProgramOrder::Step &step : cuda::orderOf(edited.step(), false).steps)
    numWaits += step.waits.size();
  CudasimConfig config = cuda::test::kPlainConfig;
  for (size_t wait = 0; wait < numWaits; wait += 2, ++numTried) {
    config.dropEventWait = 2 + wait; // the first one is the second stream's for the first
    Outcome outcome = train(edited, nullptr, config);
    numCaught += outcome.error != "";
    if (outcome != good) {
      EXPECT_THAT(outcome.error, AllOf(HasSubstr("race in global memory"), HasSubstr("not ordered")))
          << "wait " << wait;
    }
  }
  EXPECT_GE(numTried, 15U);
  EXPECT_GE(numCaught * 10, numTried * 9) << numCaught << " of " << numTried;
}

} // namespace
} // namespace llmc::test
