// Launches code from the plan's blob over its grid of tasks. A task is one block of rows and columns and is the same
// for any thread count, so a kernel that sums over its block gives the same bits on one thread and on many.
#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/Parallel.h"

#include <cstring>
#include <vector>

namespace llmc {

/// What the compiler emits: the half-open block of rows and columns to work on.
using GeneratedCode = void (*)(void *const *operands, int64_t rowBegin, int64_t rowEnd, int64_t colBegin,
                               int64_t colEnd);

class GeneratedKernel : public CpuKernel {
public:
  GeneratedCode code = nullptr;
  std::vector<void *> operands;
  int64_t rows = 0, cols = 0, rowBlock = 1, colBlock = 1;
  int threads = 1;

  Status run(std::byte *) override {
    int64_t colTasks = (cols + colBlock - 1) / colBlock, rowTasks = (rows + rowBlock - 1) / rowBlock;
    forShares(rowTasks * colTasks, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t row = task / colTasks * rowBlock, col = task % colTasks * colBlock;
        code(operands.data(), row, std::min(rows, row + rowBlock), col, std::min(cols, col + colBlock));
      }
    });
    return {};
  }
};

Result<std::unique_ptr<CpuKernel>> makeGeneratedKernel(const KernelArgs &args, const CpuTarget &target) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {"rows", "cols"}));
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(1, {"rowBlock", "colBlock"}));
  auto kernel = std::make_unique<GeneratedKernel>();
  auto entry = static_cast<size_t>(args.entry());
  if (args.entry() < 0 || entry >= target.entries.size() || target.entries[entry].offset >= target.codeBytes)
    return Error{"code entry " + std::to_string(args.entry()) + " is not in the loaded code"};
  const std::byte *start = target.code + target.entries[entry].offset;
  std::memcpy(&kernel->code, &start, sizeof(start));
  for (size_t i = 0; i < args.numOperands(); ++i)
    kernel->operands.push_back(args.operandAt(i).data);
  kernel->rows = args.integer("rows");
  kernel->cols = args.integer("cols");
  kernel->rowBlock = args.integer("rowBlock");
  kernel->colBlock = args.integer("colBlock");
  kernel->threads = target.threads;
  return std::unique_ptr<CpuKernel>(std::move(kernel));
}

} // namespace llmc
