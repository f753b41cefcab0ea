// What a run leaves to look at: metrics, progress, plot, trace; and the learning rate's schedule.
#include "runtime/Metrics.h"
#include "runtime/Plot.h"
#include "runtime/Profiler.h"
#include "runtime/Schedule.h"
#include "runtime/StepProgress.h"
#include "tests/runtime/TinyPlan.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace llmc::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Schedule, RisesAndFalls) {
  Schedule schedule{ScheduleKind::cosine, 1.0, 0.1, 10, 110};
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(60), 0.55);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.1);
  schedule.kind = ScheduleKind::linear;
  EXPECT_DOUBLE_EQ(schedule.at(35), 0.775);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.1);
  schedule.kind = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(schedule.at(110), 1.0);
  Schedule allWarmup{ScheduleKind::cosine, 1.0, 0.0, 10, 10};
  EXPECT_DOUBLE_EQ(allWarmup.at(10), 1.0);
  Schedule none{ScheduleKind::linear, 1.0, 0.0, 0, 4};
  EXPECT_DOUBLE_EQ(none.at(1), 0.75);
}

TEST(Metrics, ThePlaceIsCheckedAndLeftAlone) {
  TestFolder folder;
  EXPECT_TRUE(MetricsFile::checkPlace(folder.path("new.jsonl")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path("new.jsonl")));
  std::ofstream(folder.path("old.jsonl")) << "old";
  EXPECT_TRUE(MetricsFile::checkPlace(folder.path("old.jsonl")).ok());
  EXPECT_EQ(std::filesystem::file_size(folder.path("old.jsonl")), 3u);
  EXPECT_THAT(MetricsFile::checkPlace(folder.path("no/m.jsonl")).error().message,
              testing::EndsWith("no/m.jsonl: cannot create: No such file or directory"));
  EXPECT_THAT(MetricsFile::checkPlace(folder.path("")).error().message,
              testing::EndsWith(": cannot be written: Is a directory"));
  EXPECT_TRUE(MetricsFile::checkPlace("/dev/null").ok()); // a device is written to
}

TEST(Metrics, WritesAHeaderAndALineAStep) {
  TestFolder folder;
  MetricsHeader header;
  header.version = "0.1.0";
  header.planHash = 0xABC;
  header.model = "bad utf8 \xFF";
  auto file = MetricsFile::create(folder.path("m.jsonl"), header);
  ASSERT_TRUE(file);
  StepMetrics step;
  step.step = 1;
  step.loss = NAN;
  step.tokens = 1024;
  ASSERT_TRUE(file->write(step));
  step.loss = 3.25;
  step.gradNorm = 0.5;
  ASSERT_TRUE(file->write(step));
  std::istringstream lines(readFile(folder.path("m.jsonl")));
  std::string line;
  std::getline(lines, line);
  auto first = nlohmann::json::parse(line);
  EXPECT_EQ(first["plan_hash"], "0000000000000abc");
  for (const char *key : {"version", "seed", "ranks", "threads", "device", "program", "lr", "clip"})
    EXPECT_TRUE(first.contains(key)) << key;
  std::getline(lines, line);
  auto second = nlohmann::json::parse(line);
  EXPECT_TRUE(second["loss"].is_null());
  EXPECT_TRUE(second["grad_norm"].is_null());
  EXPECT_TRUE(second["mfu"].is_null());
  std::getline(lines, line);
  auto third = nlohmann::json::parse(line);
  EXPECT_EQ(third["loss"], 3.25);
  EXPECT_EQ(third["grad_norm"], 0.5);
  for (const char *key : {"step", "lr", "tokens", "tok_s", "step_ms", "data_wait_ms", "comm_ms", "exposed_comm_ms",
                          "arena_bytes", "peak_bytes"})
    EXPECT_TRUE(third.contains(key)) << key;
  EXPECT_FALSE(MetricsFile::create(folder.path("no/such"), header));
}

