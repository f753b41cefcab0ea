// Contractions through cublasLt, whose matrices are column-major: a row-major matrix is its own transpose there, so
// dst = lhs * rhs is asked for as dst' = rhs' * lhs'.
#pragma once

#include "backend/cuda/Blas.h"
#include "backend/cuda/CudaKernel.h"

#include <map>

namespace llmc::cuda {

/// cublasLt on one device, with what its calls share.
class Contractions {
public:
  /// `context` must outlive it.
  static Result<std::unique_ptr<Contractions>> open(Context &context, const std::string &libraryPath);
  ~Contractions();
  Contractions(const Contractions &) = delete;
  Contractions &operator=(const Contractions &) = delete;

  /// Chooses an algorithm for a launch and makes it ready to run on a stream, `streamIndex` of the program;
  /// `allowTf32`: f32 is multiplied in TF32. Fails where the layout is not what Kernels.def says: cublasLt itself
  /// checks nothing.
  MadeKernel makeKernel(const Launch &launch, const DeviceSpaces &spaces, uint32_t streamIndex, bool allowTf32);

private:
  explicit Contractions(Context &context) : context(context) {}
  Result<CUdeviceptr> workspaceOf(uint32_t streamIndex);
  Status loadRounding();

  Context &context;
  std::unique_ptr<Blas> blas;
  cublasLtHandle_t handle = nullptr;
  std::map<uint32_t, DeviceMemory> workspaces; ///< by stream: kernels of one stream follow each other
  CUmodule roundingModule = nullptr;
  CUfunction rounding = nullptr;
};

} // namespace llmc::cuda
