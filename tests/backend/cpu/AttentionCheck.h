// Attention and its gradient as launches, and the check of a case against the reference.
#pragma once

#include "tests/backend/cpu/AttentionReference.h"
#include "tests/backend/cpu/LaunchRunner.h"

namespace llmc::test {

/// Where q, k, v (or their gradients) lie in one packed buffer or three dense ones.
struct Rows {
  int64_t stride, offset;
};
struct Layout {
  Rows q, k, v;
  explicit Layout(const AttentionCase &c) : q{c.columns(), 0}, k{c.kvColumns(), 0}, v{c.kvColumns(), 0} {
    if (!c.isPacked)
      return;
    int64_t stride = c.columns() + 2 * c.kvColumns();
    q = {stride, 0};
    k = {stride, c.columns()};
    v = {stride, c.columns() + c.kvColumns()};
  }
};

inline std::vector<float> pack(const AttentionCase &c, const AttentionTensors &t) {
  std::vector<float> packed;
  for (int64_t row = 0; row < c.batch * c.queries; ++row)
    for (auto [tensor, columns] : {std::pair(&t.q, c.columns()), {&t.k, c.kvColumns()}, {&t.v, c.kvColumns()}})
      packed.insert(packed.end(), tensor->begin() + row * columns, tensor->begin() + (row + 1) * columns);
  return packed;
}

/// Rows taken out of a buffer again.
inline std::vector<float> unpack(const std::vector<float> &buffer, Rows rows, int64_t numRows, int64_t columns) {
  std::vector<float> dense;
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t j = 0; j < columns; ++j)
      dense.push_back(buffer[size_t(rows.offset + row * rows.stride + j)]);
  return dense;
}

class Attention {
public:
  Attention(const AttentionCase &c, KernelKind kind, int threads) : c(c), layout(c), runner(kind, threads) {
    runner.ints({{"batch", c.batch},
                 {"queries", c.queries},
                 {"keys", c.keys},
                 {"heads", c.heads},
                 {"kvHeads", c.kvHeads},
                 {"headSize", c.headSize},
                 {"causal", c.causal},
                 {"window", c.window},
                 {"type", int64_t(c.isBf16 ? ElementType::bf16 : ElementType::f32)},
                 {"qRowStride", layout.q.stride},
                 {"qOffset", layout.q.offset},
                 {"kRowStride", layout.k.stride},
                 {"kOffset", layout.k.offset},
                 {"vRowStride", layout.v.stride},
                 {"vOffset", layout.v.offset},
                 {"maskBatchStride", c.maskStrides[0]},
                 {"maskHeadStride", c.maskStrides[1]},
                 {"maskQueryStride", c.maskStrides[2]},
                 {"maskKeyStride", c.maskStrides[3]}});
    runner.number("scale", c.scale);
  }

  void inputs(const AttentionTensors &t) {
    if (c.isPacked) {
      for (const char *name : {"q", "k", "v"})
        put(name, pack(c, t));
    } else {
      put("q", t.q);
      put("k", t.k);
      put("v", t.v);
    }
    if (c.hasMask)
      runner.operand("mask", t.mask);
  }
  void put(const char *name, const std::vector<float> &values) {
    if (c.isBf16)
      runner.operand(name, asBf16(values));
    else
      runner.operand(name, values);
  }
  std::vector<float> get(const char *name) {
    return c.isBf16 ? fromBf16(runner.result<uint16_t>(name)) : runner.result<float>(name);
  }

  const AttentionCase &c;
  Layout layout;
  LaunchRunner runner;
};

struct Gradients {
  std::vector<float> dq, dk, dv;
  bool operator==(const Gradients &) const = default;
};

struct Outcome {
  std::vector<float> out, lse;
  Gradients gradients;
  bool operator==(const Outcome &) const = default;
};

/// Forward and backward of the tensors against the reference, and again on more threads.
void checkTensors(const AttentionCase &c, AttentionTensors &t, Outcome &outcome);
/// The same with random inputs.
void check(const AttentionCase &c);

} // namespace llmc::test
