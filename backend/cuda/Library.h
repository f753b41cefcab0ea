// A shared library that is loaded when it is needed, and stays as long as this lives.
#pragma once

#include "runtime/Status.h"

#include <string>
#include <utility>

namespace llmc::cuda {

class Library {
public:
  /// Fails with the loader's words.
  static Result<Library> open(const std::string &path);
  Library(Library &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Library &operator=(Library &&) = delete;
  ~Library();

  /// The address of a function, or null.
  void *symbol(const char *name) const;

private:
  explicit Library(void *handle) : handle(handle) {}
  void *handle;
};

} // namespace llmc::cuda

/// The name that a header's macros make of `name`, as a string.
#define LLMC_CUDA_NAME_OF_EXPANDED(name) #name
#define LLMC_CUDA_NAME_OF(name) LLMC_CUDA_NAME_OF_EXPANDED(name)
