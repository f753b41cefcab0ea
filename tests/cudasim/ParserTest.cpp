// What the parser refuses, each with its line and the instruction: nothing unknown is ever skipped.
#include "tests/cudasim/SimRun.h"

#include <gmock/gmock.h>

namespace llmc::cudasim {
namespace {

using testing::HasSubstr;

TEST(CudaSimParser, refusesWhatItDoesNotKnow) {
  EXPECT_EQ(loadError(""), "");
  EXPECT_THAT(loadError("\nfrobnicate.s32 %r0, %r1;"), HasSubstr("PTX line 8: frobnicate.s32: unknown instruction"));
  EXPECT_THAT(loadError("add.rz.f32 %f0, %f1, %f2;"), HasSubstr("add.rz.f32: unknown instruction"));
  EXPECT_THAT(loadError("tanh.approx.f64 %x0, %x1;"), HasSubstr("unknown instruction"));
  EXPECT_THAT(loadError("ld.global.acquire.gpu.u32 %r0, [%d0];"), HasSubstr("unknown instruction"));
  EXPECT_THAT(loadError("bar.sync %r0;"), HasSubstr("unknown instruction"));
  EXPECT_THAT(loadError("call.uni f, ();"), HasSubstr("PTX line"));
  EXPECT_THAT(loadError("mov.u32 %r0, %clock;"), HasSubstr("unknown register %clock"));
  EXPECT_THAT(loadError("mov.u32 %q7, 1;"), HasSubstr("unknown register %q7"));
  EXPECT_THAT(loadError("bra $nowhere;"), HasSubstr("unknown label $nowhere"));
  EXPECT_THAT(loadError("mov.u64 %d0, nothing;"), HasSubstr("unknown symbol nothing"));
  EXPECT_THAT(loadError("add.s32 %r0, %r1, ~3;"), HasSubstr("unknown character '~'"));
  EXPECT_THAT(loadError("mov.f32 %f0, 1.5;"), HasSubstr("unknown symbol 1.5"));
}

TEST(CudaSimParser, refusesOperandsThatDoNotFit) {
  EXPECT_THAT(loadError("add.s32 %r0, %r1;"), HasSubstr("3 operands expected, 2 found"));
  EXPECT_THAT(loadError("add.s32 %r0, %r1, %d1;"), HasSubstr("register of 8 bytes where 4 are expected"));
  EXPECT_THAT(loadError("add.s32 5, %r1, %r2;"), HasSubstr("a result must be a register"));
  EXPECT_THAT(loadError("add.s32 %r0, %p1, %r2;"), HasSubstr("predicate where a value is expected"));
  EXPECT_THAT(loadError("add.f32 %f0, %f1, 1;"), HasSubstr("integer where a float is expected"));
  EXPECT_THAT(loadError("add.f32 %f0, %f1, 0d3FF0000000000000;"), HasSubstr("float of another width"));
  EXPECT_THAT(loadError("@%r0 mov.u32 %r1, 1;"), HasSubstr("a guard must be a predicate"));
  EXPECT_THAT(loadError("ld.global.v2.u32 %r0, [%d0];"), HasSubstr("2 elements expected"));
  EXPECT_THAT(loadError("ld.global.u64 %r0, [%d0];"), HasSubstr("a register too narrow"));
  EXPECT_THAT(loadError("ld.global.u32 %r0, %d0;"), HasSubstr("an address in brackets"));
  EXPECT_THAT(loadError("ld.global.u32 %r0, [%h0];"), HasSubstr("an address register has 8 or 4 bytes"));
  EXPECT_THAT(loadError("ld.param.u64 %d0, [in+8];"), HasSubstr("reads beyond the parameter"));
  EXPECT_THAT(loadError("ld.param.u64 %d0, [out];"), HasSubstr("the name of a parameter expected"));
  EXPECT_THAT(loadError("setp.lt.s32 %p0|%r0, %r1, %r2;"), HasSubstr("the second result must be a predicate"));
}

TEST(CudaSimParser, refusesModulesThatItCannotRead) {
  Memory memory;
  auto error = [&](const std::string &text) {
    Result<Module> loaded = Module::load(text, memory);
    return loaded ? std::string() : loaded.error().message;
  };
  EXPECT_THAT(error(".func f() { ret; }"), HasSubstr("PTX line 1: '.func': not supported in a module"));
  EXPECT_THAT(error(".entry k() { ret;"), HasSubstr("} is missing"));
  EXPECT_THAT(error(".entry k() { ret; } .entry k() { ret; }"), HasSubstr("two kernels of the name k"));
  EXPECT_THAT(error(".entry k(.param .align 8 .b8 p[0]) { ret; }"), HasSubstr("parameter without a size"));
  EXPECT_THAT(error(".entry k(.reg .b32 p) { ret; }"), HasSubstr(".param expected"));
  EXPECT_THAT(error(".global .u32 g[1] = {1, 2};"), HasSubstr("initial value expected"));
  EXPECT_THAT(error(".entry k() { .reg .q32 %r; }"), HasSubstr("register type expected"));
  EXPECT_THAT(error(".entry k() { .reg .b32 %r<; }"), HasSubstr("number of registers expected"));
}

TEST(CudaSimParser, laysOutParameters) {
  SimBench bench(kHead + ".visible .entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .u8 c, "
                         ".param .align 8 .b8 d[24]) { ret; }");
  const std::vector<Parameter> &parameters = bench.kernel().parameters;
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[1].offset, 8u);
  EXPECT_EQ(parameters[2].offset, 16u);
  EXPECT_EQ(parameters[3].offset, 24u);
  EXPECT_EQ(bench.kernel().parameterBytes, 48u);
}

} // namespace
} // namespace llmc::cudasim
