#include "tools/llmc-gpt/GptConfig.h"

#include <algorithm>
#include <fmt/core.h>
#include <iterator>

namespace llmc {

namespace {
struct Preset {
  const char *name;
  int64_t layers, heads, width, vocab, context, batch;
};
} // namespace

// GPT-2's four sizes are those of its paper's code (hparams.json).
static constexpr Preset kPresets[] = {
    {"small", 6, 6, 384, 256, 256, 12},
    {"gpt2", 12, 12, 768, 50257, 1024, 4},
    {"gpt2-medium", 24, 16, 1024, 50257, 1024, 4},
    {"gpt2-large", 36, 20, 1280, 50257, 1024, 4},
    {"gpt2-xl", 48, 25, 1600, 50257, 1024, 4},
};

std::vector<std::string> gptPresetNames() {
  std::vector<std::string> names;
  for (const Preset &preset : kPresets)
    names.push_back(preset.name);
  return names;
}

std::optional<GptConfig> gptPreset(std::string_view name) {
  auto found = std::ranges::find(kPresets, name, &Preset::name);
  if (found == std::end(kPresets))
    return std::nullopt;
  GptConfig config;
  config.layers = found->layers;
  config.heads = found->heads;
  config.width = found->width;
  config.vocab = found->vocab;
  config.context = config.sequence = found->context;
  config.batch = found->batch;
  return config;
}

std::string whyInvalid(const GptConfig &config) {
  if (config.width % config.heads != 0)
    return fmt::format("--width {} is not a multiple of --heads {}", config.width, config.heads);
  if (config.sequence > config.context)
    return fmt::format("--seq {} is more than --context {}", config.sequence, config.context);
  return {};
}

} // namespace llmc