std::string progressText(bool isTerminal, int64_t total, double loss = 2.5) {
  char *text = nullptr;
  size_t size = 0;
  std::FILE *out = open_memstream(&text, &size);
  {
    StepProgress progress(out, isTerminal, total, 5);
    for (int64_t step = 1; step <= total; ++step) {
      progress.update(step, loss, 1234, 100);
      if (step == 3)
        progress.note("hello");
    }
  }
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(StepProgress, PlainLinesAreFewAndATerminalsIsOne) {
  std::string plain = progressText(false, 100);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), '\n'), 1 + 5 + 1); // the first, each 20th, the note
  EXPECT_THAT(plain, HasSubstr("step 20/100  loss 2.50000  1234 tok/s  8 s left\n"));
  EXPECT_THAT(plain, HasSubstr("step 100/100  loss 2.50000  1234 tok/s\n"));
  EXPECT_THAT(plain, Not(HasSubstr("\r")));
  EXPECT_THAT(progressText(false, 1, std::copysign(NAN, -1.0)), HasSubstr("loss nan "));
  std::string terminal = progressText(true, 10);
  EXPECT_EQ(std::count(terminal.begin(), terminal.end(), '\n'), 2); // the note, the end
  EXPECT_THAT(terminal, HasSubstr("\r\033[Kstep 2/10"));
  EXPECT_EQ(formatDuration(3725), "1:02:05");
  EXPECT_EQ(formatDuration(65), "1:05");
}

TEST(Plot, DrawsACurveWithAxes) {
  std::vector<double> losses;
  for (int i = 0; i < 5000; ++i)
    losses.push_back(10.0 / (1 + i * 0.01));
  losses[3] = NAN;
  std::string svg = renderLossPlot({"a <b> & c", losses});
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; c"));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr(">5000</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_LT(svg.size(), 60'000u);
  for (const std::vector<double> &few : {std::vector<double>{}, {1.0}, {2.0, 2.0}, {NAN, INFINITY}})
    EXPECT_THAT(renderLossPlot({"few", few}), Not(HasSubstr("nan")));
}

TEST(Profiler, SumsLaunchesAndWritesATrace) {
  TestFolder folder;
  TinyPlan tiny;
  const Program &program = tiny.plan.targets[0].programs[1]; // clear, loss, grad_norm
  const_cast<Program &>(program).launches[1].flops = 2e9;
  Profiler profiler;
  for (int i = 0; i < 3; ++i)
    profiler.record(program, std::vector<double>{1.0, 8.0, 1.0});
  CommSpan::Time now = std::chrono::steady_clock::now();
  auto after = [&](int ms) { return now + std::chrono::milliseconds(ms); };
  std::vector<CommSpan> spans = {{"all_reduce", "h.0.\"w\"", 4'000'000, after(1), after(2), after(4)},
                                 {"all_gather", "notes", 0, after(4), after(4), after(4)}};
  EXPECT_THAT(profiler.table(2), Not(HasSubstr("network")));
  profiler.recordCollectives(spans);
  std::string table = profiler.table(2);
  EXPECT_THAT(table,
              HasSubstr("network: 1 collectives, 4.0 MB a rank, 2.000 ms and 1.000 ms until all ranks had come"));
  EXPECT_THAT(table, HasSubstr(" 100.0 %      30.000 ms"));
  EXPECT_THAT(table, HasSubstr("  80.0 %      24.000 ms     250.0 GFLOP/s"));
  EXPECT_THAT(table, HasSubstr("zero [step] loss"));
  ASSERT_TRUE(profiler.writeTrace(folder.path("t.json")));
  auto trace = nlohmann::json::parse(readFile(folder.path("t.json")));
  auto &events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 2u + 9u + 1u); // names of rows, launches, the message
  EXPECT_EQ(events[0]["args"]["name"], "launches");
  EXPECT_EQ(events[1]["args"]["name"], "network");
  EXPECT_EQ(events[3]["name"], "loss");
  EXPECT_EQ(events[3]["dur"], 8000.0);
  EXPECT_EQ(events[3]["ph"], "X");
  EXPECT_EQ(events[11]["name"], "h.0.\"w\"");
  EXPECT_EQ(events[11]["tid"], events[1]["tid"]);
  EXPECT_NE(events[11]["tid"], events[3]["tid"]);
  EXPECT_EQ(events[11]["dur"], 3000.0);
  EXPECT_EQ(events[11]["args"].dump(),
            R"({"bytes":4000000,"gb_s":2.0,"operation":"all_reduce","waited_for_ranks_ms":1.0})");
}

} // namespace
} // namespace llmc::test
