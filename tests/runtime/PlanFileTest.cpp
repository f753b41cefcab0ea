// Plans written and read back, and every way a file can be wrong.
#include "runtime/PlanFile.h"

#include "runtime/PlanCheck.h"
#include "runtime/PlanFormat.h"
#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string writeTiny(const TestFolder &folder, const TinyPlan &tiny, const char *name = "tiny.plan") {
  Status status = writePlan(folder.path(name), tiny.plan, tiny.payload());
  EXPECT_TRUE(status) << status.error().message;
  return folder.path(name);
}

/// Opens the plan and reads all of its weights: what a session does before its first step.
Status openWhole(const std::string &path) {
  Result<PlanFile> file = PlanFile::open(path);
  LLMC_RETURN_IF_ERROR(file);
  std::vector<std::byte> buffer(std::min(kWeightsChunkBytes, file->weightsBytes()));
  for (size_t i = 0; i < file->numWeightsChunks(); ++i)
    LLMC_RETURN_IF_ERROR(file->readWeightsChunk(i, buffer));
  return {};
}

TEST(PlanFile, ReadsBackWhatWasWritten) {
  TestFolder folder;
  TinyPlan tiny;
  Result<PlanFile> file = PlanFile::open(writeTiny(folder, tiny));
  ASSERT_TRUE(file) << file.error().message;
  const Plan &plan = file->plan();
  EXPECT_EQ(plan.producer, "llmc test");
  EXPECT_EQ(plan.vocabulary, 5);
  ASSERT_EQ(plan.state.size(), tiny.plan.state.size());
  for (size_t i = 0; i < plan.state.size(); ++i) {
    EXPECT_EQ(plan.state[i].name, tiny.plan.state[i].name);
    EXPECT_EQ(plan.state[i].buffer, tiny.plan.state[i].buffer);
    EXPECT_EQ(plan.state[i].rows, tiny.plan.state[i].rows);
    EXPECT_EQ(plan.state[i].gradient, tiny.plan.state[i].gradient);
    EXPECT_EQ(plan.state[i].shape, tiny.plan.state[i].shape);
    EXPECT_EQ(plan.state[i].ignoreIndex, tiny.plan.state[i].ignoreIndex);
  }
  const Program &forward = plan.targets.at(0).programs.at(4);
  EXPECT_EQ(forward.kind, ProgramKind::forward);
  EXPECT_EQ(forward.launches.at(2).name, "logits");
  EXPECT_EQ(forward.launches.at(2).operands, tiny.plan.targets[0].programs[4].launches[2].operands);
  EXPECT_EQ(forward.values.at(0).category, "workspace");
  EXPECT_TRUE(std::ranges::equal(file->code(plan.targets[0]), tiny.code));
  EXPECT_EQ(file->model().size(), tiny.model.size());

  std::vector<std::byte> buffer(kWeightsChunkBytes);
  auto chunk = file->readWeightsChunk(0, buffer);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->size(), 192 + 12u);
  EXPECT_EQ(std::memcmp(chunk->data(), tiny.table.data(), 80), 0);
  EXPECT_EQ(std::memcmp(chunk->data() + 128, tiny.bias.data(), 16), 0);
}

TEST(PlanFile, SamePlanGivesTheSameBytes) {
  TestFolder folder, other;
  std::string first = readFile(writeTiny(folder, TinyPlan())),
              second = readFile(writeTiny(other, TinyPlan(), "b.plan"));
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.find(std::filesystem::temp_directory_path().string()), std::string::npos);
}

TEST(PlanFile, RefusesEveryFlippedByte) {
  TestFolder folder;
  const std::string content = readFile(writeTiny(folder, TinyPlan()));
  std::string path = folder.write("damaged.plan", content);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  auto put = [&](size_t at, int value) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
  };
  for (size_t i = 0; i < content.size(); ++i) {
    put(i, content[i] ^ (1 << (i % 8)));
    Status status = openWhole(path);
    ASSERT_FALSE(status) << "byte " << i << " of " << content.size();
    EXPECT_THAT(status.error().message, StartsWith(path + ": "));
    put(i, content[i]);
  }
  EXPECT_TRUE(openWhole(path));
}

