// What is known about each byte of a memory: whether it was ever written, and who wrote and read it last. From that
// follow uninitialized reads and races.
//
// Two accesses are concurrent when neither is ordered before the other: in one block only barriers order (bar.sync for
// the block, bar.warp.sync for the warp), blocks of a launch are never ordered, and launches are ordered by streams and
// events, which LaunchOrder knows. Cells cover 4 bytes until somebody touches less; a page then gets smaller ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::cudasim {

/// One access, or several merged: who, and after how many barriers.
struct Access {
  enum Breadth : uint16_t { oneThread, oneWarp, oneBlock, manyBlocks };

  /// The operation on the device (a launch, a copy), from 1; 0 is nobody.
  uint32_t op = 0;
  uint32_t block = 0;
  uint16_t thread = 0;
  uint16_t breadth = oneThread;
  uint16_t blockEpoch = 0;
  uint16_t warpEpoch = 0;
};

/// The order between operations on a device, as seen by the one that runs.
class LaunchOrder {
public:
  virtual ~LaunchOrder() = default;
  /// The operation that runs.
  virtual uint32_t op() const = 0;
  /// Whether an earlier operation is known to have ended before this one began.
  virtual bool ended(uint32_t earlierOp) const = 0;
  /// What an operation is called in a report.
  virtual std::string nameOf(uint32_t earlierOp) const = 0;
};

class Shadow {
public:
  explicit Shadow(uint64_t bytes);

  void markInitialized(uint64_t offset, uint64_t bytes);
  /// The first byte of the range that was never written.
  std::optional<uint64_t> firstUninitialized(uint64_t offset, uint64_t bytes) const;

  /// Notes an access. Returns the earlier access that it conflicts with, if there is one.
  std::optional<Access> noteRead(uint64_t offset, uint64_t bytes, const Access &access, const LaunchOrder &order);
  std::optional<Access> noteWrite(uint64_t offset, uint64_t bytes, const Access &access, const LaunchOrder &order);

  /// Forgets everything: the memory of a new block.
  void reset();
  uint64_t bytes() const { return size; }

private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Cell {
    Access write;
    /// Reads since that write, merged.
    Access read;
    /// Operations other than read.op with reads that nothing orders before the last one.
    std::unique_ptr<std::vector<uint32_t>> otherReaders;
  };
  struct Page {
    uint32_t cellShift = 2;
    std::vector<Cell> cells;
  };

  Page &pageFor(uint64_t offset, uint64_t bytes);
  static void split(Page &page, uint32_t cellShift);
  static void mergeRead(Cell &cell, const Access &access, const LaunchOrder &order);
  template <typename F> std::optional<Access> forCells(uint64_t offset, uint64_t bytes, F f);

  uint64_t size;
  std::vector<uint64_t> initialized;
  std::vector<Page> pages;
};

} // namespace llmc::cudasim
