// A kernel for devices whose copies are the plan's code.
#pragma once

namespace llmc::test {

/// "copy": each thread of the one block copies a word.
inline constexpr char kCopyCode[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 src, .param .u64 dst) {
  .reg .b32 %r<3>; .reg .b64 %d<4>;
  ld.param.u64 %d0, [src]; ld.param.u64 %d1, [dst];
  mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
  ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1;
  ret;
}
)";

} // namespace llmc::test
