// What a person sees of a run: on a terminal one line that is rewritten, otherwise a plain line now and then.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace llmc {

class StepProgress {
public:
  /// Writes to `out`, which must outlive this. A plain line for the first and last step and about `numLines` between.
  StepProgress(std::FILE *out, bool isTerminal, int64_t totalSteps, int64_t numLines = 50);
  /// Leaves the terminal on a fresh line.
  ~StepProgress();

  /// After step `step` (counted from 1).
  void update(int64_t step, double loss, double tokensPerSecond, double stepMs);
  /// A message on lines of its own, between two updates.
  void note(const std::string &text);

private:
  void clearLine();

  std::FILE *out;
  bool isTerminal;
  int64_t totalSteps;
  int64_t every;
  bool isLineOpen = false;
  double meanStepMs = 0; ///< of recent steps, without the first, which is often slower
};

/// "45 s", "3:05", "1:02:09"
std::string formatDuration(double seconds);

} // namespace llmc
