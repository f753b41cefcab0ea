// llmc-gpt: a GPT as ONNX. A preset's numbers, overridden by the flags given; then the graph, then the file.
#include "runtime/Say.h"
#include "tools/Flags.h"
#include "tools/Outputs.h"
#include "tools/llmc-gpt/GptConfig.h"
#include "tools/llmc-gpt/GptGraph.h"
#include "tools/llmc-gpt/ModelFile.h"

#include <limits>

using namespace std::string_literals;

namespace {
struct Flags {
  std::string preset = "small";
  std::optional<int64_t> layers, heads, width, vocab, context, sequence, batch;
  int64_t seed = 1;
  std::string style = "fused";
  std::string output;
};
} // namespace

static constexpr const char *kFooter =
    R"(The graph: inputs input_ids and targets (batch, seq) int64, outputs loss (mean cross-entropy, labels of -100 ignored)
and logits; opset 18, standard operators; GELU by tanh; the head is transformer.wte.weight itself. Weights begin as
GPT-2's do: normal 0.02, projections into the residual stream divided by sqrt(2 layers), biases 0, gains 1. Linear
weights are stored (in, out): y = x W + b. Names are nanoGPT's. Above 256 MiB the weights go to FILE.data beside FILE.
The same flags give the same bytes.

Presets: small (6 layers, 6 heads, width 384, vocabulary 256, context 256, batch 12), gpt2 (12, 12, 768, 50257, 1024, 4),
gpt2-medium (24, 16, 1024, ...), gpt2-large (36, 20, 1280, ...), gpt2-xl (48, 25, 1600, ...).

Example:
  llmc-gpt --preset gpt2 --batch 4 --seq 256 -o gpt2.onnx
  llmc-gpt --layers 4 --heads 4 --width 128 --seed 7 -o tiny.onnx)";

static void addFlags(CLI::App &app, Flags &flags) {
  // Limits that keep every product of sizes within 63 bits.
  auto upTo = [](int64_t limit) { return CLI::Range(int64_t{1}, limit, "1 to " + std::to_string(limit)); };
  app.footer(kFooter);
  app.add_option("--preset", flags.preset, "the numbers to start from: small, gpt2, gpt2-medium, gpt2-large, gpt2-xl")
      ->check(CLI::IsMember(llmc::gptPresetNames()))
      ->capture_default_str();
  app.add_option("--layers", flags.layers, "transformer blocks")->check(upTo(10000));
  app.add_option("--heads", flags.heads, "attention heads")->check(upTo(10000));
  app.add_option("--width", flags.width, "channels, a multiple of the heads")->check(upTo(1000000));
  app.add_option("--vocab", flags.vocab, "vocabulary")->check(upTo(100000000));
  app.add_option("--context", flags.context, "rows of the position table")->check(upTo(1000000));
  app.add_option("--seq", flags.sequence, "tokens in a row of the inputs, at most the context; default: the context")
      ->check(upTo(1000000));
  app.add_option("--batch", flags.batch, "rows of the inputs")->check(upTo(1000000));
  app.add_option("--seed", flags.seed, "of the initial weights")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max(), "0 or more"))
      ->capture_default_str();
  app.add_option(
         "--style", flags.style,
         "fused: LayerNormalization, and one matmul for Q, K, V; textbook: norms in small operators, and a matmul "
         "each; the same weights")
      ->check(CLI::IsMember({"fused"s, "textbook"s}))
      ->capture_default_str();
  app.add_option("-o,--output", flags.output, "the ONNX file to write")->required();
}

static llmc::GptConfig configOf(const Flags &flags) {
  llmc::GptConfig config = *llmc::gptPreset(flags.preset);
  config.layers = flags.layers.value_or(config.layers);
  config.heads = flags.heads.value_or(config.heads);
  config.width = flags.width.value_or(config.width);
  config.vocab = flags.vocab.value_or(config.vocab);
  config.context = flags.context.value_or(config.context);
  config.sequence = flags.sequence.value_or(config.context);
  config.batch = flags.batch.value_or(config.batch);
  config.seed = static_cast<uint64_t>(flags.seed);
  config.style = flags.style == "textbook" ? llmc::GptStyle::textbook : llmc::GptStyle::fused;
  return config;
}

static uint64_t numParameters(const llmc::GptModel &model) {
  uint64_t count = 0;
  for (const llmc::GptTensor &tensor : model.tensors)
    count += tensor.rule == llmc::TensorRule::causalMask ? 0 : tensor.numElements();
  return count;
}

int main(int argc, char **argv) {
  llmc::guardOutputs();
  Flags flags;
  CLI::App app("Writes a GPT with initial weights as ONNX, ready for llmc-compile.", "llmc-gpt");
  addFlags(app, flags);
  if (std::optional<int> status = llmc::parseFlags(app, argc, argv))
    return *status;
  llmc::GptConfig config = configOf(flags);
  if (std::string reason = llmc::whyInvalid(config); !reason.empty())
    return llmc::wrongFlags(app, reason);

  llmc::GptModel model = llmc::buildGpt(config);
  uint64_t parameters = numParameters(model);
  llmc::Result<llmc::ModelFileReport> report = llmc::writeModel(std::move(model), {flags.output, config.seed});
  if (!report)
    return llmc::failed(app, report.error());
  llmc::say("{}: {} layers, {} heads, width {}, vocabulary {}, context {}; inputs ({}, {})\n", flags.output,
            config.layers, config.heads, config.width, config.vocab, config.context, config.batch, config.sequence);
  llmc::say("{} parameters, {:.1f} MB{}\n", parameters, report->tensorBytes / 1e6,
            report->dataPath.empty() ? ""s : " in " + report->dataPath);
  return llmc::finish(app, 0);
}
