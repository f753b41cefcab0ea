// Scaled dot-product attention as the CPU computes it, for callers of any instruction set. The code behind these
// functions (Attention.cpp) is compiled once per ISA level, each copy in its own namespace, and reached through a
// table.
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "runtime/Plan.h"

#include <cstdint>

namespace llmc {

/// Sizes and strides of runtime/Kernels.def's "attention", in elements.
struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, kvHeads = 0, headSize = 0;
  bool causal = false;
  int64_t window = 0; ///< 0: none
  ElementType type = ElementType::f32;
  float scale = 1;
  int64_t maskBatchStride = 0, maskHeadStride = 0, maskQueryStride = 0, maskKeyStride = 0;
};

/// Rows of heads in memory: token t of batch b starts at data + (b * tokens + t) * rowStride elements.
struct AttentionRows {
  std::byte *data = nullptr;
  int64_t rowStride = 0;
};

/// One forward pass.
struct AttentionForward {
  AttentionShape shape;
  AttentionRows q, k, v, out;
  const float *mask = nullptr; ///< or none
  float *lse = nullptr;        ///< (B, H, T)
  int64_t taskQueries = 256;   ///< queries of one task; the result does not depend on it
};

/// One backward pass.
struct AttentionBackward {
  AttentionShape shape;
  AttentionRows q, k, v, out, dOut, dq, dk, dv;
  const float *mask = nullptr;
  const float *lse = nullptr;
  float *dqParts = nullptr; ///< where each stretch of a cut head leaves its part of dq; none: heads are not cut
};

/// Attention for one ISA level. Work is cut into tasks that share nothing but their inputs, so that results do not
/// depend on which thread takes which task. Each call needs scratch of its own: that many bytes, 64-byte aligned.
///
/// The backward pass has a task for each head of k and v. Where these are too few for the threads, heads are cut into
/// numStretches stretches of keys, a task each, that leave parts of dq in dqPartsBytes of shared memory, and sumDq
/// adds them up; the bits are the same.
struct AttentionFunctions {
  uint64_t (*forwardScratchBytes)(const AttentionShape &);
  void (*forward)(const AttentionForward &, int64_t task, std::byte *scratch);
  int64_t (*numStretches)(const AttentionShape &);
  uint64_t (*dqPartsBytes)(const AttentionShape &);
  uint64_t (*backwardScratchBytes)(const AttentionShape &);
  void (*backward)(const AttentionBackward &, int64_t task, std::byte *scratch);
  int64_t (*numSumTasks)(const AttentionShape &);
  void (*sumDq)(const AttentionBackward &, int64_t task, std::byte *scratch);
};

namespace attention_v3 {
extern const AttentionFunctions kFunctions;
}
namespace attention_v4 {
extern const AttentionFunctions kFunctions;
}
namespace attention_v4_bf16 {
extern const AttentionFunctions kFunctions;
}

/// The functions for a level.
const AttentionFunctions &attentionFunctions(IsaLevel level);

} // namespace llmc
