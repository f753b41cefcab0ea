// Greedy by order: each value goes to the lowest or tightest gap that the values placed before leave free over its
// lifetime. The orders that work best on training steps are by size and by size times lifetime; results are then
// improved by placing first what ended up highest, the best first. Compare Pisarchyk and Lee, arXiv:2001.03288.
#include "passes/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>

namespace llmc {

namespace {

enum class Fit { lowest, tightest };
using Order = llvm::SmallVector<unsigned>;

/// Improving stops when this close to the lower bound, or after so many rounds, fewer for many values (a round is
/// quadratic).
constexpr double kCloseEnough = 1.0005;
/// Other starts are improved too when the best one stays above this.
constexpr double kGoodEnough = 1.01;
constexpr size_t kMinRounds = 8, kMaxRounds = 100, kMaxWork = 50'000'000;

} // namespace

static bool meet(const ArenaValue &a, const ArenaValue &b) { return a.first <= b.last && b.first <= a.last; }

/// `placed` holds (offset, end) of what lives at the same time, by offset.
static int64_t findGap(llvm::ArrayRef<std::pair<int64_t, int64_t>> placed, int64_t bytes, Fit fit) {
  int64_t end = 0, best = -1, bestGap = INT64_MAX;
  for (auto [offset, otherEnd] : placed) {
    int64_t gap = offset - end;
    if (gap >= bytes && fit == Fit::lowest)
      return end;
    if (gap >= bytes && gap < bestGap) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, otherEnd);
  }
  return best < 0 ? end : best;
}

static ArenaLayout place(llvm::ArrayRef<ArenaValue> values, const Order &order, Fit fit) {
  ArenaLayout layout;
  layout.offsets.assign(values.size(), 0);
  Order byOffset; // placed values, by offset
  llvm::SmallVector<std::pair<int64_t, int64_t>> neighbours;
  auto put = [&](unsigned index, int64_t offset) {
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + alignBuffer(values[index].bytes));
    auto at = llvm::lower_bound(byOffset, offset,
                                [&](unsigned other, int64_t value) { return layout.offsets[other] < value; });
    byOffset.insert(at, index);
  };
  for (auto [index, value] : llvm::enumerate(values))
    if (value.offset)
      put(index, *value.offset);
  for (unsigned index : order) {
    if (values[index].offset)
      continue;
    int64_t bytes = alignBuffer(values[index].bytes);
    neighbours.clear();
    for (unsigned other : byOffset)
      if (meet(values[index], values[other]))
        neighbours.push_back({layout.offsets[other], layout.offsets[other] + alignBuffer(values[other].bytes)});
    put(index, findGap(neighbours, bytes, fit));
  }
  return layout;
}

/// The value that ends highest, and whatever lies below it at the same time, first.
static Order highestFirst(llvm::ArrayRef<ArenaValue> values, const ArenaLayout &layout, const Order &order) {
  auto isHighest = [&](unsigned index) {
    return layout.offsets[index] + alignBuffer(values[index].bytes) == layout.bytes;
  };
  Order result;
  llvm::copy_if(order, std::back_inserter(result), isHighest);
  llvm::copy_if(order, std::back_inserter(result), [&](unsigned index) { return !isHighest(index); });
  return result;
}

int64_t arenaLowerBound(llvm::ArrayRef<ArenaValue> values) {
  unsigned end = 0;
  for (const ArenaValue &value : values)
    end = std::max(end, value.last + 1);
  llvm::SmallVector<int64_t> change(end + 1, 0);
  for (const ArenaValue &value : values) {
    change[value.first] += value.bytes;
    change[value.last + 1] -= value.bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t bytes : change)
    peak = std::max(peak, live += bytes);
  return peak;
}

ArenaLayout layoutArena(llvm::ArrayRef<ArenaValue> values) {
  if (values.empty())
    return {};
  auto area = [&](unsigned i) { return values[i].bytes * (values[i].last - values[i].first + 1); };
  Order identity = llvm::to_vector(llvm::seq<unsigned>(0, values.size()));
  auto sorted = [&](auto less) {
    Order order = identity;
    llvm::stable_sort(order, less);
    return order;
  };
  Order orders[] = {sorted([&](unsigned a, unsigned b) { return values[a].bytes > values[b].bytes; }),
                    sorted([&](unsigned a, unsigned b) { return area(a) > area(b); }),
                    sorted([&](unsigned a, unsigned b) { return values[a].first < values[b].first; }),
                    sorted([&](unsigned a, unsigned b) {
                      return values[a].last - values[a].first > values[b].last - values[b].first;
                    })};
  struct Start {
    Order order;
    Fit fit;
    ArenaLayout layout;
  };
  llvm::SmallVector<Start> starts;
  for (const Order &order : orders)
    for (Fit fit : {Fit::tightest, Fit::lowest})
      starts.push_back({order, fit, place(values, order, fit)});
  llvm::stable_sort(starts, [](const Start &a, const Start &b) { return a.layout.bytes < b.layout.bytes; });
  double bound = double(arenaLowerBound(values));
  size_t numRounds = std::clamp<size_t>(kMaxWork / (values.size() * values.size() + 1), kMinRounds, kMaxRounds);
  ArenaLayout best = starts.front().layout;
  for (auto &[order, fit, layout] : starts) {
    for (size_t round = 0; round<numRounds &&double(best.bytes)> kCloseEnough * bound; ++round) {
      order = highestFirst(values, layout, order);
      layout = place(values, order, fit);
      if (layout.bytes < best.bytes)
        best = layout;
    }
    if (double(best.bytes) <= kGoodEnough * bound)
      break;
  }
  return best;
}

} // namespace llmc
