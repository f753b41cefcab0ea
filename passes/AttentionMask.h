// What an attention mask means: causal, a sliding window, nothing, or a tensor of its own that is added to the scores.
#pragma once

#include "passes/Match.h"

#include <map>
#include <tuple>

namespace llmc {

/// Added to the scores when finite numbers are, or selecting -inf (or a number that is as good) where a condition holds
/// or does not.
struct MaskTerm {
  enum class Form { additive, visibleWhere, hiddenWhere } form;
  mlir::Value value;
  int64_t rank;      ///< of the scores it meets, which it is broadcast to
  double fill = 0;   ///< what a hidden score becomes
  double factor = 1; ///< what the scores, and with them this term, are multiplied by afterwards
};

/// A score of this or less is as good as -inf: its exponential is zero in f32 and f64 beside any finite score.
inline constexpr double kHidden = -1e9;

/// All terms together.
struct MaskMeaning {
  bool isCausal = false;
  int64_t window = 0;                ///< 0: none
  llvm::SmallVector<MaskTerm> other; ///< terms that are neither causal, nor a window, nor visible everywhere
};

/// What one query sees: keys up to its own and, with a window, no more than that many; or every key.
struct MaskPattern {
  bool isCausal;
  int64_t window; ///< 0: none
};

/// Reads terms that are known when the graph is compiled; each is compared once, however many attentions share it.
class MaskReader {
public:
  /// Of scores (…, queries, keys).
  MaskMeaning read(llvm::ArrayRef<MaskTerm> terms, int64_t queries, int64_t keys);

private:
  std::optional<MaskPattern> patternOf(const MaskTerm &term, int64_t queries, int64_t keys);

  using Key = std::tuple<void *, MaskTerm::Form, double, int64_t, int64_t>;
  KnownTensors tensors;
  std::map<Key, std::optional<MaskPattern>> patterns;
};

/// The parameter that a term depends on through floats, so that it would have to train; null when there is none.
VariableOp trainedBy(const MaskTerm &term);

/// The shape of a term as (batch or 1, heads or 1, queries or 1, keys or 1); the scores' leading dimensions are batch
/// and heads as one, or batch and then heads in one or more. Nothing where the term repeats along a part of the heads
/// only.
std::optional<llvm::SmallVector<int64_t, 4>> maskShape(const MaskTerm &term, int64_t batch, int64_t heads);

/// The sum of terms, each of which has a maskShape, as an f32 tensor that broadcasts to (batch, heads, queries, keys).
mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<MaskTerm> terms, int64_t batch,
                      int64_t heads);

} // namespace llmc
