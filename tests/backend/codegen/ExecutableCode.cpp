// mmap, copy, mprotect: never writable and executable at once.
#include "tests/backend/codegen/ExecutableCode.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace llmc {

ExecutableCode::ExecutableCode(const CodeBlob &code) : blob(code) {
  memory = mmap(nullptr, blob.bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    std::abort();
  std::memcpy(memory, blob.bytes.data(), blob.bytes.size());
  if (mprotect(memory, blob.bytes.size(), PROT_READ | PROT_EXEC) != 0)
    std::abort();
}

ExecutableCode::~ExecutableCode() { munmap(memory, blob.bytes.size()); }

GeneratedKernel ExecutableCode::entry(size_t i) const {
  return reinterpret_cast<GeneratedKernel>(static_cast<std::byte *>(memory) + blob.entries[i].second);
}

bool canRun(const CpuIsa &isa) {
  __builtin_cpu_init();
  if (isa.hasBf16)
    return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512bf16");
  return isa.lanes == 16 ? __builtin_cpu_supports("x86-64-v4") : __builtin_cpu_supports("x86-64-v3");
}

} // namespace llmc
