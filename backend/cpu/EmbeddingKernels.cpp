// Rows of a table by token id, and the gradient of the table. An id outside the table stops the step and names its
// place.
//   embedding       dst[i] = table[ids[i]]
//   embedding_grad  dTable[id] (+)= sum over i with ids[i] == id of dOut[i], in order of i, in f32
// The gradient is split over columns: every thread walks all tokens, so no two threads meet and the order is fixed.
#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/Parallel.h"
#include "runtime/ElementConvert.h"

#include <cstring>

namespace llmc {

static Status checkIds(const int64_t *ids, int64_t count, int64_t limit) {
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= limit)
      return Error{"token id " + std::to_string(ids[i]) + " at position " + std::to_string(i) + " is outside [0, " +
                   std::to_string(limit) + ")"};
  return {};
}

static bool isFloat(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

/// One row, converted where the types differ.
static void copyRow(const std::byte *src, ElementType srcType, std::byte *dst, ElementType dstType, int64_t count) {
  if (srcType == dstType) {
    std::memcpy(dst, src, static_cast<size_t>(count) * elementBytes(srcType));
  } else if (srcType == ElementType::f32) {
    for (int64_t j = 0; j < count; ++j)
      reinterpret_cast<uint16_t *>(dst)[j] = toBf16(reinterpret_cast<const float *>(src)[j]);
  } else {
    for (int64_t j = 0; j < count; ++j)
      reinterpret_cast<float *>(dst)[j] = floatFromBf16(reinterpret_cast<const uint16_t *>(src)[j]);
  }
}

class EmbeddingKernel : public CpuKernel {
public:
  const std::byte *table = nullptr;
  const int64_t *ids = nullptr;
  std::byte *dst = nullptr;
  int64_t n = 0, v = 0, c = 0;
  ElementType tableType = ElementType::f32, dstType = ElementType::f32;
  int threads = 1;

  Status run(std::byte *) override {
    LLMC_RETURN_IF_ERROR(checkIds(ids, n, v));
    const int64_t tableRow = c * static_cast<int64_t>(elementBytes(tableType));
    const int64_t dstRow = c * static_cast<int64_t>(elementBytes(dstType));
    forShares(n, threads, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        copyRow(table + ids[i] * tableRow, tableType, dst + i * dstRow, dstType, c);
    });
    return {};
  }
};

Result<std::unique_ptr<CpuKernel>> makeEmbeddingKernel(const KernelArgs &args, const CpuTarget &target) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {"n", "v", "c"}));
  auto kernel = std::make_unique<EmbeddingKernel>();
  kernel->n = args.integer("n");
  kernel->v = args.integer("v");
  kernel->c = args.integer("c");
  kernel->tableType = args.type("tableType");
  kernel->dstType = args.type("dstType");
  if (!isFloat(kernel->tableType) || !isFloat(kernel->dstType))
    return Error{"the table and the result must be f32 or bf16"};
  LLMC_RETURN_IF_ERROR(requireElements(args, "table", __int128(kernel->v) * kernel->c - 1, kernel->tableType));
  LLMC_RETURN_IF_ERROR(requireElements(args, "ids", kernel->n - 1, ElementType::i64));
  LLMC_RETURN_IF_ERROR(requireElements(args, "dst", __int128(kernel->n) * kernel->c - 1, kernel->dstType));
  kernel->table = args.operand("table").data;
  kernel->ids = args.operand("ids").as<int64_t>();
  kernel->dst = args.operand("dst").data;
  kernel->threads = target.threads;
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

class EmbeddingGradKernel : public CpuKernel {
public:
  const int64_t *ids = nullptr;
  const std::byte *dOut = nullptr;
  float *dTable = nullptr;
  int64_t n = 0, v = 0, c = 0;
  ElementType dOutType = ElementType::f32;
  bool accumulate = false;
  int threads = 1;

  Status run(std::byte *) override {
    LLMC_RETURN_IF_ERROR(checkIds(ids, n, v));
    if (!accumulate)
      forShares(v * c, threads, 4096, [&](int64_t begin, int64_t end) {
        std::memset(dTable + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
      });
    forShares(c, threads, 16, [&](int64_t begin, int64_t end) {
      if (dOutType == ElementType::f32)
        addRows(reinterpret_cast<const float *>(dOut), begin, end, [](float value) { return value; });
      else
        addRows(reinterpret_cast<const uint16_t *>(dOut), begin, end, floatFromBf16);
    });
    return {};
  }

private:
  template <typename T, typename Widen> void addRows(const T *src, int64_t begin, int64_t end, Widen widen) const {
    for (int64_t i = 0; i < n; ++i) {
      float *to = dTable + ids[i] * c;
      const T *from = src + i * c;
      for (int64_t j = begin; j < end; ++j)
        to[j] += widen(from[j]);
    }
  }
};

Result<std::unique_ptr<CpuKernel>> makeEmbeddingGradKernel(const KernelArgs &args, const CpuTarget &target) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {"n", "v", "c"}));
  auto kernel = std::make_unique<EmbeddingGradKernel>();
  kernel->n = args.integer("n");
  kernel->v = args.integer("v");
  kernel->c = args.integer("c");
  kernel->dOutType = args.type("dOutType");
  kernel->accumulate = args.flag("accumulate");
  if (!isFloat(kernel->dOutType) || args.type("dTableType") != ElementType::f32)
    return Error{"the gradient must be f32 or bf16, the table's f32"};
  LLMC_RETURN_IF_ERROR(requireElements(args, "ids", kernel->n - 1, ElementType::i64));
  LLMC_RETURN_IF_ERROR(requireElements(args, "dOut", __int128(kernel->n) * kernel->c - 1, kernel->dOutType));
  LLMC_RETURN_IF_ERROR(requireElements(args, "dTable", __int128(kernel->v) * kernel->c - 1, ElementType::f32));
  kernel->ids = args.operand("ids").as<int64_t>();
  kernel->dOut = args.operand("dOut").data;
  kernel->dTable = args.operand("dTable").as<float>();
  kernel->threads = target.threads;
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

} // namespace llmc
