// Time left from a running mean of the steps' times.
#include "runtime/StepProgress.h"

#include "runtime/Say.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace llmc {

std::string formatDuration(double seconds) {
  int64_t whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60)
    return fmt::format("{} s", whole);
  if (whole < 3600)
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

StepProgress::StepProgress(std::FILE *out, bool isTerminal, int64_t totalSteps, int64_t numLines)
    : out(out), isTerminal(isTerminal), totalSteps(totalSteps),
      every(std::max<int64_t>(1, totalSteps / std::max<int64_t>(1, numLines))) {}

StepProgress::~StepProgress() {
  if (isLineOpen)
    std::fputc('\n', out);
  std::fflush(out);
}

void StepProgress::clearLine() {
  if (isLineOpen)
    std::fputs("\r\033[K", out);
  isLineOpen = false;
}

void StepProgress::note(const std::string &text) {
  clearLine();
  say(out, "{}\n", text);
  std::fflush(out);
}

void StepProgress::update(int64_t step, double loss, double tokensPerSecond, double stepMs) {
  meanStepMs = step <= 2 ? stepMs : 0.9 * meanStepMs + 0.1 * stepMs;
  bool isLast = step == totalSteps;
  if (!isTerminal && step != 1 && !isLast && step % every != 0)
    return;
  loss = std::isnan(loss) ? std::fabs(loss) : loss; // x86 makes NaNs with a sign, which says nothing
  std::string line = fmt::format("step {}/{}  loss {:.5f}  {:.0f} tok/s", step, totalSteps, loss, tokensPerSecond);
  if (!isLast)
    line += fmt::format("  {} left", formatDuration(static_cast<double>(totalSteps - step) * meanStepMs / 1e3));
  clearLine();
  say(out, "{}{}", line, isTerminal ? "" : "\n");
  isLineOpen = isTerminal;
  std::fflush(out);
}

} // namespace llmc
