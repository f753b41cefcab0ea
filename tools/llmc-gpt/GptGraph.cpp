// One function a part of the model, top down at the end of the file. Values are named after the module they belong to.
#include "tools/llmc-gpt/GptGraph.h"

#include "tools/llmc-gpt/GraphBuilder.h"

#include <array>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numbers>

namespace llmc {

using Value = GraphBuilder::Value;

static constexpr int64_t kOpset = 18;
static constexpr int64_t kIrVersion = 8; ///< the one that came with opset 18
static constexpr float kNormEpsilon = 1e-5f;
static constexpr int64_t kIgnoreIndex = -100;
static constexpr double kInitialDeviation = 0.02;

namespace {

class GptBuilder {
public:
  explicit GptBuilder(const GptConfig &config)
      : config(config), builder("gpt"), B(config.batch), T(config.sequence), C(config.width), H(config.heads),
        D(config.headSize()) {}
  GptModel build();

private:
  Value vector(const std::string &name, int64_t size, TensorRule rule);
  Value matrix(const std::string &name, int64_t rows, int64_t columns, double deviation);
  Value affine(const Value &x, const std::string &module, const Value &weight, int64_t out);
  Value linear(const Value &x, const std::string &module, int64_t in, int64_t out, double deviation);
  Value projection(const Value &x, const std::string &module, const std::string &whole, int64_t third);
  Value norm(const Value &x, const std::string &module);
  Value heads(const Value &x, const std::string &name, const std::vector<int64_t> &permutation);
  std::array<Value, 3> queryKeyValue(const Value &x, const std::string &module);
  Value attention(const Value &x, const std::string &module);
  Value gelu(const Value &x, const std::string &name);
  Value embedding(const Value &ids);
  Value block(const Value &x, int64_t layer);
  void lossOf(const Value &logits, const Value &targets);

  const GptConfig &config;
  GraphBuilder builder;
  const int64_t B, T, C, H, D;
  /// Projections into the residual stream are scaled down, so that its variance does not grow with the depth.
  const double residualDeviation = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
};

} // namespace

Value GptBuilder::vector(const std::string &name, int64_t size, TensorRule rule) {
  return builder.tensor({.name = name, .shape = {size}, .rule = rule});
}

Value GptBuilder::matrix(const std::string &name, int64_t rows, int64_t columns, double deviation) {
  return builder.tensor({.name = name,
                         .shape = {rows, columns},
                         .rule = TensorRule::normal,
                         .deviation = static_cast<float>(deviation),
                         .streamName = name,
                         .streamColumns = columns});
}

/// x W + b: (B, T, in) -> (B, T, out).
Value GptBuilder::affine(const Value &x, const std::string &module, const Value &weight, int64_t out) {
  Value bias = vector(module + ".bias", out, TensorRule::zeros);
  Value product = builder.node("MatMul", module + ".matmul", {x, weight});
  return builder.node("Add", module, {product, bias});
}

Value GptBuilder::linear(const Value &x, const std::string &module, int64_t in, int64_t out, double deviation) {
  return affine(x, module, matrix(module + ".weight", in, out, deviation), out);
}

/// One third of the layer `whole` as a layer of its own: (B, T, C) -> (B, T, C).
Value GptBuilder::projection(const Value &x, const std::string &module, const std::string &whole, int64_t third) {
  Value weight = builder.tensor({.name = module + ".weight",
                                 .shape = {C, C},
                                 .rule = TensorRule::normal,
                                 .deviation = static_cast<float>(kInitialDeviation),
                                 .streamName = whole + ".weight",
                                 .streamColumns = 3 * C,
                                 .firstColumn = third * C});
  return affine(x, module, weight, C);
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension.
Value GptBuilder::norm(const Value &x, const std::string &module) {
  Value weight = vector(module + ".weight", C, TensorRule::ones);
  Value bias = vector(module + ".bias", C, TensorRule::zeros);
  if (config.style == GptStyle::fused)
    return builder.node("LayerNormalization", module, {x, weight, bias},
                        {{"axis", int64_t{-1}}, {"epsilon", kNormEpsilon}});
  Value lastAxis = builder.integers("constant.last_axis", {-1});
  Value mean = builder.node("ReduceMean", module + ".mean", {x, lastAxis}, {{"keepdims", int64_t{1}}});
  Value centered = builder.node("Sub", module + ".centered", {x, mean});
  Value square = builder.node("Pow", module + ".square", {centered, builder.scalar("constant.2", 2.0f)});
  Value variance = builder.node("ReduceMean", module + ".variance", {square, lastAxis}, {{"keepdims", int64_t{1}}});
  Value shifted =
      builder.node("Add", module + ".shifted", {variance, builder.scalar("constant.epsilon", kNormEpsilon)});
  Value deviation = builder.node("Sqrt", module + ".deviation", {shifted});
  Value normalized = builder.node("Div", module + ".normalized", {centered, deviation});
  Value scaled = builder.node("Mul", module + ".scaled", {normalized, weight});
  return builder.node("Add", module, {scaled, bias});
}

/// (B, T, C) -> (B, T, H, D), permuted.
Value GptBuilder::heads(const Value &x, const std::string &name, const std::vector<int64_t> &permutation) {
  Value split = builder.node("Reshape", name + ".heads", {x, builder.integers("constant.heads_shape", {B, T, H, D})});
  return builder.node("Transpose", name, {split}, {{"perm", permutation}});
}

/// Each (B, T, C).
std::array<Value, 3> GptBuilder::queryKeyValue(const Value &x, const std::string &module) {
  std::string whole = module + ".c_attn";
  if (config.style == GptStyle::textbook)
    return {projection(x, module + ".query", whole, 0), projection(x, module + ".key", whole, 1),
            projection(x, module + ".value", whole, 2)};
  Value joint = linear(x, whole, C, 3 * C, kInitialDeviation);
  std::vector<Value> parts =
      builder.nodes("Split", module + ".split", 3, {joint}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{3}}});
  return {parts[0], parts[1], parts[2]};
}

