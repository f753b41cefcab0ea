// Straight loops over the definition; a query that sees no key has a zero result and no gradient.
#include "tests/backend/cpu/AttentionReference.h"

#include "tests/backend/cpu/LaunchRunner.h"

#include <cmath>
#include <limits>

namespace llmc::test {

bool AttentionCase::sees(int64_t query, int64_t key) const {
  int64_t newest = query + keys - queries;
  return (!causal || key <= newest) && (window == 0 || key > newest - window);
}

AttentionTensors makeAttentionInputs(const AttentionCase &c) {
  AttentionTensors t;
  auto numbers = [&](int64_t n, unsigned seed) {
    std::vector<float> values = randomNumbers(size_t(n), seed);
    return c.isBf16 ? toBf16Precision(values) : values;
  };
  t.q = numbers(c.batch * c.queries * c.columns(), 11);
  t.k = numbers(c.batch * c.keys * c.kvColumns(), 12);
  t.v = numbers(c.batch * c.keys * c.kvColumns(), 13);
  t.dOut = numbers(c.batch * c.queries * c.columns(), 14);
  if (c.hasMask) {
    t.mask = randomNumbers(size_t(c.batch * c.heads * c.queries * c.keys), 15);
    for (size_t i = 3; i < t.mask.size(); i += 6)
      t.mask[i] = i % 4 == 1 ? -std::numeric_limits<float>::infinity() : -1e30f;
  }
  return t;
}

namespace {
/// Calls body(batch, head, query, weights over the keys, log of their sum).
template <typename Body> void forRows(const AttentionCase &c, const AttentionTensors &t, Body body) {
  std::vector<double> p(size_t(c.keys));
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        double max = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t s = 0; s < c.keys; ++s) {
          double score = 0;
          for (int64_t d = 0; d < c.headSize; ++d)
            score += double(t.q[size_t((b * c.queries + i) * c.columns() + h * c.headSize + d)]) *
                     t.k[size_t((b * c.keys + s) * c.kvColumns() + h / (c.heads / c.kvHeads) * c.headSize + d)];
          score *= c.scale;
          if (c.hasMask)
            score += t.mask[size_t(b * c.maskStrides[0] + h * c.maskStrides[1] + i * c.maskStrides[2] +
                                   s * c.maskStrides[3])];
          p[size_t(s)] = c.sees(i, s) ? score : -std::numeric_limits<double>::infinity();
          max = std::max(max, p[size_t(s)]);
        }
        for (double &x : p) {
          x = std::isinf(max) ? 0 : std::exp(x - max);
          sum += x;
        }
        for (double &x : p)
          x = sum == 0 ? 0 : x / sum;
        body(b, h, i, p, max + std::log(sum));
      }
}
/// Adds a term to an element, and its magnitude to the element's.
void addTerm(std::vector<double> &sums, std::vector<double> &terms, int64_t at, double term) {
  sums[size_t(at)] += term;
  terms[size_t(at)] += std::abs(term);
}
} // namespace

void referenceForward(const AttentionCase &c, AttentionTensors &t) {
  t.out.assign(t.q.size(), 0);
  t.outTerms = t.out;
  t.lse.clear();
  forRows(c, t, [&](int64_t b, int64_t h, int64_t i, const std::vector<double> &p, double lse) {
    t.lse.push_back(lse);
    for (int64_t s = 0; s < c.keys; ++s)
      for (int64_t d = 0; d < c.headSize; ++d)
        addTerm(t.out, t.outTerms, (b * c.queries + i) * c.columns() + h * c.headSize + d,
                p[size_t(s)] *
                    t.v[size_t((b * c.keys + s) * c.kvColumns() + h / (c.heads / c.kvHeads) * c.headSize + d)]);
  });
}

void referenceBackward(const AttentionCase &c, AttentionTensors &t) {
  t.dqTerms = t.dq = std::vector<double>(t.q.size());
  t.dkTerms = t.dk = std::vector<double>(t.k.size());
  t.dvTerms = t.dv = std::vector<double>(t.v.size());
  forRows(c, t, [&](int64_t b, int64_t h, int64_t i, const std::vector<double> &p, double) {
    int64_t qAt = (b * c.queries + i) * c.columns() + h * c.headSize;
    double delta = 0;
    for (int64_t d = 0; d < c.headSize; ++d)
      delta += t.dOut[size_t(qAt + d)] * t.out[size_t(qAt + d)];
    for (int64_t s = 0; s < c.keys; ++s) {
      int64_t kAt = (b * c.keys + s) * c.kvColumns() + h / (c.heads / c.kvHeads) * c.headSize;
      double dp = 0;
      for (int64_t d = 0; d < c.headSize; ++d)
        dp += double(t.dOut[size_t(qAt + d)]) * t.v[size_t(kAt + d)];
      double ds = p[size_t(s)] * (dp - delta) * c.scale;
      for (int64_t d = 0; d < c.headSize; ++d) {
        addTerm(t.dq, t.dqTerms, qAt + d, ds * t.k[size_t(kAt + d)]);
        addTerm(t.dk, t.dkTerms, kAt + d, ds * t.q[size_t(qAt + d)]);
        addTerm(t.dv, t.dvTerms, kAt + d, p[size_t(s)] * t.dOut[size_t(qAt + d)]);
      }
    }
  });
}

} // namespace llmc::test
