// A shared library that is loaded when it is needed, and stays as long as this lives. Its entry points are members of
// the class that owns it, bound one by one from an X-macro table.
#pragma once

#include "runtime/Status.h"

#include <string>
#include <utility>

namespace llmc::cuda {

class Library {
public:
  /// Fails with the loader's words.
  static Result<Library> open(const std::string &path);
  Library(Library &&other) noexcept : path(std::move(other.path)), handle(std::exchange(other.handle, nullptr)) {}
  Library &operator=(Library &&) = delete;
  ~Library();

  /// The address of a function, or null.
  void *symbol(const char *name) const;

  /// Binds an entry point; where it is missing, `need` says what is wrong with the library.
  template <typename Function> Status bind(Function *&entry, const char *name, const char *need) const {
    entry = reinterpret_cast<Function *>(symbol(name));
    return entry ? Status() : Error{path + " lacks " + name + ": " + need + "; --device cpu runs without it"};
  }

private:
  Library(std::string path, void *handle) : path(std::move(path)), handle(handle) {}
  std::string path;
  void *handle;
};

} // namespace llmc::cuda

/// The name that a header's macros make of `name`, as a string.
#define LLMC_CUDA_NAME_OF_EXPANDED(name) #name
#define LLMC_CUDA_NAME_OF(name) LLMC_CUDA_NAME_OF_EXPANDED(name)
