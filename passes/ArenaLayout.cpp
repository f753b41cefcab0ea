// Greedy by order: each value goes to the lowest or tightest gap that the values placed before leave free over its
// lifetime. The orders that work best on training steps are by size, by size times lifetime, and by how much is alive
// beside a value; the results are then improved by placing first what ended up highest, at last by chance. Compare
// Pisarchyk and Lee, arXiv:2001.03288.
#include "passes/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <random>
#include <vector>

namespace llmc {

namespace {

enum class Fit { lowest, tightest };
using Order = llvm::SmallVector<unsigned>;

/// An order to improve, and the layout that it gives.
struct Start {
  Order order;
  Fit fit;
  ArenaLayout layout;
};

/// Improving stops when this close to the lower bound, or after so many rounds, fewer for many values (a round is
/// quadratic).
constexpr double kCloseEnough = 1.0005;
/// Other starts are improved too when the best one stays above this.
constexpr double kGoodEnough = 1.01;
/// The best starts are shuffled, which takes longer, until one comes to kShuffled.
constexpr double kShuffled = 1.015;
constexpr size_t kShuffledStarts = 4;
constexpr size_t kMinRounds = 8, kMaxRounds = 100, kMovesPerRound = 40, kMaxMoves = 30000, kMaxWork = 50'000'000;

/// A value with its place.
struct Placed {
  int64_t offset, end;
  unsigned first, last;
};

/// The places of what is placed so far, by offset: everything a search for a gap reads, side by side.
class PlacedValues {
public:
  PlacedValues(llvm::ArrayRef<ArenaValue> values, ArenaLayout &layout, int64_t goal)
      : values(values), layout(layout), goal(goal) {
    placed.reserve(values.size());
  }

  void put(unsigned index, int64_t offset) {
    const ArenaValue &value = values[index];
    int64_t end = offset + alignBuffer(value.bytes);
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, end);
    beyond += std::max<int64_t>(0, end - goal);
    auto at =
        llvm::lower_bound(placed, offset, [](const Placed &other, int64_t value) { return other.offset < value; });
    placed.insert(at, {offset, end, value.first, value.last});
  }

  /// How far all that is placed ends beyond `goal`.
  int64_t excess() const { return beyond; }

  /// Where `value` fits between what lives at the same time.
  int64_t findGap(const ArenaValue &value, Fit fit) const {
    int64_t bytes = alignBuffer(value.bytes), end = 0, best = -1, bestGap = INT64_MAX;
    for (const Placed &other : placed) {
      if (value.last < other.first || other.last < value.first)
        continue;
      int64_t gap = other.offset - end;
      if (gap >= bytes && fit == Fit::lowest)
        return end;
      if (gap >= bytes && gap < bestGap) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, other.end);
    }
    return best < 0 ? end : best;
  }

private:
  llvm::ArrayRef<ArenaValue> values;
  ArenaLayout &layout;
  int64_t goal, beyond = 0;
  std::vector<Placed> placed;
};

} // namespace

/// How far values may end beyond a goal, all together: this moves lower step by step where the arena's size stays.
struct Excess {
  int64_t goal = INT64_MAX, most = INT64_MAX;
};

/// Nothing where the excess would be more; else the layout, and its excess in `excess.most`.
static std::optional<ArenaLayout> placeWithin(llvm::ArrayRef<ArenaValue> values, const Order &order, Fit fit,
                                              Excess &excess) {
  ArenaLayout layout;
  layout.offsets.assign(values.size(), 0);
  PlacedValues placed(values, layout, excess.goal);
  for (auto [index, value] : llvm::enumerate(values))
    if (value.offset)
      placed.put(index, *value.offset);
  for (unsigned index : order) {
    if (!values[index].offset)
      placed.put(index, placed.findGap(values[index], fit));
    if (placed.excess() > excess.most)
      return std::nullopt;
  }
  excess.most = placed.excess();
  return layout;
}

