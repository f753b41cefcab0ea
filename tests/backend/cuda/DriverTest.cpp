// Loading the driver: what is missing is named, with the way out.
#include "backend/cuda/Driver.h"

#include <gmock/gmock.h>

namespace llmc::cuda {
namespace {

using testing::HasSubstr;

TEST(CudaDriver, aMissingLibraryIsNamed) {
  Result<std::unique_ptr<Driver>> driver = Driver::load("libcuda-that-is-nowhere.so.1");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("libcuda-that-is-nowhere.so.1"));
  EXPECT_THAT(driver.error().message, HasSubstr("--device cpu"));
}

TEST(CudaDriver, aLibraryWithoutTheEntryPointsIsTooOld) {
  Result<std::unique_ptr<Driver>> driver = Driver::load("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("libm.so.6 lacks cuInit: the NVIDIA driver is too old"));
}

} // namespace
} // namespace llmc::cuda
