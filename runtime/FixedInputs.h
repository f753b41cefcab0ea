// One fixed batch from a safetensors file, used at every step: a tensor for each input of the graph, by its name.
#pragma once

#include "runtime/Batch.h"

namespace llmc {

class FixedInputs : public BatchSource {
public:
  /// Reads and checks the tensors: types (i64 and i32 stand for each other), shapes, ids inside the vocabulary. An
  /// input whose first dimension is B holds ranks x microBatches x B rows, dealt in the loader's order (RankShare); any
  /// other is the same for all ranks and micro-batches.
  static Result<FixedInputs> load(const std::string &path, const InputMap &map, int64_t microBatches,
                                  RankShare share = {});
  Status fill(int64_t step, int64_t micro, Batch &batch) override;

private:
  FixedInputs() = default;
  std::vector<Batch> batches; ///< one per micro-batch
};

} // namespace llmc
