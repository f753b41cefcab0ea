// NVIDIA's library of contractions, loaded when a plan for a GPU is opened. BlasApi.def names the entry points; each is
// a member here.
#pragma once

#include "backend/cuda/Library.h"

#include <cublasLt.h>
#include <memory>

namespace llmc::cuda {

class Blas {
public:
  /// Loads the library and binds every entry point. Fails, in words for the person at the terminal, where the library
  /// is missing or too old. Tests name a simulated one instead.
  static Result<std::unique_ptr<Blas>> load(const std::string &path = "libcublasLt.so.13");

  /// What a call gave, as a Status: `what` was being done, the status's name and the library's words for it.
  Status check(cublasStatus_t result, const std::string &what) const;

  /// The address of an entry point that is not in the table, or null.
  void *symbol(const char *name) const { return library.symbol(name); }

#define LLMC_CUBLAS_ENTRY(name) decltype(&::name) name = nullptr;
#include "backend/cuda/BlasApi.def"
#undef LLMC_CUBLAS_ENTRY

private:
  explicit Blas(Library library) : library(std::move(library)) {}
  Library library;
};

} // namespace llmc::cuda
