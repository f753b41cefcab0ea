// Binding by name: the names are those that cuda.h makes of the table's.
#include "backend/cuda/Driver.h"

#include <dlfcn.h>

#define LLMC_CUDA_NAME_OF_EXPANDED(name) #name
#define LLMC_CUDA_NAME_OF(name) LLMC_CUDA_NAME_OF_EXPANDED(name)

namespace llmc::cuda {

Result<std::unique_ptr<Driver>> Driver::load(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{"no NVIDIA driver: " + std::string(dlerror()) + "; --device cpu runs without one"};
  std::unique_ptr<Driver> driver(new Driver(library));
#define LLMC_CUDA_ENTRY(name)                                                                                          \
  driver->name = reinterpret_cast<decltype(driver->name)>(driver->symbol(LLMC_CUDA_NAME_OF(name)));                    \
  if (!driver->name)                                                                                                   \
    return Error{path +                                                                                                \
                 " lacks " LLMC_CUDA_NAME_OF(name) ": the NVIDIA driver is too old; --device cpu runs without it"};
#include "backend/cuda/DriverApi.def"
#undef LLMC_CUDA_ENTRY
  return driver;
}

Driver::~Driver() { dlclose(library); }

void *Driver::symbol(const char *name) const { return dlsym(library, name); }

Status Driver::check(CUresult result, const std::string &what) const {
  if (result == CUDA_SUCCESS)
    return {};
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  if (cuGetErrorString(result, &words) != CUDA_SUCCESS || !words)
    words = "the driver has no words for it";
  return Error{what + ": " + name + " (" + std::to_string(result) + "): " + words};
}

} // namespace llmc::cuda
