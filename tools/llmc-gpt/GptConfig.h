// The shape of a GPT, and the presets' numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// How norms, attention's projections and the rest are spelled; the weights' values are the same.
enum class GptStyle {
  fused,   ///< LayerNormalization; Q, K, V from one matmul and a Split
  textbook ///< norms in small ops; a matmul each for Q, K, V
};

struct GptConfig {
  int64_t layers = 0;
  int64_t heads = 0;    ///< H
  int64_t width = 0;    ///< C, a multiple of heads
  int64_t vocab = 0;    ///< V
  int64_t context = 0;  ///< rows of the position table
  int64_t sequence = 0; ///< T of the inputs, at most context
  int64_t batch = 0;    ///< B of the inputs
  uint64_t seed = 1;
  GptStyle style = GptStyle::fused;

  int64_t headSize() const { return width / heads; } ///< D
};

/// "small", "gpt2", ... in order of size.
std::vector<std::string> gptPresetNames();

/// A preset's numbers, with sequence = context; nothing for an unknown name.
std::optional<GptConfig> gptPreset(std::string_view name);

/// Why these numbers make no GPT, in the words of the flags; empty when they do.
std::string whyInvalid(const GptConfig &config);

} // namespace llmc
