// NVIDIA's library of collectives, loaded when several ranks have a GPU each. NcclApi.def names the entry points; each
// is a member here.
#pragma once

#include "backend/cuda/Library.h"

#include <memory>
#include <nccl.h>

namespace llmc::cuda {

class Nccl {
public:
  /// Loads the library and binds every entry point. Fails, in words for the person at the terminal, where the library
  /// is missing or too old. Tests name a simulated one instead.
  static Result<std::unique_ptr<Nccl>> load(const std::string &path = "libnccl.so.2");

  /// What a call gave, as a Status: `what` was being done, the library's words for it.
  Status check(ncclResult_t result, const std::string &what) const;

  /// The address of an entry point that is not in the table, or null.
  void *symbol(const char *name) const { return library.symbol(name); }

#define LLMC_NCCL_ENTRY(name) decltype(&::name) name = nullptr;
#include "backend/cuda/NcclApi.def"
#undef LLMC_NCCL_ENTRY

private:
  explicit Nccl(Library library) : library(std::move(library)) {}
  Library library;
};

} // namespace llmc::cuda
