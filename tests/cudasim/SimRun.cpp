// The kernel around a snippet.
#include "tests/cudasim/SimRun.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace llmc::cudasim {

namespace {

constexpr const char *kRegisters = R"(
  .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .f32 %f<10>; .reg .b64 %d<10>; .reg .f64 %x<10>;
)";

std::string storeOf(const std::string &result) {
  switch (result[1]) {
  case 'p':
    return fmt::format("selp.u32 %r9, 1, 0, {}; st.global.u32 [%d9], %r9;", result);
  case 'h':
    return fmt::format("st.global.u16 [%d9], {};", result);
  case 'r':
    return fmt::format("st.global.u32 [%d9], {};", result);
  case 'f':
    return fmt::format("st.global.f32 [%d9], {};", result);
  case 'x':
    return fmt::format("st.global.f64 [%d9], {};", result);
  default:
    return fmt::format("st.global.u64 [%d9], {};", result);
  }
}

} // namespace

SimBench::SimBench(const std::string &ptx) {
  Result<Module> loaded = Module::load(ptx, memory);
  if (!loaded)
    throw std::runtime_error(loaded.error().message); // GoogleTest reports it as this test's failure
  module = std::move(*loaded);
}

std::optional<Fault> SimBench::run(uint32_t blocks, uint32_t threads,
                                   const std::vector<std::vector<std::byte>> &arguments, uint64_t seed) {
  return runNamed(kernel().name, blocks, threads, arguments, seed);
}

std::optional<Fault> SimBench::runNamed(const std::string &name, uint32_t blocks, uint32_t threads,
                                        const std::vector<std::vector<std::byte>> &arguments, uint64_t seed) {
  const Kernel &kernel = *module.find(name);
  Result<std::vector<std::byte>> packed = kernel.packArguments(arguments);
  if (!packed)
    return Fault{.kind = FaultKind::wrongArguments, .detail = packed.error().message};
  LaunchShape shape{.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
  LaunchOptions options{.seed = seed, .order = &order, .live = live, .maxWarpInstructions = maxWarpInstructions};
  std::optional<Fault> fault = launch(kernel, shape, *packed, memory, options, &counts);
  order.advance();
  return fault;
}

std::optional<Fault> SimBench::run(uint32_t blocks, uint32_t threads, std::initializer_list<uint64_t> addresses,
                                   uint64_t seed) {
  std::vector<std::vector<std::byte>> arguments;
  for (uint64_t address : addresses)
    arguments.push_back(argument(address));
  return run(blocks, threads, arguments, seed);
}

uint64_t runSnippet(const std::string &code, const std::string &result, const std::vector<uint64_t> &inputs) {
  std::string text = kHead + ".visible .entry k(.param .u64 in, .param .u64 out) {" + kRegisters +
                     "ld.param.u64 %d8, [in]; ld.param.u64 %d9, [out];\n";
  for (size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("ld.global.u64 %d{0}, [%d8+{1}]; ld.global.u32 %r{0}, [%d8+{1}]; ld.global.u16 %h{0}, "
                        "[%d8+{1}]; ld.global.f32 %f{0}, [%d8+{1}]; ld.global.f64 %x{0}, [%d8+{1}];\n"
                        "{{ .reg .b32 %t; and.b32 %t, %r{0}, 1; setp.ne.u32 %p{0}, %t, 0; }}\n",
                        i, 8 * i);
  text += code + "\n" + storeOf(result) + "\nret;\n}\n";
  SimBench bench(text);
  uint64_t in = bench.upload(inputs), out = bench.upload(std::vector<uint64_t>{0});
  std::optional<Fault> fault = bench.run(1, 1, {in, out});
  EXPECT_FALSE(fault) << fault->describe();
  return bench.download<uint64_t>(out, 1)[0];
}

void checkSnippets(const std::vector<Snippet> &snippets) {
  for (const Snippet &snippet : snippets) {
    SCOPED_TRACE(snippet.code);
    EXPECT_EQ(runSnippet(snippet.code, snippet.result, snippet.inputs), snippet.expected);
  }
}

std::string loadError(const std::string &body) {
  Memory memory;
  Result<Module> loaded =
      Module::load(kHead + ".visible .entry k(.param .u64 in) {" + kRegisters + "\n" + body + "\nret;\n}\n", memory);
  return loaded ? "" : loaded.error().message;
}

} // namespace llmc::cudasim
