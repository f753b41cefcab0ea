// Generated kernels read and write each operand as a whole, also where a result lies over an operand. The others name
// one buffer several times (packed q, k and v), add to what is there where `accumulate` says so, or touch a part of it.
#include "backend/LaunchTraffic.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using llvm::SmallVector;
using llvm::StringRef;

namespace llmc {

/// An integer argument by its name in Kernels.def; 0 where the kernel has none of that name.
static int64_t intOf(const Launch &launch, StringRef name) {
  SmallVector<StringRef> names;
  StringRef(kernelInfo(launch.kind).ints).split(names, ' ');
  auto found = llvm::find(names, name);
  return found == names.end() ? 0 : launch.ints[size_t(found - names.begin())];
}

static double sumOf(llvm::ArrayRef<BufferRef> buffers) {
  double bytes = 0;
  for (const BufferRef &buffer : buffers)
    bytes += double(buffer.bytes);
  return bytes;
}

/// The rows of the table that `n` ids can name.
static double rowBytes(const Launch &launch, const BufferRef &table) {
  return double(table.bytes) * double(std::min(intOf(launch, "n"), intOf(launch, "v"))) / double(intOf(launch, "v"));
}

/// What a copy takes out of its source: often a part of it, put into a part of a larger value.
static double copiedBytes(const Launch &launch) {
  double bytes = double(intOf(launch, "bytes"));
  for (const char *size : {"size0", "size1", "size2", "size3", "size4", "size5"})
    bytes *= double(intOf(launch, size));
  return bytes;
}

double trafficBytes(const Launch &launch) {
  if (launch.kind == KernelKind::Generated)
    return sumOf(launch.operands);
  if (launch.kind == KernelKind::Copy)
    return 2 * copiedBytes(launch);
  SmallVector<BufferRef> distinct;
  for (const BufferRef &operand : launch.operands)
    if (!llvm::is_contained(distinct, operand))
      distinct.push_back(operand);
  double bytes = sumOf(distinct);
  bool adds = intOf(launch, "accumulate") != 0;
  if (launch.kind == KernelKind::Embedding)
    return bytes - double(launch.operands[0].bytes) + rowBytes(launch, launch.operands[0]);
  if (launch.kind == KernelKind::EmbeddingGrad) {
    const BufferRef &table = launch.operands[2];
    double touched = 2 * rowBytes(launch, table); // read and written
    return bytes - double(table.bytes) + (adds ? touched : touched + double(table.bytes));
  }
  if (launch.kind == KernelKind::MatMul && adds)
    bytes += double(launch.operands[3].bytes);
  return bytes;
}

} // namespace llmc