static ArenaLayout place(llvm::ArrayRef<ArenaValue> values, const Order &order, Fit fit) {
  Excess any;
  return *placeWithin(values, order, fit, any);
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

/// Places again and again, first what ended highest before; keeps the best in `best`, stops at `goal`.
static void improve(llvm::ArrayRef<ArenaValue> values, const Start &start, double goal, size_t numRounds, Start &best) {
  ArenaLayout layout = start.layout;
  Order order = start.order;
  for (size_t round = 0; round<numRounds &&double(best.layout.bytes)> goal; ++round) {
    order = highestFirst(values, layout, order);
    layout = place(values, order, start.fit);
    if (layout.bytes < best.layout.bytes)
      best = {order, start.fit, layout};
  }
}

/// A value that ends beyond `goal`, by its place in the order; any one where none does.
static unsigned pickHigh(llvm::ArrayRef<ArenaValue> values, const Start &start, int64_t goal,
                         std::minstd_rand &random) {
  llvm::SmallVector<unsigned> high;
  for (auto [place, index] : llvm::enumerate(start.order))
    if (start.layout.offsets[index] + alignBuffer(values[index].bytes) > goal)
      high.push_back(place);
  return high.empty() ? random() % start.order.size() : high[random() % high.size()];
}

/// Moves one value after another to another place of the order, by the numbers of a fixed generator: every second time
/// one that ends too high, to an earlier place. Keeps what is better, and what is worse by less and less (annealing).
static void shuffle(llvm::ArrayRef<ArenaValue> values, Start current, int64_t goal, size_t numRounds, Start &best) {
  constexpr double kAllowed = 0.1; // of the excess, to begin with
  std::minstd_rand random;         // the same numbers everywhere
  Excess now{goal};
  (void)placeWithin(values, current.order, current.fit, now);
  for (size_t round = 0; round < numRounds && best.layout.bytes > goal; ++round) {
    Order order = current.order;
    unsigned from = random() % order.size(), to = random() % order.size();
    if (round % 2 == 0) {
      from = pickHigh(values, current, goal, random);
      to = random() % (from + 1);
    }
    unsigned moved = order[from];
    order.erase(order.begin() + from);
    order.insert(order.begin() + to, moved);
    Fit fit = random() % 8 == 0 ? Fit::lowest : current.fit;
    double allowed = kAllowed * (1 - double(round) / double(numRounds)) * double(random() % 100) / 100;
    Excess excess = {goal, int64_t(double(now.most) * (1 + allowed))};
    std::optional<ArenaLayout> layout = placeWithin(values, order, fit, excess);
    if (!layout)
      continue;
    now = excess;
    current = {std::move(order), fit, std::move(*layout)};
    if (current.layout.bytes < best.layout.bytes)
      best = current;
  }
}

/// The largest sum over time of size(value).
template <typename F> static int64_t largestSum(llvm::ArrayRef<ArenaValue> values, F size) {
  unsigned end = 0;
  for (const ArenaValue &value : values)
    end = std::max(end, value.last + 1);
  llvm::SmallVector<int64_t> change(end + 1, 0);
  for (const ArenaValue &value : values) {
    change[value.first] += size(value);
    change[value.last + 1] -= size(value);
  }
  int64_t live = 0, peak = 0;
  for (int64_t bytes : change)
    peak = std::max(peak, live += bytes);
  return peak;
}

int64_t arenaLowerBound(llvm::ArrayRef<ArenaValue> values) {
  return largestSum(values, [](const ArenaValue &value) { return value.bytes; });
}

/// For each value the most bytes that live at once while it lives.
static llvm::SmallVector<int64_t> breadths(llvm::ArrayRef<ArenaValue> values) {
  unsigned end = 0;
  for (const ArenaValue &value : values)
    end = std::max(end, value.last + 1);
  llvm::SmallVector<int64_t> live(end, 0), result;
  for (const ArenaValue &value : values)
    for (unsigned launch = value.first; launch <= value.last; ++launch)
      live[launch] += value.bytes;
  for (const ArenaValue &value : values)
    result.push_back(*std::max_element(live.begin() + value.first, live.begin() + value.last + 1));
  return result;
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
  llvm::SmallVector<int64_t> breadth = breadths(values);
  auto lifetime = [&](unsigned i) { return values[i].last - values[i].first; };
  // The largest of each first; the first three begin where most is alive.
  auto byBreadthAndBytes = [&](unsigned i) { return std::pair(breadth[i], values[i].bytes); };
  auto byBreadthAndLifetime = [&](unsigned i) { return std::pair(breadth[i], int64_t(lifetime(i))); };
  auto byBreadthAndArea = [&](unsigned i) { return std::pair(breadth[i], area(i)); };
  auto descending = [&](auto key) { return sorted([&](unsigned a, unsigned b) { return key(a) > key(b); }); };
  Order orders[] = {descending(byBreadthAndBytes),
                    descending(byBreadthAndLifetime),
                    descending(byBreadthAndArea),
                    descending([&](unsigned i) { return values[i].bytes; }),
                    descending(area),
                    sorted([&](unsigned a, unsigned b) { return values[a].first < values[b].first; }),
                    descending(lifetime)};
  // Sizes as they are placed: what padding takes no order gives back.
  int64_t bound = largestSum(values, [](const ArenaValue &value) { return alignBuffer(value.bytes); });
  // The best start first, and no more once nothing can be better; the others only where it cannot be improved enough.
  llvm::SmallVector<Start> starts;
  for (const Order &order : orders)
    for (Fit fit : {Fit::tightest, Fit::lowest}) {
      starts.push_back({order, fit, place(values, order, fit)});
      if (starts.back().layout.bytes == bound)
        return starts.back().layout;
    }
  llvm::stable_sort(starts, [](const Start &a, const Start &b) { return a.layout.bytes < b.layout.bytes; });
  size_t numRounds = kMaxWork / (values.size() * values.size() + 1);
  Start best = starts.front();
  for (const Start &start : starts)
    if (&start == starts.begin() || double(best.layout.bytes) > kGoodEnough * double(bound))
      improve(values, start, kCloseEnough * double(bound), std::clamp(numRounds, kMinRounds, kMaxRounds), best);
  int64_t goal = int64_t(kShuffled * double(bound));
  for (const Start &start : llvm::ArrayRef(starts).take_front(kShuffledStarts))
    shuffle(values, start, goal, std::min(kMovesPerRound * numRounds, kMaxMoves), best);
  return best.layout;
}

} // namespace llmc
