// Strided copies of up to six loops, and zero fill. Preparing a copy drops loops of one step, joins loops that are one
// in memory, and orders the rest by where they write; what remains is a plain copy of runs, a transpose in tiles, or
// elements one by one.
#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/Parallel.h"
#include "runtime/CopyLoops.h"

#include <cstring>
#include <vector>

namespace llmc {

namespace {
using Loop = CopyLoop;

class CopyKernel : public CpuKernel {
public:
  const std::byte *src = nullptr; ///< at the first element
  std::byte *dst = nullptr;
  std::vector<Loop> outer; ///< outermost first
  Loop rows{1, 0, 0};      ///< the loop that reads with stride 1, when `columns` does not
  Loop columns{1, 1, 1};   ///< the innermost loop
  int64_t bytes = 4;
  int threads = 1;

  Status run(std::byte *) override {
    int64_t blocks = 1;
    for (const Loop &loop : outer)
      blocks *= loop.size;
    if (blocks >= 4 * threads || blocks * rows.size * columns.size < 4096) {
      forShares(blocks, threads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
          copyBlock(block, rows, columns);
      });
      return {};
    }
    // Few blocks: split each over its longer loop.
    bool byRows = rows.size > columns.size;
    for (int64_t block = 0; block < blocks; ++block)
      forShares(byRows ? rows.size : columns.size, threads, 64,
                [&](int64_t begin, int64_t end) { copyPart(block, byRows, begin, end); });
    return {};
  }

private:
  struct Place {
    const std::byte *src;
    std::byte *dst;
  };

  Place placeOf(int64_t block) const {
    int64_t srcAt = 0, dstAt = 0;
    for (size_t i = outer.size(); i-- > 0; block /= outer[i].size) {
      int64_t step = block % outer[i].size;
      srcAt += step * outer[i].src;
      dstAt += step * outer[i].dst;
    }
    return {src + srcAt * bytes, dst + dstAt * bytes};
  }

  void copyBlock(int64_t block, const Loop &r, const Loop &c) const { copyMatrix(placeOf(block), r, c); }

  void copyPart(int64_t block, bool byRows, int64_t begin, int64_t end) const {
    Loop r = rows, c = columns, &split = byRows ? r : c;
    Place place = placeOf(block);
    place.src += begin * split.src * bytes;
    place.dst += begin * split.dst * bytes;
    split.size = end - begin;
    copyMatrix(place, r, c);
  }

  void copyMatrix(Place place, const Loop &r, const Loop &c) const {
    if (c.src == 1 && c.dst == 1) {
      for (int64_t i = 0; i < r.size; ++i)
        std::memcpy(place.dst + i * r.dst * bytes, place.src + i * r.src * bytes, static_cast<size_t>(c.size * bytes));
      return;
    }
    if (bytes == 4)
      copyElements<uint32_t>(place, r, c);
    else if (bytes == 2)
      copyElements<uint16_t>(place, r, c);
    else if (bytes == 8)
      copyElements<uint64_t>(place, r, c);
    else
      copyElements<uint8_t>(place, r, c);
  }

  template <typename T> static void copyElements(Place place, const Loop &r, const Loop &c) {
    const T *from = reinterpret_cast<const T *>(place.src);
    T *to = reinterpret_cast<T *>(place.dst);
    if (r.src == 1 && c.dst == 1)
      return transpose(from, to, r, c);
    for (int64_t i = 0; i < r.size; ++i)
      for (int64_t j = 0; j < c.size; ++j)
        to[i * r.dst + j * c.dst] = from[i * r.src + j * c.src];
  }

  /// Tile by tile through a small buffer: each line of src is read once and whole, each line of dst written so,
  /// whatever cache sets the strides fall into.
  template <typename T> static void transpose(const T *from, T *to, const Loop &r, const Loop &c) {
    constexpr int64_t kTile = 64 / sizeof(T);
    T tile[kTile][kTile];
    for (int64_t j0 = 0; j0 < c.size; j0 += kTile)
      for (int64_t i0 = 0; i0 < r.size; i0 += kTile) {
        const int64_t columns = std::min(kTile, c.size - j0), rows = std::min(kTile, r.size - i0);
        if (columns == kTile && rows == kTile)
          gather<kTile>(from + i0 + j0 * c.src, c.src, tile, kTile, kTile);
        else
          gather<kTile>(from + i0 + j0 * c.src, c.src, tile, rows, columns);
        for (int64_t i = 0; i < rows; ++i)
          std::memcpy(to + (i0 + i) * r.dst + j0, tile[i], static_cast<size_t>(columns) * sizeof(T));
      }
  }

