// Sessions that share their steps with other ranks: what they agree on before and after a step. The device is the fake
// one, so the numbers are those of its one formula; ranks are threads.
#include "runtime/Session.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/ThreadRanks.h"
#include "tests/runtime/TinyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RankSessionTest : public ::testing::Test {
protected:
  void write(const std::string &name) { ASSERT_TRUE(writePlan(folder.path(name), tiny.plan, tiny.payload())); }

  /// Opens a session of a rank on its own device and hands it to the body.
  Status onRank(CommApi &comm, const std::string &plan, SessionOptions options,
                const std::function<Status(Session &, const InputMap &)> &body) {
    Result<PlanFile> file = PlanFile::open(folder.path(plan));
    LLMC_RETURN_IF_ERROR(file);
    Result<InputMap> map = mapInputs(file->plan(), {});
    LLMC_RETURN_IF_ERROR(map);
    FakeDevice device(logs[static_cast<size_t>(comm.rank())]);
    options.comm = &comm;
    Result<std::unique_ptr<Session>> session = Session::open(*file, device, options);
    LLMC_RETURN_IF_ERROR(session);
    return body(**session, *map);
  }

  static Batch batch(const InputMap &map, int64_t label, int64_t numLabels) {
    Batch made = makeBatch(map);
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_TRUE(
          storeId(made.inputs[1], ElementType::i64, static_cast<uint64_t>(i), i < numLabels ? label : int64_t(-1)));
    made.numTokens = 6;
    made.numLabels = countLabels(map, made);
    return made;
  }

  TestFolder folder;
  TinyPlan tiny;
  std::array<FakeDevice::Log, 3> logs;
};

TEST_F(RankSessionTest, PickTheProgramsWithCollectives) {
  write("tiny.plan");
  struct Case {
    SessionOptions options;
    const char *programs;
  };
  const Case cases[] = {{{.clips = false}, "step-fused-ranks"},
                        {{.clips = true}, "step-ranks"},
                        {{.microBatches = 2}, "accumulate + update-ranks"},
                        {{.trains = false, .needsForward = true}, "forward"}};
  for (const Case &wanted : cases) {
    ThreadRanks ranks(2);
    Status status = ranks.run([&](int rank) {
      return onRank(ranks.of(rank), "tiny.plan", wanted.options, [&](Session &session, const InputMap &) {
        EXPECT_EQ(session.programs(), wanted.programs);
        return Status();
      });
    });
    EXPECT_TRUE(status) << status.error().message;
  }
}

TEST_F(RankSessionTest, NameTheProgramThatAPlanForOneRankLacks) {
  std::erase_if(tiny.plan.targets[0].programs, [](const Program &p) { return p.kind >= ProgramKind::stepFusedRanks; });
  write("tiny.plan");
  ThreadRanks ranks(2);
  Status status = ranks.run([&](int rank) {
    return onRank(ranks.of(rank), "tiny.plan", {}, [](Session &, const InputMap &) { return Status(); });
  });
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("the plan has no program 'update-ranks' for fake none"));
}

TEST_F(RankSessionTest, DivideByTheLabelsOfAll) {
  write("tiny.plan");
  ThreadRanks ranks(3);
  // Two micro-batches a rank; rank 1 has no label at all.
  Status status = ranks.run([&](int rank) {
    return onRank(ranks.of(rank), "tiny.plan", {.microBatches = 2},
                  [&](Session &session, const InputMap &map) -> Status {
                    int64_t numLabels = rank == 1 ? 0 : rank + 1;
                    std::vector<Batch> batches = {batch(map, 4, numLabels), batch(map, 2, numLabels)};
                    for (int64_t number : {1, 2}) {
                      Result<StepResult> result = session.step(batches, number, {});
                      LLMC_RETURN_IF_ERROR(result);
                      // 1 and 3 labels in each of two micro-batches: 8, of which half are 4 and half are 2.
                      EXPECT_FLOAT_EQ(static_cast<float>(result->loss), 3.0f);
                      EXPECT_EQ(result->tokens, 36);
                      EXPECT_EQ(result->comm.exposedMs, 2) << "labels before, the loss after";
                    }
                    return Status();
                  });
  });
  ASSERT_TRUE(status) << status.error().message;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<FakeRun> &runs = logs[static_cast<size_t>(rank)].runs;
    ASSERT_EQ(runs.size(), 6u);
    EXPECT_EQ(runs[0].scalar("loss_scale"), 0.125f);
    // Micro-batches are numbered as they are dealt: over the ranks, then on.
    std::vector<uint32_t> steps;
    for (const FakeRun &run : runs)
      if (run.kind == ProgramKind::accumulate)
        steps.push_back(run.scalars.at("step"));
    auto r = static_cast<uint32_t>(rank);
    EXPECT_THAT(steps, ElementsAre(1 + r, 4 + r, 7 + r, 10 + r));
  }
}

TEST_F(RankSessionTest, RefuseAStepWithoutAnyLabel) {
  write("tiny.plan");
  ThreadRanks ranks(2);
  Status status = ranks.run([&](int rank) {
    return onRank(ranks.of(rank), "tiny.plan", {}, [&](Session &session, const InputMap &map) -> Status {
      Batch none = batch(map, 1, 0);
      return session.step(std::span(&none, 1), 1, {}).status();
    });
  });
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("every label is ignored"));
}

TEST_F(RankSessionTest, SumWhatIsExported) {
  write("tiny.plan");
  ThreadRanks ranks(2);
  Status status = ranks.run([&](int rank) {
    SessionOptions options{.needsForward = true, .needsGradients = true};
    return onRank(ranks.of(rank), "tiny.plan", options, [&](Session &session, const InputMap &map) -> Status {
      Batch one = batch(map, rank == 0 ? 4 : 2, rank == 0 ? 1 : 3);
      Result<double> loss = session.forward(std::span(&one, 1), {});
      LLMC_RETURN_IF_ERROR(loss);
      EXPECT_FLOAT_EQ(static_cast<float>(*loss), 2.5f);
      LLMC_RETURN_IF_ERROR(session.gradients(std::span(&one, 1), 1, {}));
      // The fake gradient is the loss scale: a quarter, from each rank.
      float value = 0;
      LLMC_RETURN_IF_ERROR(session.readGradient(tiny.entry("bias"), 0, std::as_writable_bytes(std::span(&value, 1))));
      EXPECT_EQ(value, 0.5f);
      return Status();
    });
  });
  ASSERT_TRUE(status) << status.error().message;
}

TEST_F(RankSessionTest, RefuseToStartFromDifferentWeights) {
  write("tiny.plan");
  tiny.bias[0] += 1;
  write("other.plan");
  ThreadRanks ranks(3);
  Status status = ranks.run([&](int rank) {
    return onRank(ranks.of(rank), rank == 2 ? "other.plan" : "tiny.plan", {},
                  [](Session &, const InputMap &) { return Status(); });
  });
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("rank 2 has other initial weights than rank 0"));
}

} // namespace
} // namespace llmc::test
