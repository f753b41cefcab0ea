// Conversions of all widths and roundings, moves, packing, addresses, loads and stores of each width.
#include "tests/cudasim/SimRun.h"

#include <cmath>
#include <gtest/gtest.h>

namespace llmc::cudasim {
namespace {

TEST(CudaSimConvert, integersToIntegers) {
  checkSnippets({
      {"cvt.u64.u32 %d3, %r0;", "%d3", {0xffffffff}, 0xffffffff},
      {"cvt.s64.s32 %d3, %r0;", "%d3", {0xffffffff}, uint64_t(-1)},
      {"cvt.u32.u64 %r3, %d0;", "%r3", {0x123456789}, 0x23456789},
      {"cvt.u16.u32 %h3, %r0;", "%h3", {0x12345}, 0x2345},
      {"cvt.u32.u16 %r3, %h0;", "%r3", {0xffff}, 0xffff},
      {"cvt.s32.s16 %r3, %h0;", "%r3", {0xffff}, 0xffffffff},
      {"cvt.s16.s8 %h3, %h0;", "%h3", {0x80}, 0xff80},
      {"cvt.u16.u8 %h3, %h0;", "%h3", {0x1ff}, 0xff},
      {"cvt.s32.s8 %r3, %r0;", "%r3", {0x180}, 0xffffff80},
      {"cvt.s64.s16 %d3, %h0;", "%d3", {0x8000}, uint64_t(-0x8000)},
  });
}

TEST(CudaSimConvert, integersAndFloats) {
  checkSnippets({
      {"cvt.rn.f32.s32 %f3, %r0;", "%f3", {uint32_t(-3)}, f(-3)},
      {"cvt.rn.f32.u32 %f3, %r0;", "%f3", {0xffffffff}, f(0x1p32f)},
      {"cvt.rn.f32.u64 %f3, %d0;", "%f3", {uint64_t(1) << 40}, f(0x1p40f)},
      {"cvt.rn.f64.s64 %x3, %d0;", "%x3", {uint64_t(-3)}, d(-3)},
      {"cvt.rn.f32.u16 %f3, %h0;", "%f3", {40000}, f(40000)},
      {"cvt.rzi.s32.f32 %r3, %f0;", "%r3", {f(-2.9f)}, uint32_t(-2)},
      {"cvt.rni.s32.f32 %r3, %f0;", "%r3", {f(2.5f)}, 2},
      {"cvt.rmi.s32.f32 %r3, %f0;", "%r3", {f(-2.1f)}, uint32_t(-3)},
      {"cvt.rpi.s32.f32 %r3, %f0;", "%r3", {f(2.1f)}, 3},
      {"cvt.rzi.s32.f32 %r3, %f0;", "%r3", {f(kNan)}, 0},
      {"cvt.rzi.s32.f32 %r3, %f0;", "%r3", {f(kInf)}, 0x7fffffff},
      {"cvt.rzi.u32.f32 %r3, %f0;", "%r3", {f(-5)}, 0},
      {"cvt.rzi.u64.f64 %d3, %x0;", "%d3", {d(1e30)}, ~uint64_t(0)},
      {"cvt.rzi.s64.f32 %d3, %f0;", "%d3", {f(-0x1p40f)}, uint64_t(-(int64_t(1) << 40))},
  });
}

TEST(CudaSimConvert, floatsToFloats) {
  checkSnippets({
      {"cvt.f64.f32 %x3, %f0;", "%x3", {f(1.5f)}, d(1.5)},
      {"cvt.rn.f32.f64 %f3, %x0;", "%f3", {d(1.0 / 3)}, f(1.0f / 3)},
      {"cvt.rni.f32.f32 %f3, %f0;", "%f3", {f(3.5f)}, f(4)},
      {"cvt.rzi.f32.f32 %f3, %f0;", "%f3", {f(-3.5f)}, f(-3)},
      {"cvt.rmi.f32.f32 %f3, %f0;", "%f3", {f(-3.5f)}, f(-4)},
      {"cvt.rpi.f64.f64 %x3, %x0;", "%x3", {d(3.2)}, d(4)},
      {"cvt.rn.bf16.f32 %h3, %f0;", "%h3", {0x3f808000}, 0x3f80},
      {"cvt.rn.bf16.f32 %h3, %f0;", "%h3", {0x3f818000}, 0x3f82},
      {"cvt.rz.bf16.f32 %h3, %f0;", "%h3", {0x3f81ffff}, 0x3f81},
      {"cvt.rn.bf16.f32 %h3, %f0;", "%h3", {f(kNan)}, 0x7fff},
      {"cvt.f32.bf16 %f3, %h0;", "%f3", {0x3f81}, 0x3f810000},
      {"cvt.rn.bf16x2.f32 %r3, %f0, %f1;", "%r3", {f(2), f(1)}, 0x40003f80},
      {"cvt.rz.bf16x2.f32 %r3, %f0, %f1;", "%r3", {0x3f81ffff, f(1)}, 0x3f813f80},
      {"cvt.rn.f16x2.f32 %r3, %f0, %f1;", "%r3", {f(2), f(1)}, 0x40003c00},
      {"cvt.rn.f16.f32 %h3, %f0;", "%h3", {f(65536)}, 0x7c00},
      {"cvt.f32.f16 %f3, %h0;", "%f3", {0x3c00}, f(1)},
      {"cvt.rna.tf32.f32 %r3, %f0;", "%r3", {0x3f801000}, 0x3f802000},
  });
}

TEST(CudaSimConvert, movesAndPacking) {
  checkSnippets({
      {"mov.b32 %r3, %f0;", "%r3", {f(1)}, 0x3f800000},
      {"mov.b64 %d3, %x0;", "%d3", {d(1)}, d(1)},
      {"mov.f32 %f3, 0f3F800000;", "%f3", {}, f(1)},
      {"mov.f64 %x3, 0d3FF0000000000000;", "%x3", {}, d(1)},
      {"mov.u32 %r3, %ntid.x;", "%r3", {}, 1},
      {"mov.u32 %r3, %laneid;", "%r3", {}, 0},
      {"mov.u32 %r3, WARP_SZ;", "%r3", {}, 32},
      {"mov.b32 %r3, {%h0, %h1};", "%r3", {0x1111, 0x2222}, 0x22221111},
      {"mov.b32 {%h3, %h4}, %r0;", "%h4", {0x22221111}, 0x2222},
      {"mov.b64 %d3, {%r0, %r1};", "%d3", {1, 2}, 0x200000001},
      {"mov.b64 {_, %r3}, %d0;", "%r3", {0x200000001}, 2},
      {"{ .reg .b32 tmp; mov.b64 {tmp, %r3}, %d0; }", "%r3", {0x500000001}, 5},
      {"mov.b64 %d3, {%h0, %h1, %h0, %h1};", "%d3", {1, 2}, 0x0002000100020001},
  });
}

TEST(CudaSimConvert, loadsExtendToTheRegister) {
  checkSnippets({
      {"ld.global.s8 %h3, [%d8];", "%h3", {0x80}, 0xff80},
      {"ld.global.u8 %h3, [%d8];", "%h3", {0x1ff}, 0xff},
      {"ld.global.s16 %r3, [%d8+2];", "%r3", {0x80000000}, 0xffff8000},
      {"ld.global.u16 %d3, [%d8+2];", "%d3", {0x80000000}, 0x8000},
      {"ld.global.s32 %d3, [%d8];", "%d3", {0x80000000}, 0xffffffff80000000},
      {"ld.global.nc.v2.b32 {%r3, %r4}, [%d8];", "%r4", {0x500000001}, 5},
      {"ld.global.nc.L1::no_allocate.v4.u32 {%r3, %r4, %r5, %r6}, [%d8];", "%r6", {1, 0x700000000}, 7},
      {"ld.global.v4.b16 {%h3, %h4, %h5, %h6}, [%d8];", "%h5", {0x0004000300020001}, 3},
      {"ldu.global.f32 %f3, [%d8];", "%f3", {f(3)}, f(3)},
      {"ld.volatile.global.u32 %r3, [%d8];", "%r3", {9}, 9},
      {"ld.u32 %r3, [%d8];", "%r3", {9}, 9},
      {"cvta.to.global.u64 %d4, %d8; ld.global.u32 %r3, [%d4];", "%r3", {9}, 9},
      {".shared .align 8 .b8 buffer[16]; st.shared.v2.u32 [buffer+8], {%r0, 7}; ld.shared.u32 %r3, [buffer+12];",
       "%r3",
       {9},
       7},
      {".shared .align 8 .b8 s[16]; mov.u64 %d4, s; st.shared.u16 [%d4], %h0; ld.shared.u16 %r3, [s];", "%r3", {9}, 9},
      {".shared .align 8 .b8 s[16]; mov.u32 %r4, s; st.shared.u32 [%r4+4], %r0; ld.shared.u32 %r3, [s+4];",
       "%r3",
       {9},
       9},
      {".shared .align 8 .b8 s[16]; mov.u64 %d4, s; cvta.shared.u64 %d5, %d4; st.u64 [%d5+8], %d0; "
       "cvta.to.shared.u64 %d6, %d5; ld.shared.u64 %d3, [%d6+8];",
       "%d3",
       {11},
       11},
      {".local .align 8 .b8 depot[8]; mov.u64 %d4, depot; st.local.u32 [%d4+4], %r0; cvta.local.u64 %d5, %d4; "
       "ld.u32 %r3, [%d5+4];",
       "%r3",
       {13},
       13},
  });
}

TEST(CudaSimConvert, moduleVariables) {
  SimBench bench(kHead + R"(
.global .align 4 .u32 table[3] = {5, 6, -1};
.const .align 4 .f32 scale = 0f40000000;
.global .align 8 .b8 zeros[8];
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [out];
  mov.u64 %d1, table;
  ld.global.u32 %r0, [%d1+4];
  ld.const.u32 %r1, [scale];
  ld.global.u32 %r2, [zeros+4];
  st.global.u32 [%d0], %r0;
  st.global.v2.u32 [%d0+8], {%r1, %r2};
  ret;
})");
  uint64_t out = bench.reserve(16);
  EXPECT_FALSE(bench.run(1, 1, {out}));
  std::vector<uint32_t> values = bench.download<uint32_t>(out, 4);
  EXPECT_EQ(values[0], 6u);
  EXPECT_EQ(values[2], 0x40000000u);
  EXPECT_EQ(values[3], 0u);
}

} // namespace
} // namespace llmc::cudasim