  /// Inlined for each caller, so that whole tiles have constant bounds.
  template <int64_t kTile, typename T>
  static inline __attribute__((always_inline)) void gather(const T *from, int64_t stride, T (&tile)[kTile][kTile],
                                                           int64_t rows, int64_t columns) {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i)
        tile[i][j] = from[i + j * stride];
  }
};
} // namespace

/// Fails where the loops leave an operand of `operandBytes`.
static Status checkReach(const char *name, uint64_t operandBytes, int64_t bytes, int64_t offset,
                         const std::vector<Loop> &loops, int64_t Loop::*stride) {
  __int128 first = offset, last = offset;
  for (const Loop &loop : loops) {
    __int128 reach = __int128(loop.size - 1) * (loop.*stride);
    (reach < 0 ? first : last) += reach;
  }
  if (first < 0 || (last + 1) * bytes > __int128(operandBytes))
    return Error{std::string("the copy leaves ") + name + " of " + std::to_string(operandBytes) + " bytes"};
  return {};
}

Result<std::unique_ptr<CpuKernel>> makeCopyKernel(const KernelArgs &args, const CpuTarget &target) {
  auto kernel = std::make_unique<CopyKernel>();
  kernel->bytes = args.integer("bytes");
  kernel->threads = target.threads;
  if (kernel->bytes != 1 && kernel->bytes != 2 && kernel->bytes != 4 && kernel->bytes != 8)
    return Error{"elements of " + std::to_string(kernel->bytes) + " bytes"};
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {"size0", "size1", "size2", "size3", "size4", "size5"}));
  std::vector<Loop> loops = copyLoops(args.source());
  if (loops.size() == 1 && loops[0].size == 0) {
    kernel->outer = loops;
    return std::unique_ptr<CpuKernel>(std::move(kernel));
  }

  CpuOperand src = args.operand("src"), dst = args.operand("dst");
  int64_t srcOffset = args.integer("srcOffset"), dstOffset = args.integer("dstOffset");
  LLMC_RETURN_IF_ERROR(checkReach("src", src.bytes, kernel->bytes, srcOffset, loops, &Loop::src));
  LLMC_RETURN_IF_ERROR(checkReach("dst", dst.bytes, kernel->bytes, dstOffset, loops, &Loop::dst));
  kernel->src = src.data + srcOffset * kernel->bytes;
  kernel->dst = dst.data + dstOffset * kernel->bytes;
  if (loops.empty())
    loops.push_back({1, 1, 1});
  kernel->columns = loops.back();
  loops.pop_back();
  // The other loop of the tiles: the one that reads contiguously, else the next outer one.
  size_t rows = loops.size();
  for (size_t i = 0; i < loops.size() && kernel->columns.src != 1; ++i)
    if (loops[i].src == 1)
      rows = i;
  if (rows == loops.size() && !loops.empty())
    rows = loops.size() - 1;
  if (rows < loops.size()) {
    kernel->rows = loops[rows];
    loops.erase(loops.begin() + static_cast<int64_t>(rows));
  }
  kernel->outer = std::move(loops);
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

namespace {
class ZeroKernel : public CpuKernel {
public:
  CpuOperand dst;
  int threads = 1;

  Status run(std::byte *) override {
    forShares(static_cast<int64_t>(dst.bytes), threads, 4096,
              [&](int64_t begin, int64_t end) { std::memset(dst.data + begin, 0, static_cast<size_t>(end - begin)); });
    return {};
  }
};
} // namespace

Result<std::unique_ptr<CpuKernel>> makeZeroKernel(const KernelArgs &args, const CpuTarget &target) {
  auto kernel = std::make_unique<ZeroKernel>();
  kernel->dst = args.operand("dst");
  kernel->threads = target.threads;
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

} // namespace llmc
