#include "tools/llmc-run/RunOutputs.h"

#include "runtime/Metrics.h"
#include "runtime/OnnxSplice.h"

namespace llmc {

/// All that appear whole or not at all: all but --metrics.
static std::vector<NamedFile> wholeOutputs(const RunOptions &options) {
  return {{"--profile", options.profile},          {"--plot", options.plot},
          {"--export-onnx", options.exportOnnx},   {"--export-weights", options.exportWeights},
          {"--export-grads", options.exportGrads}, {"--export-outputs", options.exportOutputs}};
}

static std::vector<NamedFile> allOutputs(const RunOptions &options) {
  std::vector<NamedFile> outputs = wholeOutputs(options);
  outputs.insert(outputs.begin(), {"--metrics", options.metrics});
  return outputs;
}

static std::vector<NamedFile> inputs(const RunOptions &options) {
  return {{"PLAN", options.plan}, {"--data", options.data}, {"--inputs", options.inputs}};
}

std::string outputConflict(const RunOptions &options) { return outputConflict(allOutputs(options), inputs(options)); }

Status checkOutputs(const RunOptions &options) {
  LLMC_RETURN_IF_ERROR(checkOutputPlaces(wholeOutputs(options)));
  return options.metrics.empty() ? Status() : MetricsFile::checkPlace(options.metrics);
}

Status checkExportedData(const RunOptions &options, const Plan &plan, uint64_t modelBytes) {
  if (options.exportOnnx.empty())
    return {};
  std::string path = trainedDataPath(options.exportOnnx, plan, modelBytes);
  NamedFile data = {"the weights of --export-onnx", path};
  std::vector<NamedFile> others = inputs(options);
  for (const NamedFile &output : allOutputs(options))
    others.push_back(output);
  if (std::string message = outputConflict({data}, others); !message.empty())
    return Error{message};
  return checkOutputPlaces({data});
}

} // namespace llmc
