// Attention and its gradient in f64, one element at a time, with every option of the kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace llmc::test {

struct AttentionCase {
  int64_t batch = 1, queries = 1, keys = 1, heads = 1, kvHeads = 1, headSize = 1;
  bool causal = false;
  int64_t window = 0;
  bool isPacked = false; ///< q, k and v side by side in one buffer
  bool isBf16 = false;
  bool hasMask = false;
  int64_t maskStrides[4] = {0, 0, 0, 0}; ///< batch, head, query, key
  double scale = 0.3;

  int64_t columns() const { return heads * headSize; }
  int64_t kvColumns() const { return kvHeads * headSize; }
  bool sees(int64_t query, int64_t key) const;
};

/// Dense tensors: q, out and their gradients (B, T, H, D); k and v (B, S, Hkv, D); lse (B, H, T).
struct AttentionTensors {
  std::vector<float> q, k, v, mask, dOut;
  std::vector<double> out, lse, dq, dk, dv;
  /// Of each element of out, dq, dk and dv: the sum of its terms' magnitudes, which bounds what rounding them can do.
  std::vector<double> outTerms, dqTerms, dkTerms, dvTerms;
};

/// Random inputs for a case.
AttentionTensors makeAttentionInputs(const AttentionCase &c);
/// Fills out and lse.
void referenceForward(const AttentionCase &c, AttentionTensors &t);
/// Fills dq, dk and dv from what `out` holds.
void referenceBackward(const AttentionCase &c, AttentionTensors &t);

} // namespace llmc::test
