// NVIDIA's driver, loaded when a GPU is asked for and never linked: one llmc-run serves machines with and without one.
// DriverApi.def names the entry points; each is a member here, so a call reads `driver->cuMemAlloc(&address, bytes)`.
#pragma once

#include "backend/cuda/Library.h"
#include "runtime/Status.h"

#include <cuda.h>
#include <memory>
#include <string>

namespace llmc::cuda {

class Driver {
public:
  /// Loads the library and binds every entry point. Fails, in words for the person at the terminal, where the library
  /// is missing or too old. Tests name a simulated driver instead.
  static Result<std::unique_ptr<Driver>> load(const std::string &path = "libcuda.so.1");

  /// What a call gave, as a Status: `what` was being done, the error's name and the driver's words for it.
  Status check(CUresult result, const std::string &what) const;

  /// The address of an entry point that is not in the table, or null.
  void *symbol(const char *name) const { return library.symbol(name); }

#define LLMC_CUDA_ENTRY(name) decltype(&::name) name = nullptr;
#include "backend/cuda/DriverApi.def"
#undef LLMC_CUDA_ENTRY

private:
  explicit Driver(Library library) : library(std::move(library)) {}
  Library library;
};

} // namespace llmc::cuda
