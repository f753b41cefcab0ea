// dlopen and dlsym.
#include "backend/cuda/Library.h"

#include <dlfcn.h>

namespace llmc::cuda {

Result<Library> Library::open(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Error{dlerror()};
  return Library(path, handle);
}

Library::~Library() {
  if (handle)
    dlclose(handle);
}

void *Library::symbol(const char *name) const { return dlsym(handle, name); }

} // namespace llmc::cuda
