// Binding by name.
#include "backend/cuda/Nccl.h"

namespace llmc::cuda {

Result<std::unique_ptr<Nccl>> Nccl::load(const std::string &path) {
  Result<Library> library = Library::open(path);
  if (!library)
    return Error{"no NCCL: " + library.error().message + "; one rank needs none, and --device cpu runs without it"};
  std::unique_ptr<Nccl> nccl(new Nccl(std::move(*library)));
#define LLMC_NCCL_ENTRY(name)                                                                                          \
  LLMC_RETURN_IF_ERROR(nccl->library.bind(nccl->name, LLMC_CUDA_NAME_OF(name), "NCCL 2.28 is needed"));
#include "backend/cuda/NcclApi.def"
#undef LLMC_NCCL_ENTRY
  return nccl;
}

Status Nccl::check(ncclResult_t result, const std::string &what) const {
  if (result == ncclSuccess)
    return {};
  return Error{what + ": NCCL error " + std::to_string(result) + ": " + ncclGetErrorString(result)};
}

} // namespace llmc::cuda
