// The metrics file: one JSON object a line, a header and then a line a step. Lines are written whole as they come, so
// that the file can be followed while the run goes on.
#pragma once

#include "runtime/Session.h"

#include <cstdio>

namespace llmc {

/// What makes a run the run it is; written once.
struct MetricsHeader {
  std::string version; ///< of llmc-run
  uint64_t planHash = 0;
  std::string model; ///< ONNX file the plan was made from
  std::string precision;
  std::string optimizer;
  std::string device;   ///< ISA level or name of the device
  std::string isa;      ///< of the plan's target in use
  std::string programs; ///< what a step runs
  uint64_t seed = 0;
  int ranks = 1;
  std::string comm; ///< what the ranks sum over; empty: one rank
  int threads = 1;
  int64_t batch = 0, sequence = 0, accumulate = 1, steps = 0;
  std::string schedule;
  int64_t warmup = 0;
  double minLr = 0;
  HyperParameters hyper; ///< lr is the largest
  double startMs = 0;    ///< from the start of the process to the first step
  uint64_t stateBytes = 0, gradientBytes = 0, arenaBytes = 0;
};

/// One step. Numbers that are not known on this device stay empty and are written as null.
struct StepMetrics {
  int64_t step = 0;
  double loss = 0;
  double lr = 0;
  std::optional<double> gradNorm;
  int64_t tokens = 0;
  double tokensPerSecond = 0;
  std::optional<double> mfu;
  double stepMs = 0; ///< all of the step, waiting for data included
  double dataWaitMs = 0;
  double commMs = 0;
  double exposedCommMs = 0;
  std::vector<double> rankMs;          ///< busy time of each rank, where asked for
  std::vector<uint64_t> weightsHashes; ///< of each rank after the step, where asked for
  uint64_t arenaBytes = 0;
  uint64_t peakBytes = 0;
};

class MetricsFile {
public:
  /// Whether create() could start a file there; leaves alone what is there.
  static Status checkPlace(const std::string &path);
  /// Starts the file (an existing one is replaced) with its header.
  static Result<MetricsFile> create(const std::string &path, const MetricsHeader &header);
  /// Appends a step's line and flushes it.
  Status write(const StepMetrics &step);

private:
  MetricsFile(std::string path, std::FILE *file) : path(std::move(path)), file(file, &std::fclose) {}
  Status writeLine(const std::string &line);

  std::string path;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file;
};

/// 16 hexadecimal digits.
std::string formatPlanHash(uint64_t hash);

} // namespace llmc
