// One micro-batch in host memory, and where batches come from. A source is a pure function of (step, micro-batch), so
// any rank or resumed run gets the same data without replaying what came before.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// Which rank of how many the batches are for.
struct RankShare {
  int rank = 0, ranks = 1;
  /// The rows of a step are dealt to the ranks one by one, and those of a rank to its micro-batches one after another:
  /// where row `row` of micro-batch `micro` of `rows` rows stands among the rows of the step.
  int64_t rowOfStep(int64_t micro, int64_t rows, int64_t row) const { return (micro * rows + row) * ranks + rank; }
};

/// Values for all inputs of the graph, and what they count.
struct Batch {
  std::vector<std::vector<std::byte>> inputs; ///< dense, in the order of InputMap::inputs
  int64_t numTokens = 0;                      ///< positions of rows that are real, not filled up
  std::optional<int64_t> numLabels; ///< labels that count towards the loss; nothing for a graph without labels
};

/// Which of the plan's inputs are the tokens and the labels.
struct InputMap {
  std::vector<const StateEntry *> inputs; ///< all inputs, in the plan's order
  std::optional<size_t> tokens;           ///< index into inputs
  std::optional<size_t> labels;           ///< index into inputs
  bool labelsShifted = true;              ///< labels are the next tokens; else the same window, and the graph shifts
  int64_t rows = 0;                       ///< B of the tokens (B, T); 0 without tokens
  int64_t length = 0;                     ///< T of the tokens

  const StateEntry &tokensEntry() const { return *inputs[*tokens]; }
  const StateEntry &labelsEntry() const { return *inputs[*labels]; }
  /// "tokens go to idx, labels to targets, shifted by one"
  std::string describe() const;
};

/// What the person at the terminal knows better than the compiler. Empty: as the plan says.
struct InputOverrides {
  std::string tokensInput;
  std::string labelsInput;
  std::optional<bool> labelsShifted;
};

/// Finds tokens and labels among the plan's inputs. Fails when a name is unknown, not integer, or two inputs claim one
/// role. The map points into the plan.
Result<InputMap> mapInputs(const Plan &plan, const InputOverrides &overrides);

/// Fails unless tokens and labels are all the inputs there are: names the input that must come from a file of inputs.
Status requireOnlyTokensAndLabels(const InputMap &map);

/// An empty batch with room for every input.
Batch makeBatch(const InputMap &map);

/// Writes id `value` at `index` of an i64 or i32 input. Fails when it does not fit.
Status storeId(std::span<std::byte> input, ElementType type, uint64_t index, int64_t value);
/// Reads it back.
int64_t loadId(std::span<const std::byte> input, ElementType type, uint64_t index);

/// Labels of a filled batch that are not ignored; where the graph shifts, a row's first label is never used.
int64_t countLabels(const InputMap &map, const Batch &batch);

/// Where batches come from. fill() may be called from a background thread, by one thread at a time, and allocates
/// nothing.
class BatchSource {
public:
  virtual ~BatchSource() = default;
  /// Fills micro-batch `micro` of step `step` (both 0-based).
  virtual Status fill(int64_t step, int64_t micro, Batch &batch) = 0;
  /// Steps that make one pass over the data; nothing where there is no end.
  virtual std::optional<int64_t> stepsPerEpoch() const { return std::nullopt; }
};

/// Uniformly random tokens from a counter-based generator, for measuring speed.
class RandomTokens : public BatchSource {
public:
  /// Fails when the plan has inputs other than tokens and labels, or does not know its vocabulary.
  static Result<RandomTokens> create(const InputMap &map, uint64_t seed, RankShare share = {});
  Status fill(int64_t step, int64_t micro, Batch &batch) override;

private:
  RandomTokens(const InputMap &map, uint64_t seed, RankShare share)
      : map(map), seed(seed), share(share), window(static_cast<size_t>(map.length) + 1) {}
  InputMap map;
  uint64_t seed;
  RankShare share;
  std::vector<int64_t> window; ///< T + 1 tokens, filled again for each row
};

/// Writes one row of tokens and its labels from a window of T + 1 tokens, or an ignored row from an empty window.
/// Fails when an id does not fit the input's type.
Status storeRow(const InputMap &map, int64_t row, std::span<const int64_t> window, Batch &batch);

} // namespace llmc
