// Each arithmetic, bit and comparison instruction against values worked out by hand.
#include "tests/cudasim/SimRun.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace llmc::cudasim {
namespace {

constexpr uint64_t k32 = 0xffffffff;

TEST(CudaSimArithmetic, integers) {
  checkSnippets({
      {"add.s32 %r3, %r0, %r1;", "%r3", {k32, 2}, 1},
      {"add.s64 %d3, %d0, -8;", "%d3", {5}, uint64_t(-3)},
      {"add.s16 %h3, %h0, %h1;", "%h3", {0xffff, 3}, 2},
      {"sub.s32 %r3, %r0, %r1;", "%r3", {1, 3}, uint32_t(-2)},
      {"mul.lo.s32 %r3, %r0, %r1;", "%r3", {0x10001, 0x10001}, 0x20001},
      {"mul.hi.u32 %r3, %r0, %r1;", "%r3", {k32, k32}, 0xfffffffe},
      {"mul.hi.s32 %r3, %r0, %r1;", "%r3", {k32, k32}, 0},
      {"mul.hi.u64 %d3, %d0, %d1;", "%d3", {uint64_t(1) << 63, 6}, 3},
      {"mul.wide.u32 %d3, %r0, 16;", "%d3", {k32}, k32 * 16},
      {"mul.wide.s32 %d3, %r0, 16;", "%d3", {k32}, uint64_t(-16)},
      {"mul.wide.u16 %r3, %h0, %h1;", "%r3", {0xffff, 0xffff}, 0xfffe0001},
      {"mad.lo.s32 %r3, %r0, %r1, %r2;", "%r3", {5, 7, 11}, 46},
      {"mad.hi.u32 %r3, %r0, %r1, %r2;", "%r3", {k32, k32, 3}, 1},
      {"mad.wide.s32 %d3, %r0, %r1, %d2;", "%d3", {k32, 5, 7}, 2},
      {"div.s32 %r3, %r0, %r1;", "%r3", {uint32_t(-7), 2}, uint32_t(-3)},
      {"div.u32 %r3, %r0, %r1;", "%r3", {uint32_t(-7), 2}, 0x7ffffffc},
      {"div.u32 %r3, %r0, %r1;", "%r3", {5, 0}, k32},
      {"div.s32 %r3, %r0, %r1;", "%r3", {0x80000000, k32}, 0x80000000},
      {"rem.s32 %r3, %r0, %r1;", "%r3", {uint32_t(-7), 2}, uint32_t(-1)},
      {"rem.u64 %d3, %d0, %d1;", "%d3", {1000000007, 10}, 7},
      {"min.s32 %r3, %r0, %r1;", "%r3", {k32, 1}, k32},
      {"min.u32 %r3, %r0, %r1;", "%r3", {k32, 1}, 1},
      {"max.s64 %d3, %d0, %d1;", "%d3", {uint64_t(-5), 1}, 1},
      {"max.u32 %r3, %r0, %r1;", "%r3", {k32, 1}, k32},
      {"abs.s32 %r3, %r0;", "%r3", {uint32_t(-9)}, 9},
      {"neg.s64 %d3, %d0;", "%d3", {9}, uint64_t(-9)},
  });
}

TEST(CudaSimArithmetic, bits) {
  checkSnippets({
      {"and.b32 %r3, %r0, %r1;", "%r3", {0xf0f0, 0xff00}, 0xf000},
      {"or.b64 %d3, %d0, %d1;", "%d3", {0xf0, 0x0f00000000}, 0xf000000f0},
      {"xor.b16 %h3, %h0, -1;", "%h3", {0x0ff0}, 0xf00f},
      {"not.b32 %r3, %r0;", "%r3", {1}, 0xfffffffe},
      {"and.pred %p3, %p0, %p1;", "%p3", {1, 0}, 0},
      {"or.pred %p3, %p0, %p1;", "%p3", {1, 0}, 1},
      {"not.pred %p3, %p0;", "%p3", {1}, 0},
      {"mov.pred %p3, -1;", "%p3", {0}, 1},
      {"shl.b32 %r3, %r0, 4;", "%r3", {0xf000000f}, 0xf0},
      {"shl.b32 %r3, %r0, %r1;", "%r3", {1, 32}, 0},
      {"shl.b16 %h3, %h0, 8;", "%h3", {0x1ff}, 0xff00},
      {"shr.u32 %r3, %r0, 31;", "%r3", {0x80000000}, 1},
      {"shr.s32 %r3, %r0, %r1;", "%r3", {0x80000000, 99}, k32},
      {"shr.u64 %d3, %d0, 32;", "%d3", {0x123456789abcdef0}, 0x12345678},
      {"shf.l.wrap.b32 %r3, %r0, %r1, 8;", "%r3", {0x11223344, 0x55667788}, 0x66778811},
      {"shf.r.wrap.b32 %r3, %r0, %r1, 8;", "%r3", {0x11223344, 0x55667788}, 0x88112233},
      {"shf.l.clamp.b32 %r3, %r0, %r1, 40;", "%r3", {0x11223344, 0x55667788}, 0x11223344},
      {"shf.r.clamp.b32 %r3, %r0, %r1, 40;", "%r3", {0x11223344, 0x55667788}, 0x55667788},
      {"prmt.b32 %r3, %r0, %r1, 0x5410U;", "%r3", {0xaaaa1111, 0xbbbb2222}, 0x22221111},
      {"prmt.b32 %r3, %r0, %r1, 0x7632U;", "%r3", {0xaaaa1111, 0xbbbb2222}, 0xbbbbaaaa},
      {"prmt.b32 %r3, %r0, %r1, 8;", "%r3", {0x80, 0}, 0x808080ff},
      {"bfe.u32 %r3, %r0, 8, 8;", "%r3", {0x12345678}, 0x56},
      {"bfe.u64 %d3, %d0, 28, 8;", "%d3", {0x123456789abcdef0}, 0x89},
      {"bfe.u64 %d3, %d0, 60, 8;", "%d3", {0x123456789abcdef0}, 1},
      {"bfe.s64 %d3, %d0, 60, 4;", "%d3", {0x8000000000000000}, 0xfffffffffffffff8},
      {"bfe.s32 %r3, %r0, 4, 4;", "%r3", {0x80}, 0xfffffff8},
      {"bfi.b32 %r3, %r0, %r1, 8, 8;", "%r3", {0xab, 0x11223344}, 0x1122ab44},
      {"popc.b32 %r3, %r0;", "%r3", {0xf0f}, 8},
      {"clz.b32 %r3, %r0;", "%r3", {1}, 31},
      {"clz.b64 %r3, %d0;", "%r3", {1}, 63},
      {"brev.b32 %r3, %r0;", "%r3", {1}, 0x80000000},
      {"lop3.b32 %r3, %r0, %r1, %r2, 0xE8;", "%r3", {0xff00, 0xf0f0, 0xcccc}, 0xfcc0},
  });
}

TEST(CudaSimArithmetic, floats) {
  checkSnippets({
      {"add.rn.f32 %f3, %f0, %f1;", "%f3", {f(1.5f), f(2)}, f(3.5f)},
      {"sub.f32 %f3, %f0, %f1;", "%f3", {f(1.5f), f(2)}, f(-0.5f)},
      {"mul.rn.f32 %f3, %f0, 0f40000000;", "%f3", {f(1.5f)}, f(3)},
      {"mul.f64 %x3, %x0, %x1;", "%x3", {d(3), d(0.5)}, d(1.5)},
      // (1 + 2^-12)^2 - 1 - 2^-11 = 2^-24 only where the product is not rounded.
      {"fma.rn.f32 %f3, %f0, %f0, %f1;", "%f3", {f(1 + 0x1p-12f), f(-1 - 0x1p-11f)}, f(0x1p-24f)},
      {"fma.rn.f64 %x3, %x0, %x1, %x2;", "%x3", {d(2), d(3), d(4)}, d(10)},
      {"add.ftz.f32 %f3, %f0, %f1;", "%f3", {f(0x1p-130f), f(0x1p-130f)}, f(0)},
      {"mul.rn.ftz.f32 %f3, %f0, %f1;", "%f3", {f(-0x1p-100f), f(0x1p-30f)}, f(-0.0f)},
      {"div.rn.f32 %f3, %f0, %f1;", "%f3", {f(1), f(3)}, f(1.0f / 3)},
      {"div.full.f32 %f3, %f0, %f1;", "%f3", {f(6), f(3)}, f(2)},
      {"div.approx.f32 %f3, %f0, %f1;", "%f3", {f(6), f(4)}, f(1.5f)},
      {"rcp.rn.f32 %f3, %f0;", "%f3", {f(3)}, f(1.0f / 3)},
      {"rcp.approx.ftz.f32 %f3, %f0;", "%f3", {f(4)}, f(0.25f)},
      {"sqrt.rn.f32 %f3, %f0;", "%f3", {f(2)}, f(std::sqrt(2.0f))},
      {"sqrt.approx.f32 %f3, %f0;", "%f3", {f(9)}, f(3)},
      {"rsqrt.approx.f32 %f3, %f0;", "%f3", {f(16)}, f(0.25f)},
      {"ex2.approx.f32 %f3, %f0;", "%f3", {f(-3)}, f(0.125f)},
      {"ex2.approx.ftz.f32 %f3, %f0;", "%f3", {f(-kInf)}, f(0)},
      {"lg2.approx.f32 %f3, %f0;", "%f3", {f(8)}, f(3)},
      {"tanh.approx.f32 %f3, %f0;", "%f3", {f(0.5f)}, f(std::tanh(0.5f))},
      {"sin.approx.f32 %f3, %f0;", "%f3", {f(0)}, f(0)},
      {"cos.approx.f32 %f3, %f0;", "%f3", {f(0)}, f(1)},
      {"neg.f32 %f3, %f0;", "%f3", {f(0)}, f(-0.0f)},
      {"abs.f32 %f3, %f0;", "%f3", {f(-2)}, f(2)},
      {"abs.f64 %x3, %x0;", "%x3", {d(-2)}, d(2)},
      {"min.f32 %f3, %f0, %f1;", "%f3", {f(kNan), f(2)}, f(2)},
      {"max.f32 %f3, %f0, %f1;", "%f3", {f(-0.0f), f(0)}, f(0)},
      {"min.f32 %f3, %f0, %f1;", "%f3", {f(0), f(-0.0f)}, f(-0.0f)},
      {"max.f32 %f3, %f0, %f1;", "%f3", {f(3), f(2)}, f(3)},
      {"copysign.f32 %f3, %f0, %f1;", "%f3", {f(-1), f(5)}, f(-5)},
  });
  EXPECT_TRUE(std::isnan(
      std::bit_cast<float>(static_cast<uint32_t>(runSnippet("max.NaN.f32 %f3, %f0, %f1;", "%f3", {f(kNan), f(2)})))));
}

TEST(CudaSimArithmetic, pairsOf16Bits) {
  checkSnippets({
      // bf16: 1.0 is 0x3f80, 2.0 0x4000, 3.0 0x4040.
      {"add.bf16 %h3, %h0, %h1;", "%h3", {0x3f80, 0x4000}, 0x4040},
      {"fma.rn.bf16 %h3, %h0, %h1, %h2;", "%h3", {0x4000, 0x4000, 0xbf80}, 0x4040},
      {"fma.rn.bf16x2 %r3, %r0, %r1, %r2;", "%r3", {0x40003f80, 0x40004000, 0xbf803f80}, 0x40404040},
      {"max.bf16x2 %r3, %r0, %r1;", "%r3", {0x40003f80, 0x3f804000}, 0x40004000},
      {"min.bf16x2 %r3, %r0, %r1;", "%r3", {0x40003f80, 0x3f804000}, 0x3f803f80},
      {"neg.bf16x2 %r3, %r0;", "%r3", {0x40003f80}, 0xc000bf80},
      {"abs.bf16 %h3, %h0;", "%h3", {0xc000}, 0x4000},
      // f16: 1.0 is 0x3c00, 2.0 0x4000, 3.0 0x4200.
      {"add.f16 %h3, %h0, %h1;", "%h3", {0x3c00, 0x4000}, 0x4200},
      {"mul.f16x2 %r3, %r0, %r1;", "%r3", {0x40003c00, 0x3c004200}, 0x40004200},
      {"fma.rn.f16 %h3, %h0, %h1, %h2;", "%h3", {0x4000, 0x4000, 0xbc00}, 0x4200},
      // 1·1 + 2^-9 is a tie that goes to even; a bit more must go up although f32 cannot hold it.
      {"fma.rn.bf16 %h3, %h0, %h1, %h2;", "%h3", {0x3f80, 0x3f80, 0x3b80}, 0x3f80},
      {"fma.rn.bf16 %h3, %h0, %h1, %h2;", "%h3", {0x3b81, 0x3f80, 0x3f80}, 0x3f81},
  });
}

TEST(CudaSimArithmetic, comparisons) {
  checkSnippets({
      {"setp.lt.s32 %p3, %r0, %r1;", "%p3", {k32, 1}, 1},
      {"setp.lt.u32 %p3, %r0, %r1;", "%p3", {k32, 1}, 0},
      {"setp.lo.u32 %p3, %r0, %r1;", "%p3", {1, 2}, 1},
      {"setp.hs.u64 %p3, %d0, %d1;", "%p3", {2, 2}, 1},
      {"setp.eq.b16 %p3, %h0, 7;", "%p3", {7}, 1},
      {"setp.ge.s64 %p3, %d0, -1;", "%p3", {uint64_t(-1)}, 1},
      {"setp.gt.f32 %p3, %f0, %f1;", "%p3", {f(kNan), f(1)}, 0},
      {"setp.gtu.f32 %p3, %f0, %f1;", "%p3", {f(kNan), f(1)}, 1},
      {"setp.neu.f32 %p3, %f0, %f1;", "%p3", {f(kNan), f(kNan)}, 1},
      {"setp.ne.f32 %p3, %f0, %f1;", "%p3", {f(kNan), f(kNan)}, 0},
      {"setp.equ.f32 %p3, %f0, %f1;", "%p3", {f(1), f(1)}, 1},
      {"setp.ltu.f64 %p3, %x0, %x1;", "%p3", {d(2), d(1)}, 0},
      {"setp.nan.f32 %p3, %f0, %f0;", "%p3", {f(kNan)}, 1},
      {"setp.num.f32 %p3, %f0, %f0;", "%p3", {f(kNan)}, 0},
      {"setp.le.and.s32 %p3, %r0, %r1, %p2;", "%p3", {1, 2, 0}, 0},
      {"setp.le.or.s32 %p3, %r0, %r1, %p2;", "%p3", {3, 2, 1}, 1},
      {"setp.le.xor.s32 %p3, %r0, %r1, %p2;", "%p3", {1, 2, 1}, 0},
      {"setp.lt.s32 %p4|%p3, %r0, %r1;", "%p3", {1, 2}, 0},
      {"selp.f32 %f3, %f0, %f1, %p2;", "%f3", {f(1), f(2), 1}, f(1)},
      {"selp.b64 %d3, %d0, %d1, %p2;", "%d3", {1, 2, 0}, 2},
      {"slct.f32.s32 %f3, %f0, %f1, %r2;", "%f3", {f(1), f(2), k32}, f(2)},
      {"slct.b32.f32 %r3, %r0, %r1, %f2;", "%r3", {1, 2, f(0)}, 1},
      {"@%p0 mov.u32 %r1, 5; @!%p0 mov.u32 %r1, 6;", "%r1", {1, 9}, 5},
      {"@%p0 mov.u32 %r1, 5; @!%p0 mov.u32 %r1, 6;", "%r1", {0, 9}, 6},
  });
}

} // namespace
} // namespace llmc::cudasim
