// Keys are those of the command line's documentation. A loss that is not a number is null in JSON.
#include "runtime/Metrics.h"

#include "runtime/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

using nlohmann::ordered_json;

static ordered_json optionalNumber(const std::optional<double> &value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

static std::string dump(const ordered_json &line) {
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string formatPlanHash(uint64_t hash) { return fmt::format("{:016x}", hash); }

Status MetricsFile::checkPlace(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) // a new file
    return AtomicFile::create(path).status();
  if (S_ISDIR(info.st_mode))
    errno = EISDIR;
  else if (::access(path.c_str(), W_OK) == 0)
    return {};
  return Error{path + ": cannot be written: " + std::strerror(errno)};
}

Result<MetricsFile> MetricsFile::create(const std::string &path, const MetricsHeader &header) {
  MetricsFile metrics(path, std::fopen(path.c_str(), "we"));
  if (!metrics.file)
    return Error{path + ": cannot be written: " + std::strerror(errno)};
  ordered_json line = {{"plan_hash", formatPlanHash(header.planHash)},
                       {"version", header.version},
                       {"model", header.model},
                       {"precision", header.precision},
                       {"optimizer", header.optimizer},
                       {"device", header.device},
                       {"isa", header.isa},
                       {"program", header.programs},
                       {"seed", header.seed},
                       {"ranks", header.ranks},
                       {"comm", header.comm.empty() ? ordered_json(nullptr) : ordered_json(header.comm)},
                       {"threads", header.threads},
                       {"batch", header.batch},
                       {"sequence", header.sequence},
                       {"accumulate", header.accumulate},
                       {"steps", header.steps},
                       {"lr", header.hyper.lr},
                       {"schedule", header.schedule},
                       {"warmup", header.warmup},
                       {"min_lr", header.minLr},
                       {"weight_decay", header.hyper.weightDecay},
                       {"beta1", header.hyper.beta1},
                       {"beta2", header.hyper.beta2},
                       {"eps", header.hyper.eps},
                       {"clip", header.hyper.clip},
                       {"start_ms", header.startMs},
                       {"state_bytes", header.stateBytes},
                       {"gradient_bytes", header.gradientBytes},
                       {"arena_bytes", header.arenaBytes}};
  LLMC_RETURN_IF_ERROR(metrics.writeLine(dump(line)));
  return metrics;
}

Status MetricsFile::write(const StepMetrics &step) {
  ordered_json line = {{"step", step.step},
                       {"loss", step.loss},
                       {"lr", step.lr},
                       {"grad_norm", optionalNumber(step.gradNorm)},
                       {"tokens", step.tokens},
                       {"tok_s", step.tokensPerSecond},
                       {"mfu", optionalNumber(step.mfu)},
                       {"step_ms", step.stepMs},
                       {"data_wait_ms", step.dataWaitMs},
                       {"comm_ms", step.commMs},
                       {"exposed_comm_ms", step.exposedCommMs},
                       {"arena_bytes", step.arenaBytes},
                       {"peak_bytes", step.peakBytes}};
  if (!step.rankMs.empty()) {
    line["rank_ms"] = step.rankMs;
    line["slowest_rank"] = std::ranges::max_element(step.rankMs) - step.rankMs.begin();
  }
  for (uint64_t hash : step.weightsHashes)
    line["weights_hash"].push_back(formatPlanHash(hash));
  return writeLine(dump(line));
}

Status MetricsFile::writeLine(const std::string &line) {
  std::string text = line + '\n';
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
    return Error{path + ": cannot be written: " + std::strerror(errno)};
  return {};
}

} // namespace llmc
