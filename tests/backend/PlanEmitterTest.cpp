// A small model through the whole pipeline into a plan: what the runtime relies on, counted again from the plan alone.
#include "backend/PlanEmitter.h"
#include "passes/Passes.h"
#include "runtime/PlanCheck.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace mlir;

namespace llmc {
namespace {

/// An embedding, a layer, a tied head: V = 7, C = 8, B = 2, T = 3.
constexpr const char *kModel = R"(module {
  llmc.variable @wte "parameter" tensor<7x8xf32> = dense<0.1> : tensor<7x8xf32> {decays}
  llmc.variable @w "parameter" tensor<8x8xf32> = dense<0.2> : tensor<8x8xf32> {decays}
  llmc.variable @b "parameter" tensor<8xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  llmc.variable @keep "constant" tensor<3x1xi1> = dense<[[true], [false], [true]]> : tensor<3x1xi1>
  llmc.program @graph "graph" (%ids: tensor<2x3xi64> {llmc.name = "idx", llmc.role = "tokens"},
                               %labels: tensor<2x3xi64> {llmc.name = "targets", llmc.role = "labels"})
      -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}, tensor<2x3x7xf32> {llmc.name = "logits", llmc.role = "logits"}) {
    %wte = llmc.get @wte : tensor<7x8xf32>
    %w = llmc.get @w : tensor<8x8xf32>
    %b = llmc.get @b : tensor<8xf32>
    %keep = llmc.get @keep : tensor<3x1xi1>
    %x = llmc.embedding %wte, %ids : (tensor<7x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
    %zero = llmc.constant dense<0.0> : tensor<f32>
    %kept = llmc.select %keep, %x, %zero : (tensor<3x1xi1>, tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
    %r = llmc.reshape %kept : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
    %h = llmc.matmul %r, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32> loc("block.linear")
    %hb = llmc.add %h, %b : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
    %g = llmc.gelu %hb : tensor<6x8xf32> loc("block.gelu")
    %l = llmc.matmul %g, %wte {transposeRhs} : (tensor<6x8xf32>, tensor<7x8xf32>) -> tensor<6x7xf32>
    %lab = llmc.reshape %labels : (tensor<2x3xi64>) -> tensor<6xi64>
    %loss, %lse = llmc.softmax_cross_entropy %l, %lab {mean, ignoreIndex = -1 : i64}
      : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
    %logits = llmc.reshape %l : (tensor<6x7xf32>) -> tensor<2x3x7xf32>
    llmc.return %loss, %logits : tensor<f32>, tensor<2x3x7xf32>
  }
})";

/// One attention head with separate weights for queries, keys and values, and biases: B = 1, T = 3, C = 8.
constexpr const char *kSeparateProjections = R"(module {
  llmc.variable @wq "parameter" tensor<8x8xf32> = dense<0.1> : tensor<8x8xf32> {decays}
  llmc.variable @wk "parameter" tensor<8x8xf32> = dense<0.2> : tensor<8x8xf32> {decays}
  llmc.variable @wv "parameter" tensor<8x8xf32> = dense<0.3> : tensor<8x8xf32> {decays}
  llmc.variable @bq "parameter" tensor<8xf32> = dense<0.1> : tensor<8xf32>
  llmc.variable @bk "parameter" tensor<8xf32> = dense<0.2> : tensor<8xf32>
  llmc.variable @bv "parameter" tensor<8xf32> = dense<0.3> : tensor<8xf32>
  llmc.program @graph "graph" (%x: tensor<3x8xf32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
    %wq = llmc.get @wq : tensor<8x8xf32>
    %wk = llmc.get @wk : tensor<8x8xf32>
    %wv = llmc.get @wv : tensor<8x8xf32>
    %bq = llmc.get @bq : tensor<8xf32>
    %bk = llmc.get @bk : tensor<8xf32>
    %bv = llmc.get @bv : tensor<8xf32>
    %q0 = llmc.matmul %x, %wq bias %bq : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
    %k0 = llmc.matmul %x, %wk bias %bk : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
    %v0 = llmc.matmul %x, %wv bias %bv : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
    %q = llmc.reshape %q0 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %k = llmc.reshape %k0 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %v = llmc.reshape %v0 : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %out, %lse = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, causal, window = 0 : i64, scale = 1.000000e+00 : f64}
      : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> (tensor<1x3x8xf32>, tensor<1x1x3xf32>)
    %mean = llmc.reduce_mean %out {axes = array<i64: 0, 1, 2>} : (tensor<1x3x8xf32>) -> tensor<1x1x1xf32>
    %loss = llmc.reshape %mean : (tensor<1x1x1xf32>) -> tensor<f32>
    llmc.return %loss : tensor<f32>
  }
})";

