// Binding by name.
#include "backend/cuda/Blas.h"

namespace llmc::cuda {

Result<std::unique_ptr<Blas>> Blas::load(const std::string &path) {
  Result<Library> library = Library::open(path);
  if (!library)
    return Error{"no cuBLAS: " + library.error().message + "; it comes with CUDA 13, and --device cpu runs without it"};
  std::unique_ptr<Blas> blas(new Blas(std::move(*library)));
#define LLMC_CUBLAS_ENTRY(name)                                                                                        \
  LLMC_RETURN_IF_ERROR(blas->library.bind(blas->name, LLMC_CUDA_NAME_OF(name), "CUDA 13's cuBLAS is needed"));
#include "backend/cuda/BlasApi.def"
#undef LLMC_CUBLAS_ENTRY
  return blas;
}

Status Blas::check(cublasStatus_t result, const std::string &what) const {
  if (result == CUBLAS_STATUS_SUCCESS)
    return {};
  return Error{what + ": " + cublasLtGetStatusName(result) + " (" + std::to_string(result) +
               "): " + cublasLtGetStatusString(result)};
}

} // namespace llmc::cuda
