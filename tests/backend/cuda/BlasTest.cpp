// Loading cublasLt: what is missing is named, with the way out.
#include "backend/cuda/Blas.h"

#include <gmock/gmock.h>

namespace llmc::cuda {
namespace {

using testing::HasSubstr;

TEST(CudaBlas, aMissingLibraryIsNamed) {
  Result<std::unique_ptr<Blas>> blas = Blas::load("libcublas-that-is-nowhere.so.13");
  ASSERT_FALSE(blas);
  EXPECT_THAT(blas.error().message, HasSubstr("no cuBLAS: libcublas-that-is-nowhere.so.13"));
  EXPECT_THAT(blas.error().message, HasSubstr("--device cpu"));
}

TEST(CudaBlas, aLibraryWithoutTheEntryPointsIsTooOld) {
  Result<std::unique_ptr<Blas>> blas = Blas::load("libm.so.6");
  ASSERT_FALSE(blas);
  EXPECT_THAT(blas.error().message, HasSubstr("libm.so.6 lacks cublasLtGetVersion: CUDA 13's cuBLAS is needed"));
}

} // namespace
} // namespace llmc::cuda