/// One product, of a size that CPUs pack for in bf16.
constexpr const char *kProjection = R"(module {
  llmc.variable @w "parameter" tensor<64x64xf32> = dense<0.1> : tensor<64x64xf32> {decays}
  llmc.program @graph "graph" (%x: tensor<64x64xf32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
    %w = llmc.get @w : tensor<64x64xf32>
    %h = llmc.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("linear")
    %mean = llmc.reduce_mean %h {axes = array<i64: 0, 1>} : (tensor<64x64xf32>) -> tensor<1x1xf32>
    %loss = llmc.reshape %mean : (tensor<1x1xf32>) -> tensor<f32>
    llmc.return %loss : tensor<f32>
  }
})";

class PlanEmitterTest : public ::testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<LlmcDialect>();
    context.getDiagEngine().registerHandler(
        [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
    module = compile();
    ASSERT_TRUE(module);
    FailureOr<EmittedPlan> result = emitPlan(*module, cpuIsas());
    ASSERT_TRUE(succeeded(result));
    emitted = std::move(*result);
  }

  OwningOpRef<ModuleOp> compile(const char *model = kModel, const PipelineOptions &options = {}) {
    OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(model, &context);
    PassManager manager(&context);
    buildPipeline(manager, options);
    return parsed && succeeded(manager.run(*parsed)) ? std::move(parsed) : OwningOpRef<ModuleOp>();
  }

  const StateEntry &entry(StateKind kind, const std::string &name) {
    for (const StateEntry &entry : emitted.plan.state)
      if (entry.kind == kind && entry.name == name)
        return entry;
    ADD_FAILURE() << "no entry " << name;
    return emitted.plan.state.front();
  }

  std::span<const std::byte> weight(const StateEntry &entry) {
    for (const WeightsPiece &piece : emitted.payload.weights)
      if (piece.fileOffset == entry.fileOffset)
        return piece.bytes;
    return {};
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  EmittedPlan emitted;
};

TEST_F(PlanEmitterTest, PassesTheRuntimesCheck) {
  uint64_t weights = 0;
  for (const WeightsPiece &piece : emitted.payload.weights)
    weights = std::max(weights, piece.fileOffset + piece.bytes.size());
  Status status = checkPlan(emitted.plan, {weights, emitted.payload.code.size(), 0});
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

TEST_F(PlanEmitterTest, DescribesTheState) {
  const StateEntry &table = entry(StateKind::parameter, "wte");
  EXPECT_EQ(table.shape, (std::vector<int64_t>{7, 8}));
  EXPECT_TRUE(table.decays);
  EXPECT_EQ(table.gradient.space, Space::gradients);
  EXPECT_FALSE(entry(StateKind::parameter, "b").decays);
  EXPECT_EQ(entry(StateKind::moment, "wte/m").buffer.bytes, table.buffer.bytes);
  const StateEntry &tokens = entry(StateKind::input, "idx"), &labels = entry(StateKind::input, "targets");
  EXPECT_EQ(tokens.role, "tokens");
  EXPECT_EQ(tokens.vocabulary, 7);
  EXPECT_EQ(labels.role, "labels");
  EXPECT_EQ(labels.vocabulary, 7);
  EXPECT_EQ(labels.ignoreIndex, -1);
  EXPECT_EQ(entry(StateKind::output, "loss").role, "loss");
  EXPECT_EQ(entry(StateKind::output, "loss").buffer.space, Space::state);
  EXPECT_EQ(entry(StateKind::output, "logits").shape, (std::vector<int64_t>{2, 3, 7}));
  EXPECT_EQ(entry(StateKind::output, "logits").buffer, (BufferRef{Space::arena, 0, 168}))
      << "training has no room for it";
  EXPECT_EQ(entry(StateKind::output, "grad_norm").role, "grad_norm");
  EXPECT_EQ(entry(StateKind::scalar, "lr").buffer.bytes, 4u);
  EXPECT_EQ(emitted.plan.batch, 2);
  EXPECT_EQ(emitted.plan.sequence, 3);
  EXPECT_EQ(emitted.plan.vocabulary, 7);
  EXPECT_TRUE(emitted.plan.lossIsTokenMean);
  EXPECT_GT(emitted.plan.flopsPerToken, 6 * (56 + 64));
}

TEST_F(PlanEmitterTest, DescribesPiecesUnderTheirOwnNames) {
  module = compile(kSeparateProjections);
  ASSERT_TRUE(module);
  FailureOr<EmittedPlan> result = emitPlan(*module, cpuIsas().take_front());
  ASSERT_TRUE(succeeded(result));
  emitted = std::move(*result);
  size_t numParameters = 0, numMoments = 0;
  for (const StateEntry &entry : emitted.plan.state) {
    numParameters += entry.kind == StateKind::parameter;
    numMoments += entry.kind == StateKind::moment;
  }
  EXPECT_EQ(numParameters, 6u);
  EXPECT_EQ(numMoments, 12u);
  const StateEntry &q = entry(StateKind::parameter, "wq"), &k = entry(StateKind::parameter, "wk");
  EXPECT_EQ(k.shape, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(k.rows, (PieceRows{8, 24}));
  EXPECT_EQ(k.buffer, (BufferRef{Space::state, q.buffer.offset + 8 * 4, 8 * 8 * 4}));
  EXPECT_EQ(k.gradient, (BufferRef{Space::gradients, q.gradient.offset + 8 * 4, 8 * 8 * 4}));
  EXPECT_TRUE(k.decays);
  EXPECT_EQ(weight(k).size(), 8u * 8 * 4);
  EXPECT_EQ(entry(StateKind::moment, "wv/v").rows, k.rows);
  EXPECT_EQ(entry(StateKind::moment, "wv/v").buffer.offset, entry(StateKind::moment, "wq/v").buffer.offset + 16 * 4);
  const StateEntry &bias = entry(StateKind::parameter, "bv");
  EXPECT_EQ(bias.buffer, (BufferRef{Space::state, entry(StateKind::parameter, "bq").buffer.offset + 16 * 4, 8 * 4}));
  EXPECT_FALSE(bias.decays);
  Status status = checkPlan(emitted.plan, {emitted.payload.weights.back().fileOffset + 32, emitted.code.size(), 0});
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

TEST_F(PlanEmitterTest, WritesWeightsOut) {
  std::span<const std::byte> splat = weight(entry(StateKind::parameter, "wte"));
  ASSERT_EQ(splat.size(), 7u * 8 * 4);
  for (size_t i = 0; i < 56; ++i) {
    float value = 0;
    std::memcpy(&value, splat.data() + 4 * i, 4);
    EXPECT_EQ(value, 0.1f);
  }
  std::span<const std::byte> booleans = weight(entry(StateKind::constant, "keep"));
  EXPECT_EQ(std::vector<std::byte>(booleans.begin(), booleans.end()),
            (std::vector{std::byte(1), std::byte(0), std::byte(1)}));
  EXPECT_EQ(weight(entry(StateKind::parameter, "b")).size(), 32u);
}

TEST_F(PlanEmitterTest, HasAllProgramsForEachLevel) {
  ASSERT_EQ(emitted.plan.targets.size(), cpuIsas().size());
  for (const TargetPrograms &target : emitted.plan.targets) {
    EXPECT_EQ(target.target, "cpu");
    EXPECT_EQ(target.programs.size(), kNumProgramKinds);
    EXPECT_EQ(target.codeOffset % 4096, 0u);
    std::set<uint64_t> offsets;
    for (const CodeEntry &code : target.entries)
      EXPECT_TRUE(offsets.insert(code.offset).second) << code.name;
    for (size_t i = 0; i < target.programs.size(); ++i)
      EXPECT_EQ(target.programs[i].launches.size(), emitted.plan.targets[0].programs[i].launches.size());
  }
}

TEST_F(PlanEmitterTest, NamesLaunchesByTheirNodes) {
  std::set<std::string> names;
  for (const Program &program : emitted.plan.targets[0].programs)
    for (const Launch &launch : program.launches) {
      EXPECT_FALSE(launch.name.empty());
      names.insert(launch.name);
    }
  EXPECT_TRUE(names.contains("block.linear") || names.contains("block.linear+block.gelu"));
  auto name = [&](const char *text) -> Location { return NameLoc::get(StringAttr::get(&context, text)); };
  EXPECT_EQ(nodeNames(UnknownLoc::get(&context)), "");
  EXPECT_EQ(nodeNames(FusedLoc::get(&context, {name("a"), name("b"), name("a")})), "a+b");
  EXPECT_EQ(nodeNames(FusedLoc::get(&context, {name("a"), name("b"), name("c"), name("d"), name("e")})), "a+b+… 2 …+e");
}

// The independent count: what lives at once, and that it does not overlap.
TEST_F(PlanEmitterTest, RangesFitTheArena) {
  for (const Program &program : emitted.plan.targets[0].programs) {
    uint64_t peak = 0;
    for (uint32_t at = 0; at < program.launches.size(); ++at) {
      uint64_t live = 0;
      for (const ValueRange &value : program.values)
        if (value.firstLaunch <= at && at <= value.lastLaunch)
          live += value.buffer.bytes;
      peak = std::max(peak, live);
    }
    EXPECT_EQ(peak, program.arenaLowerBoundBytes) << programKindName(program.kind);
    EXPECT_LE(peak, program.arenaBytes);
    for (const ValueRange &a : program.values)
      for (const ValueRange &b : program.values) {
        bool meet = &a != &b && a.firstLaunch <= b.lastLaunch && b.firstLaunch <= a.lastLaunch;
        bool overlap =
            a.buffer.offset < b.buffer.offset + b.buffer.bytes && b.buffer.offset < a.buffer.offset + a.buffer.bytes;
        EXPECT_FALSE(meet && overlap) << a.name << " and " << b.name;
      }
  }
}

TEST_F(PlanEmitterTest, GivesTheSameBytesAgain) {
  OwningOpRef<ModuleOp> again = compile();
  ASSERT_TRUE(again);
  FailureOr<EmittedPlan> second = emitPlan(*again, cpuIsas());
  ASSERT_TRUE(succeeded(second));
  auto write = [](const std::string &path, const EmittedPlan &plan) {
    EXPECT_TRUE(writePlan(path, plan.plan, plan.payload).ok());
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  };
  std::string folder = ::testing::TempDir();
  EXPECT_TRUE(write(folder + "/a.plan", emitted) == write(folder + "/b.plan", *second));
}

// A kernel that nobody knows, and a program that is none.
TEST_F(PlanEmitterTest, RefusesAProgramOfAnotherKind) {
  (*module->getOps<ProgramOp>().begin()).setKind("gradients");
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(emitPlan(*module, cpuIsas().take_front())));
  EXPECT_NE(message.find("kind \"gradients\" is no program of a plan"), std::string::npos) << message;
}

class GpuTargetTest : public PlanEmitterTest {
protected:
  static PipelineOptions forGpu() {
    PipelineOptions options;
    options.isGpu = true;
    return options;
  }

  /// Why a module does not become programs for GPUs beside those of the plan; "" where it does.
  std::string refusal(ModuleOp other) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    size_t numTargets = emitted.plan.targets.size();
    bool isRefused = failed(addGpuTarget(emitted, other, gpuIsas().front()));
    EXPECT_EQ(emitted.plan.targets.size(), numTargets + !isRefused);
    EXPECT_EQ(message.empty(), !isRefused);
    return message;
  }
};

TEST_F(GpuTargetTest, TakesTheSameModel) {
  OwningOpRef<ModuleOp> same = compile(kModel, forGpu());
  ASSERT_TRUE(same);
  EXPECT_EQ(refusal(*same), "");
  EXPECT_EQ(emitted.plan.targets.back().target, "cuda");
}

TEST_F(GpuTargetTest, RefusesOtherState) {
  OwningOpRef<ModuleOp> other = compile(kSeparateProjections, forGpu());
  ASSERT_TRUE(other);
  EXPECT_EQ(refusal(*other), "a GPU's programs keep other values than a CPU's");
}

TEST_F(GpuTargetTest, RefusesStateElsewhere) {
  std::string renamed = kModel;
  for (size_t at = 0; (at = renamed.find("@b", at)) != renamed.npos;)
    renamed.replace(at, 2, "@c");
  OwningOpRef<ModuleOp> other = compile(renamed.c_str(), forGpu());
  ASSERT_TRUE(other);
  EXPECT_EQ(refusal(*other), "a GPU's programs keep 'c' elsewhere than a CPU's 'b'");
}

// A CPU's matrices are packed for its contractions; a GPU has no kernel for that.
TEST_F(GpuTargetTest, RefusesAKernelWithoutCode) {
  PipelineOptions options;
  options.isBf16 = true;
  module = compile(kProjection, options);
  ASSERT_TRUE(module);
  FailureOr<EmittedPlan> result = emitPlan(*module, cpuIsas().take_front());
  ASSERT_TRUE(succeeded(result));
  emitted = std::move(*result);
  EXPECT_EQ(refusal(*module), "kernel pack ('linear') has no code for GPUs yet");
}

} // namespace
} // namespace llmc
