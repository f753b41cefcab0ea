// A code blob in executable memory, as the runtime places it.
#pragma once

#include "backend/codegen/Codegen.h"

namespace llmc {

class ExecutableCode {
public:
  explicit ExecutableCode(const CodeBlob &blob);
  ~ExecutableCode();
  ExecutableCode(const ExecutableCode &) = delete;
  GeneratedKernel entry(size_t i) const;

private:
  CodeBlob blob;
  void *memory = nullptr;
};

/// Whether this machine can run code for a level.
bool canRun(const CpuIsa &isa);

} // namespace llmc
