// Loading NCCL: what is missing is named, with the way out.
#include "backend/cuda/Nccl.h"

#include <gmock/gmock.h>

namespace llmc::cuda {
namespace {

using testing::HasSubstr;

TEST(CudaNccl, aMissingLibraryIsNamed) {
  Result<std::unique_ptr<Nccl>> nccl = Nccl::load("libnccl-that-is-nowhere.so.2");
  ASSERT_FALSE(nccl);
  EXPECT_THAT(nccl.error().message, HasSubstr("no NCCL: libnccl-that-is-nowhere.so.2"));
  EXPECT_THAT(nccl.error().message, HasSubstr("one rank needs none"));
}

TEST(CudaNccl, aLibraryWithoutTheEntryPointsIsTooOld) {
  Result<std::unique_ptr<Nccl>> nccl = Nccl::load("libm.so.6");
  ASSERT_FALSE(nccl);
  EXPECT_THAT(nccl.error().message, HasSubstr("libm.so.6 lacks ncclGetVersion: NCCL 2.28 is needed"));
}

} // namespace
} // namespace llmc::cuda