TEST(PlanFile, RefusesTruncatedForeignAndLongerFiles) {
  TestFolder folder;
  const std::string content = readFile(writeTiny(folder, TinyPlan()));
  for (size_t size = 0; size < content.size(); size += 1 + size / 7)
    EXPECT_FALSE(openWhole(folder.write("short.plan", content.substr(0, size)))) << size;
  EXPECT_FALSE(openWhole(folder.write("long.plan", content + "x")));
  auto message = [&](const std::string &path) { return openWhole(path).error().message; };
  EXPECT_THAT(message(folder.write("x.plan", std::string(5000, 'x'))), HasSubstr("not a plan"));
  EXPECT_THAT(message(folder.write("e.plan", "")), HasSubstr("not a plan: 0 bytes"));
  EXPECT_THAT(message(folder.path("missing.plan")), HasSubstr("No such file"));
  EXPECT_THAT(message(folder.path("")), HasSubstr("not a regular file"));
  std::string newer = content;
  newer[8] = 9;
  EXPECT_THAT(message(folder.write("newer.plan", newer)), HasSubstr("plan version 9, this build reads version 3"));
}

TEST(PlanFile, WeightsSpanSeveralChunks) {
  TestFolder folder;
  TinyPlan tiny;
  // Pieces that cross chunk borders, with a gap between them.
  std::vector<std::byte> big(2 * kWeightsChunkBytes + 777);
  for (size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  PlanPayload payload = tiny.payload();
  payload.weights.push_back({4096, std::span(big).first(1000)});
  payload.weights.push_back({8192, std::span(big).subspan(1000)});
  ASSERT_TRUE(writePlan(folder.path("big.plan"), tiny.plan, payload));
  Result<PlanFile> file = PlanFile::open(folder.path("big.plan"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->numWeightsChunks(), 3u);
  std::vector<std::byte> all(3 * kWeightsChunkBytes);
  for (size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(file->readWeightsChunk(i, std::span(all).subspan(i * kWeightsChunkBytes)));
  EXPECT_EQ(std::memcmp(&all[4096], &big[0], 1000), 0);
  EXPECT_EQ(all[4096 + 1000], std::byte{0});
  EXPECT_EQ(std::memcmp(&all[8192], &big[1000], big.size() - 1000), 0);

  std::string content = readFile(folder.path("big.plan"));
  content[content.size() / 2] ^= 1;
  EXPECT_THAT(openWhole(folder.write("bad.plan", content)).error().message, HasSubstr("checksum of weights"));
}

TEST(PlanFile, WritingFailsWithoutAFile) {
  TestFolder folder;
  TinyPlan tiny;
  EXPECT_FALSE(writePlan(folder.path("no/such/folder.plan"), tiny.plan, tiny.payload()));
  tiny.entry("bias").fileOffset = 1 << 20;
  Status status = writePlan(folder.path("a.plan"), tiny.plan, tiny.payload());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("state entry 'bias': 16 bytes at 1048576 exceed the weights section"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a.plan")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

/// A change that makes a plan wrong, and what the error says.
struct Fault {
  const char *message;
  void (*apply)(TinyPlan &);
};

Launch &firstLaunch(TinyPlan &tiny) { return tiny.plan.targets[0].programs[0].launches[0]; }

void makeGenerated(TinyPlan &tiny, int32_t entry, std::vector<int64_t> ints) {
  firstLaunch(tiny).kind = KernelKind::Generated;
  firstLaunch(tiny).entry = entry;
  firstLaunch(tiny).ints = std::move(ints);
}

/// For a GPU: every program's zero fills need no code.
void makeCuda(TinyPlan &tiny, const CodeEntry &entry) {
  tiny.plan.targets[0].target = "cuda";
  tiny.plan.targets[0].entries = {entry};
}

const CodeEntry kCudaEntry{
    .name = "kernel", .offset = 0, .symbol = "k0", .gridX = 0x7fffffff, .blockX = 1024, .sharedBytes = 227 * 1024};

CodeEntry cudaEntry(void (*edit)(CodeEntry &)) {
  CodeEntry entry = kCudaEntry;
  edit(entry);
  return entry;
}

const Fault kFaults[] = {
    {"appears twice", [](TinyPlan &t) { t.entry("bias").name = "table"; }},
    {"exceed the state", [](TinyPlan &t) { t.entry("bias").buffer.offset = t.plan.stateBytes; }},
    {"exceed the state", [](TinyPlan &t) { t.entry("bias").buffer.offset = ~0ull << 6; }},
    {"not a multiple of 64", [](TinyPlan &t) { t.entry("bias").buffer.offset += 4; }},
    {"4 elements of f32 need 16", [](TinyPlan &t) { t.entry("bias").buffer.bytes = 12; }},
    {"not in the state", [](TinyPlan &t) { t.entry("bias").buffer.space = Space::arena; }},
    {"not in the state", [](TinyPlan &t) { t.entry("loss").buffer.space = Space::arena; }},
    {"program forward: output 'logits': 120 bytes at 192 exceed the arena of 256",
     [](TinyPlan &t) { t.entry("logits").buffer.offset = 192; }},
    {"negative or too large shape", [](TinyPlan &t) { t.entry("bias").shape = {1ll << 40, 1ll << 40}; }},
    {"negative or too large shape", [](TinyPlan &t) { t.entry("bias").shape = {-4}; }},
    {"exceed the weights section", [](TinyPlan &t) { t.entry("bias").fileOffset = ~0ull - 3; }},
    {"overlap in the file", [](TinyPlan &t) { t.entry("bias").fileOffset = 64; }},
    {"gradient has 8 bytes", [](TinyPlan &t) { t.entry("bias").gradient.bytes = 8; }},
    {"gradients' space", [](TinyPlan &t) { t.entry("bias").gradient.space = Space::state; }},
    {"20 elements in rows of 0, 4 apart", [](TinyPlan &t) { t.entry("table").rows = {0, 4}; }},
    {"20 elements in rows of 3, 4 apart", [](TinyPlan &t) { t.entry("table").rows = {3, 4}; }},
    {"20 elements in rows of 4, 2 apart", [](TinyPlan &t) { t.entry("table").rows = {4, 2}; }},
    {"5 rows of 4 elements, 1073741824 apart, at 0 exceed the state",
     [](TinyPlan &t) { t.entry("table").rows = {4, 1 << 30}; }},
    {"in rows of 4, 18446744073709551615 apart", [](TinyPlan &t) { t.entry("table").rows = {4, ~0ull}; }},
    {"5 rows of 4 elements, 24 apart, at 0 exceed the gradients", [](TinyPlan &t) { t.entry("table").rows = {4, 24}; }},
    {"offset 2 of a piece is not a multiple of its elements' 4 bytes",
     [](TinyPlan &t) {
       t.entry("bias").rows = {4, 4};
       t.entry("bias").buffer.offset = 2;
     }},
    {"only parameters and moments are pieces", [](TinyPlan &t) { t.entry("mask").rows = {3, 3}; }},
    {"exceed the gradients", [](TinyPlan &t) { t.entry("bias").gradient.offset = t.plan.gradientBytes; }},
    {"unknown role 'token'", [](TinyPlan &t) { t.entry("idx").role = "token"; }},
    {"must be i64 or i32, found f64", [](TinyPlan &t) { t.entry("idx").type = ElementType::f64; }},
    {"no hyperparameter of this name", [](TinyPlan &t) { t.entry("lr").name = "rate"; }},
    {"operand 0: 128 bytes at 192 exceed the arena of 256",
     [](TinyPlan &t) { firstLaunch(t).operands[0].offset = 192; }},
    {"has 0 operands, needs 1", [](TinyPlan &t) { firstLaunch(t).operands.clear(); }},
    {"operand dst is absent", [](TinyPlan &t) { firstLaunch(t).operands[0] = {}; }},
    {"has 1 integers, needs 0", [](TinyPlan &t) { firstLaunch(t).ints = {1}; }},
    {"has 1 floats, needs 0", [](TinyPlan &t) { firstLaunch(t).floats = {1}; }},
    {"stream 64 of 64", [](TinyPlan &t) { firstLaunch(t).stream = 64; }},
    {"code entry 2 of 2", [](TinyPlan &t) { makeGenerated(t, 2, {1, 1, 1, 1}); }},
    {"code entry -1 of 2", [](TinyPlan &t) { makeGenerated(t, -1, {1, 1, 1, 1}); }},
    {"empty block", [](TinyPlan &t) { makeGenerated(t, 0, {1, 1, 0, 1}); }},
    {"code entry 0 where the device has the code", [](TinyPlan &t) { firstLaunch(t).entry = 0; }},
    {"code entry -2 where the device has the code", [](TinyPlan &t) { firstLaunch(t).entry = -2; }},
    {"code entry 'kernel0' is launched like a GPU's", [](TinyPlan &t) { t.plan.targets[0].entries[0].gridX = 1; }},
    {"code entry 'kernel' has no symbol, or an offset",
     [](TinyPlan &t) { makeCuda(t, cudaEntry([](CodeEntry &e) { e.symbol = ""; })); }},
    {"code entry 'kernel' has no symbol, or an offset",
     [](TinyPlan &t) { makeCuda(t, cudaEntry([](CodeEntry &e) { e.offset = 64; })); }},
    {"is launched as 0 blocks of 1024", [](TinyPlan &t) { makeCuda(t, cudaEntry([](CodeEntry &e) { e.gridX = 0; })); }},
    {"blocks of 1025 threads", [](TinyPlan &t) { makeCuda(t, cudaEntry([](CodeEntry &e) { e.blockX = 1025; })); }},
    {"with 232449 bytes of shared memory",
     [](TinyPlan &t) { makeCuda(t, cudaEntry([](CodeEntry &e) { e.sharedBytes = 227 * 1024 + 1; })); }},
    {"code entry -1 of 1",
     [](TinyPlan &t) {
       makeCuda(t, kCudaEntry);
       firstLaunch(t).kind = KernelKind::Pack;
       firstLaunch(t).operands.push_back(firstLaunch(t).operands[0]);
       firstLaunch(t).ints = {1, 1, 0, 0, 0, 0};
     }},
    {"code entry 'kernel1' at 100", [](TinyPlan &t) { t.plan.targets[0].entries[1].offset = 100; }},
    {"exceeds the section of 100", [](TinyPlan &t) { t.plan.targets[0].codeBytes = 101; }},
    {"not page-aligned", [](TinyPlan &t) { t.plan.targets[0].codeOffset = 64; }},
    {"program step-fused appears twice",
     [](TinyPlan &t) { t.plan.targets[0].programs[1].kind = ProgramKind::stepFused; }},
    {"target fake none appears twice", [](TinyPlan &t) { t.plan.targets.push_back(t.plan.targets[0]); }},
    {"arena of", [](TinyPlan &t) { t.plan.targets[0].programs[0].arenaBytes = ~0ull; }},
    {"state of", [](TinyPlan &t) { t.plan.stateBytes = ~0ull; }},
    {"lives over launches 0 to 7", [](TinyPlan &t) { t.plan.targets[0].programs[0].values[0].lastLaunch = 7; }},
    {"no such parameter", [](TinyPlan &t) { t.plan.splice = {{"tabel", ElementType::f32, "", 0, 80}}; }},
    {"80 bytes, expected 40", [](TinyPlan &t) { t.plan.splice = {{"table", ElementType::f16, "", 0, 80}}; }},
    {"transform 'transpose' of 1",
     [](TinyPlan &t) { t.plan.splice = {{"bias", ElementType::f32, "transpose", 0, 16}}; }},
    {"outside of the model", [](TinyPlan &t) { t.plan.splice = {{"bias", ElementType::f32, "", 1000, 16}}; }},
};

TEST(PlanFile, KeepsHowAGpuLaunches) {
  TestFolder folder;
  TinyPlan tiny;
  makeCuda(tiny, kCudaEntry);
  makeGenerated(tiny, 0, {1, 1, 1, 1});
  ASSERT_TRUE(writePlan(folder.path("gpu.plan"), tiny.plan, tiny.payload()));
  Result<PlanFile> file = PlanFile::open(folder.path("gpu.plan"));
  ASSERT_TRUE(file) << file.error().message;
  const TargetPrograms &target = file->plan().targets[0];
  EXPECT_EQ(target.entries, std::vector{kCudaEntry});
  EXPECT_EQ(target.programs[0].launches[0].entry, 0);
  EXPECT_EQ(target.programs[0].launches[1].entry, -1);
}

TEST(PlanCheck, NamesEveryFault) {
  for (const Fault &fault : kFaults) {
    TinyPlan tiny;
    fault.apply(tiny);
    Status status = checkPlan(tiny.plan, {204, tiny.code.size(), tiny.model.size()});
    ASSERT_FALSE(status) << fault.message;
    EXPECT_THAT(status.error().message, HasSubstr(fault.message));
  }
  TinyPlan tiny;
  for (bool isCuda : {false, true}) {
    if (isCuda)
      makeCuda(tiny, kCudaEntry);
    Status status = checkPlan(tiny.plan, {204, tiny.code.size(), tiny.model.size()});
    EXPECT_TRUE(status) << status.error().message;
  }
}

TEST(Plan, TablesAgreeWithTheirEnumerations) {
  EXPECT_EQ(elementBytes(ElementType::boolean), 1u);
  EXPECT_STREQ(elementTypeName(ElementType::i64), "i64");
  EXPECT_STREQ(programKindName(ProgramKind::forward), "forward");
  EXPECT_STREQ(kernelInfo(KernelKind::Pack).name, "pack");
  for (size_t i = 0; i < allKernels().size(); ++i)
    EXPECT_EQ(static_cast<size_t>(allKernels()[i].kind), i);
}

} // namespace
} // namespace llmc::test
