// Which flags all ranks of a run must have alike.
#include "tools/llmc-run/RunOptions.h"

#include <fmt/format.h>

namespace llmc {

const char *scheduleName(ScheduleKind kind) {
  return kind == ScheduleKind::cosine ? "cosine" : kind == ScheduleKind::linear ? "linear" : "constant";
}

std::vector<RunFact> sharedFlags(const RunOptions &options) {
  const HyperParameters &hyper = options.hyper;
  auto given = [](bool isGiven) { return isGiven ? "given" : "not given"; };
  return {{"--accumulate", fmt::to_string(options.accumulate)},
          {"--drop-last", given(options.dropLast)},
          {"--seed", fmt::to_string(options.seed)},
          {"--lr", fmt::to_string(hyper.lr)},
          {"--scale-lr", given(options.scaleLr)},
          {"--schedule", scheduleName(options.schedule)},
          {"--warmup", fmt::to_string(options.warmup)},
          {"--min-lr", fmt::to_string(options.minLr)},
          {"--weight-decay", fmt::to_string(hyper.weightDecay)},
          {"--beta1", fmt::to_string(hyper.beta1)},
          {"--beta2", fmt::to_string(hyper.beta2)},
          {"--eps", fmt::to_string(hyper.eps)},
          {"--clip", fmt::to_string(hyper.clip)},
          {"--verify-ranks", given(options.verifyRanks)},
          {"--export-grads", given(!options.exportGrads.empty())}};
}

} // namespace llmc