/// softmax(mask(q k') / sqrt(D)) v, projected: (B, T, C) -> (B, T, C).
Value GptBuilder::attention(const Value &x, const std::string &module) {
  auto [query, key, value] = queryKeyValue(x, module);
  Value q = heads(query, module + ".q", {0, 2, 1, 3});                         // (B, H, T, D)
  Value kTransposed = heads(key, module + ".k", {0, 2, 3, 1});                 // (B, H, D, T)
  Value v = heads(value, module + ".v", {0, 2, 1, 3});                         // (B, H, T, D)
  Value scores = builder.node("MatMul", module + ".scores", {q, kTransposed}); // (B, H, T, T)
  Value masked =
      builder.node("Where", module + ".masked",
                   {"transformer.causal_mask",
                    builder.scalar("constant.minus_infinity", -std::numeric_limits<float>::infinity()), scores});
  float scale = std::sqrt(static_cast<float>(D));
  Value scaled = builder.node("Div", module + ".scaled", {masked, builder.scalar("constant.sqrt_head_size", scale)});
  Value weights = builder.node("Softmax", module + ".weights", {scaled}, {{"axis", int64_t{-1}}});
  Value context = builder.node("MatMul", module + ".context", {weights, v}); // (B, H, T, D)
  Value rows = builder.node("Transpose", module + ".rows", {context}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  Value merged =
      builder.node("Reshape", module + ".merged", {rows, builder.integers("constant.merged_shape", {B, T, C})});
  return linear(merged, module + ".c_proj", C, C, residualDeviation);
}

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
Value GptBuilder::gelu(const Value &x, const std::string &name) {
  Value half = builder.node("Mul", name + ".half", {x, builder.scalar("constant.half", 0.5f)});
  Value cube = builder.node("Pow", name + ".cube", {x, builder.scalar("constant.3", 3.0f)});
  Value bend = builder.node("Mul", name + ".bend", {cube, builder.scalar("constant.0.044715", 0.044715f)});
  Value sum = builder.node("Add", name + ".sum", {x, bend});
  auto scale = static_cast<float>(std::sqrt(2.0 / std::numbers::pi));
  Value inner = builder.node("Mul", name + ".inner", {sum, builder.scalar("constant.sqrt_2_over_pi", scale)});
  Value tanh = builder.node("Tanh", name + ".tanh", {inner});
  Value gate = builder.node("Add", name + ".gate", {tanh, builder.scalar("constant.1", 1.0f)});
  return builder.node("Mul", name, {half, gate});
}

/// Token plus position: (B, T) ids -> (B, T, C).
Value GptBuilder::embedding(const Value &ids) {
  Value wte = matrix("transformer.wte.weight", config.vocab, C, kInitialDeviation);
  Value wpe = matrix("transformer.wpe.weight", config.context, C, kInitialDeviation);
  Value tokens = builder.node("Gather", "transformer.wte", {wte, ids}, {{"axis", int64_t{0}}});
  Value positions = wpe;
  if (T < config.context)
    positions =
        builder.node("Slice", "transformer.wpe",
                     {wpe, builder.integers("constant.slice_start", {0}), builder.integers("constant.slice_end", {T}),
                      builder.integers("constant.slice_axis", {0})});
  return builder.node("Add", "transformer.embedding", {tokens, positions});
}

Value GptBuilder::block(const Value &x, int64_t layer) {
  std::string name = fmt::format("transformer.h.{}", layer);
  Value attended = attention(norm(x, name + ".ln_1"), name + ".attn");
  Value middle = builder.node("Add", name + ".attn_residual", {x, attended});
  Value up = linear(norm(middle, name + ".ln_2"), name + ".mlp.c_fc", C, 4 * C, kInitialDeviation);
  Value down = linear(gelu(up, name + ".mlp.gelu"), name + ".mlp.c_proj", 4 * C, C, residualDeviation);
  return builder.node("Add", name + ".mlp_residual", {middle, down});
}

/// Mean over the labels that are not ignored.
void GptBuilder::lossOf(const Value &logits, const Value &targets) {
  Value rows =
      builder.node("Reshape", "loss.logits", {logits, builder.integers("constant.rows_shape", {B * T, config.vocab})});
  Value labels = builder.node("Reshape", "loss.targets", {targets, builder.integers("constant.labels_shape", {B * T})});
  builder.node("SoftmaxCrossEntropyLoss", "loss", {rows, labels}, {{"ignore_index", kIgnoreIndex}});
}

GptModel GptBuilder::build() {
  Value ids = builder.input("input_ids", onnx::TensorProto::INT64, {B, T});
  Value targets = builder.input("targets", onnx::TensorProto::INT64, {B, T});
  Value x = embedding(ids);
  builder.tensor({.name = "transformer.causal_mask", .shape = {T, T}, .rule = TensorRule::causalMask});
  for (int64_t layer = 0; layer < config.layers; ++layer)
    x = block(x, layer);
  Value last = norm(x, "transformer.ln_f");
  Value head =
      builder.node("Transpose", "lm_head.weight", {"transformer.wte.weight"}, {{"perm", std::vector<int64_t>{1, 0}}});
  Value logits = builder.node("MatMul", "logits", {last, head}); // (B, T, V)
  lossOf(logits, targets);
  builder.output("loss", onnx::TensorProto::FLOAT, {});
  builder.output("logits", onnx::TensorProto::FLOAT, {B, T, config.vocab});

  GptModel model;
  model.proto.set_ir_version(kIrVersion);
  model.proto.add_opset_import()->set_version(kOpset);
  model.proto.mutable_opset_import(0)->set_domain("");
  model.proto.set_producer_name("llmc-gpt");
  model.proto.set_producer_version(LLMC_VERSION);
  model.proto.set_doc_string(fmt::format("GPT: {} layers, {} heads, width {}, vocabulary {}, context {}; seed {}",
                                         config.layers, H, C, config.vocab, config.context, config.seed));
  *model.proto.mutable_graph() = std::move(builder.graph);
  model.tensors = std::move(builder.tensors);
  return model;
}

GptModel buildGpt(const GptConfig &config) { return GptBuilder(config).build(); }

} // namespace llmc
