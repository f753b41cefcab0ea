// The rules of who is ordered before whom, cell by cell.
#include "tests/cudasim/Shadow.h"

#include <algorithm>
#include <bit>

namespace llmc::cudasim {

namespace {

constexpr uint32_t kWarpShift = 5;

/// Whether nothing orders `earlier` before `now`.
bool concurrent(const Access &earlier, const Access &now, const LaunchOrder &order) {
  if (earlier.op == 0)
    return false;
  if (earlier.op != now.op)
    return !order.ended(earlier.op);
  if (earlier.breadth == Access::manyBlocks || earlier.block != now.block)
    return true;
  if (earlier.breadth == Access::oneThread && earlier.thread == now.thread)
    return false;
  bool sameWarp = earlier.breadth != Access::oneBlock && earlier.thread >> kWarpShift == now.thread >> kWarpShift;
  if (earlier.blockEpoch != now.blockEpoch)
    return false;
  return !sameWarp || earlier.warpEpoch == now.warpEpoch;
}

uint64_t bitsBelow(uint64_t count) { return count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1; }

} // namespace

Shadow::Shadow(uint64_t bytes)
    : size(bytes), initialized((bytes + 63) / 64), pages((bytes + kPageBytes - 1) / kPageBytes) {}

void Shadow::reset() {
  std::fill(initialized.begin(), initialized.end(), 0);
  for (Page &page : pages)
    for (Cell &cell : page.cells)
      cell = {};
}

void Shadow::markInitialized(uint64_t offset, uint64_t bytes) {
  while (bytes > 0) {
    uint64_t bit = offset % 64, here = std::min(bytes, 64 - bit);
    initialized[offset / 64] |= bitsBelow(here) << bit;
    offset += here;
    bytes -= here;
  }
}

std::optional<uint64_t> Shadow::firstUninitialized(uint64_t offset, uint64_t bytes) const {
  while (bytes > 0) {
    uint64_t bit = offset % 64, here = std::min(bytes, 64 - bit);
    if (uint64_t missing = ~(initialized[offset / 64] >> bit) & bitsBelow(here))
      return offset + std::countr_zero(missing);
    offset += here;
    bytes -= here;
  }
  return std::nullopt;
}

void Shadow::split(Page &page, uint32_t cellShift) {
  std::vector<Cell> cells(kPageBytes >> cellShift);
  for (size_t i = 0; i < cells.size() && !page.cells.empty(); ++i) {
    const Cell &old = page.cells[i >> (page.cellShift - cellShift)];
    cells[i].write = old.write;
    cells[i].read = old.read;
    if (old.otherReaders)
      cells[i].otherReaders = std::make_unique<std::vector<uint32_t>>(*old.otherReaders);
  }
  page.cells = std::move(cells);
  page.cellShift = cellShift;
}

Shadow::Page &Shadow::pageFor(uint64_t offset, uint64_t bytes) {
  Page &page = pages[offset / kPageBytes];
  uint32_t needed = std::min<uint32_t>(std::countr_zero(offset | bytes | 4), page.cellShift);
  if (page.cells.empty() || needed < page.cellShift)
    split(page, needed);
  return page;
}

template <typename F> std::optional<Access> Shadow::forCells(uint64_t offset, uint64_t bytes, F f) {
  while (bytes > 0) {
    uint64_t inPage = offset % kPageBytes, here = std::min(bytes, kPageBytes - inPage);
    Page &page = pageFor(offset, here);
    for (uint64_t i = inPage >> page.cellShift; i < (inPage + here) >> page.cellShift; ++i)
      if (std::optional<Access> conflict = f(page.cells[i]))
        return conflict;
    offset += here;
    bytes -= here;
  }
  return std::nullopt;
}

/// Keeps what later writes need: the last reads, as wide as they were. A read that is ordered before the new one is
/// covered by it, for whoever is ordered after the new one is ordered after both.
void Shadow::mergeRead(Cell &cell, const Access &access, const LaunchOrder &order) {
  Access &read = cell.read;
  if (read.op != access.op) {
    if (concurrent(read, access, order)) {
      if (!cell.otherReaders)
        cell.otherReaders = std::make_unique<std::vector<uint32_t>>();
      cell.otherReaders->push_back(read.op);
    }
    read = access;
    return;
  }
  if (read.breadth == Access::manyBlocks)
    return;
  if (read.block != access.block) {
    read.breadth = Access::manyBlocks;
  } else if (!concurrent(read, access, order)) {
    read = access;
  } else if (read.breadth != Access::oneBlock) {
    bool sameWarp = read.thread >> kWarpShift == access.thread >> kWarpShift;
    read.breadth = sameWarp ? Access::oneWarp : Access::oneBlock;
  }
}

std::optional<Access> Shadow::noteRead(uint64_t offset, uint64_t bytes, const Access &access,
                                       const LaunchOrder &order) {
  return forCells(offset, bytes, [&](Cell &cell) -> std::optional<Access> {
    if (concurrent(cell.write, access, order))
      return cell.write;
    mergeRead(cell, access, order);
    return std::nullopt;
  });
}

std::optional<Access> Shadow::noteWrite(uint64_t offset, uint64_t bytes, const Access &access,
                                        const LaunchOrder &order) {
  return forCells(offset, bytes, [&](Cell &cell) -> std::optional<Access> {
    if (concurrent(cell.write, access, order))
      return cell.write;
    if (concurrent(cell.read, access, order))
      return cell.read;
    if (cell.otherReaders) {
      for (uint32_t reader : *cell.otherReaders)
        if (reader != access.op && !order.ended(reader))
          return Access{.op = reader};
      cell.otherReaders.reset();
    }
    cell.write = access;
    cell.read = {};
    return std::nullopt;
  });
}

} // namespace llmc::cudasim
