// Writes a plan file. The same plan and payload give the same bytes.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// A stretch of the weights section, taken from memory of the caller (often the mapped model file).
struct WeightsPiece {
  uint64_t fileOffset = 0; ///< from the section's start
  std::span<const std::byte> bytes;
};

/// The raw sections of a plan. Gaps between weights' pieces are filled with zeros.
struct PlanPayload {
  std::vector<WeightsPiece> weights; ///< by rising fileOffset, not overlapping
  std::span<const std::byte> code;
  std::span<const std::byte> model; ///< the source ONNX model without the payloads of trained weights
};

/// Writes the file whole or not at all. Fails when the plan refers outside of its sections (a mistake of the caller),
/// or on the disk's errors, naming the path. Weights are streamed in chunks and never held as a whole.
Status writePlan(const std::string &path, const Plan &plan, const PlanPayload &payload);

} // namespace llmc
