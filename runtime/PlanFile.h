// An opened plan file: checked metadata, mapped code and model, weights read in checked chunks. Weights are not mapped:
// they are read once into the state, and mapped pages would count twice against the process's peak memory.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// Weights are hashed in chunks of this size, so that threads can read, check and copy them in one pass.
inline constexpr uint64_t kWeightsChunkBytes = 4ull << 20;

class PlanFile {
public:
  /// Opens a plan and checks everything but the weights' bytes: magic, version, size, hashes, padding, every offset and
  /// index. Errors name the path and what is wrong.
  static Result<PlanFile> open(const std::string &path);

  PlanFile(PlanFile &&) noexcept;
  PlanFile &operator=(PlanFile &&) noexcept;
  ~PlanFile();

  const std::string &path() const;
  const Plan &plan() const;
  /// Names the whole content: two plans with the same hash are the same bytes.
  uint64_t hash() const;
  uint64_t fileBytes() const;
  uint64_t metadataBytes() const;

  /// The code section, or the part of it that belongs to a target of this plan. Valid as long as the PlanFile.
  std::span<const std::byte> code() const;
  std::span<const std::byte> code(const TargetPrograms &target) const;
  /// The source model without the payloads of trained weights. Valid as long as the PlanFile.
  std::span<const std::byte> model() const;

  uint64_t weightsBytes() const;
  size_t numWeightsChunks() const;
  /// Reads chunk `index` into `buffer` (kWeightsChunkBytes, for the last chunk what remains) and checks its hash: the
  /// part of `buffer` that was filled. May be called from several threads at once.
  Result<std::span<const std::byte>> readWeightsChunk(size_t index, std::span<std::byte> buffer) const;

private:
  struct State;
  explicit PlanFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace llmc
