// Binding by name: the names are those that cuda.h makes of the table's.
#include "backend/cuda/Driver.h"

namespace llmc::cuda {

Result<std::unique_ptr<Driver>> Driver::load(const std::string &path) {
  Result<Library> library = Library::open(path);
  if (!library)
    return Error{"no NVIDIA driver: " + library.error().message + "; --device cpu runs without one"};
  std::unique_ptr<Driver> driver(new Driver(std::move(*library)));
#define LLMC_CUDA_ENTRY(name)                                                                                          \
  LLMC_RETURN_IF_ERROR(driver->library.bind(driver->name, LLMC_CUDA_NAME_OF(name), "the NVIDIA driver is too old"));
#include "backend/cuda/DriverApi.def"
#undef LLMC_CUDA_ENTRY
  return driver;
}

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
