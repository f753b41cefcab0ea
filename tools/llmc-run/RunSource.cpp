// Each kind says in its own words what it is.
#include "tools/llmc-run/RunSource.h"

#include "runtime/FixedInputs.h"

#include <fmt/format.h>

namespace llmc {

static Result<RunSource> openTokens(const RunOptions &options, const InputMap &inputs, RankShare ranks) {
  Result<TokenFile> tokens = TokenFile::open(options.data);
  LLMC_RETURN_IF_ERROR(tokens);
  std::string format = tokens->format();
  uint64_t numTokens = tokens->numTokens();
  Result<DataLoader> loader =
      DataLoader::create(std::move(*tokens), inputs, {options.seed, options.accumulate, options.dropLast, ranks});
  LLMC_RETURN_IF_ERROR(loader);
  int64_t perEpoch = *loader->stepsPerEpoch(), numSteps = options.steps.value_or(kDefaultSteps);
  if (!options.steps && __builtin_mul_overflow(options.epochs.value_or(1), perEpoch, &numSteps))
    return Error{fmt::format("{} epochs of {} steps are too many", *options.epochs, perEpoch)};
  std::string text = fmt::format("{}: {}, {} tokens, {} windows of {}, {} steps an epoch; {} steps ({:.2f} epochs)",
                                 options.data, format, numTokens, loader->numWindows(), inputs.length, perEpoch,
                                 numSteps, static_cast<double>(numSteps) / static_cast<double>(perEpoch));
  return RunSource{std::make_unique<DataLoader>(std::move(*loader)), text, numSteps};
}

Result<RunSource> openSource(const RunOptions &options, const InputMap &inputs, RankShare ranks) {
  if (options.inputs.empty() && !options.data.empty())
    return openTokens(options, inputs, ranks);
  int64_t numSteps = options.steps.value_or(kDefaultSteps);
  if (!options.inputs.empty()) {
    Result<FixedInputs> fixed = FixedInputs::load(options.inputs, inputs, options.accumulate, ranks);
    LLMC_RETURN_IF_ERROR(fixed);
    return RunSource{std::make_unique<FixedInputs>(std::move(*fixed)),
                     fmt::format("{}: one fixed batch, {} steps", options.inputs, numSteps), numSteps};
  }
  Result<RandomTokens> random = RandomTokens::create(inputs, options.seed, ranks);
  if (!random)
    return inContext(options.plan, random.error());
  return RunSource{std::make_unique<RandomTokens>(std::move(*random)),
                   fmt::format("no --data: random tokens, only speed is measured; {} steps", numSteps), numSteps};
}

} // namespace llmc
