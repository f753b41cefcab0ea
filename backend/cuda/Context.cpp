// Start-up in the driver's order; the device's identity is read once.
#include "backend/cuda/Context.h"

#include <fmt/format.h>

namespace llmc::cuda {

/// CUDA 13.0, whose libraries we call.
static constexpr int kLeastDriver = 13000;

static std::string versionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Result<std::unique_ptr<Context>> Context::open(const std::string &driverPath, int ordinal) {
  Result<std::unique_ptr<Driver>> driver = Driver::load(driverPath);
  LLMC_RETURN_IF_ERROR(driver);
  std::unique_ptr<Context> context(new Context(std::move(*driver)));
  LLMC_RETURN_IF_ERROR(context->start(ordinal));
  return context;
}

Context::~Context() {
  if (!context || abandoned)
    return;
  if (mainStream)
    api->cuStreamDestroy(mainStream);
  api->cuDevicePrimaryCtxRelease(device);
}

Status Context::start(int ordinal) {
  int version = 0, count = 0;
  LLMC_RETURN_IF_ERROR(api->check(api->cuDriverGetVersion(&version), "asking the NVIDIA driver for its version"));
  if (version < kLeastDriver)
    return Error{fmt::format("the NVIDIA driver is for CUDA {}, at least {} is needed; --device cpu runs without one",
                             versionText(version), versionText(kLeastDriver))};
  CUresult started = api->cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE)
    return Error{"the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES hides those it does not name); --device cpu "
                 "runs without one"};
  LLMC_RETURN_IF_ERROR(api->check(started, "starting the NVIDIA driver"));
  LLMC_RETURN_IF_ERROR(api->check(api->cuDeviceGetCount(&count), "counting GPUs"));
  if (ordinal >= count)
    return Error{fmt::format("GPU {} of {}: each rank of a machine needs a GPU of its own", ordinal, count)};
  LLMC_RETURN_IF_ERROR(api->check(api->cuDeviceGet(&device, ordinal), "taking the GPU"));
  LLMC_RETURN_IF_ERROR(readIdentity());
  LLMC_RETURN_IF_ERROR(check(api->cuDevicePrimaryCtxRetain(&context, device), "opening the GPU"));
  LLMC_RETURN_IF_ERROR(makeCurrent());
  return check(api->cuStreamCreateWithPriority(&mainStream, CU_STREAM_NON_BLOCKING, 0), "making a stream");
}

Status Context::readIdentity() {
  char text[256] = "";
  CUuuid uuid{};
  LLMC_RETURN_IF_ERROR(api->check(api->cuDeviceGetName(text, sizeof text, device), "reading the GPU's name"));
  deviceName = text;
  LLMC_RETURN_IF_ERROR(api->check(api->cuDeviceGetPCIBusId(text, sizeof text, device), "reading the GPU's PCI id"));
  pciId = text;
  LLMC_RETURN_IF_ERROR(api->check(api->cuDeviceGetUuid(&uuid, device), "reading the GPU's UUID"));
  std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), deviceUuid.begin());
  Result<int> major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  LLMC_RETURN_IF_ERROR(major);
  Result<int> minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  LLMC_RETURN_IF_ERROR(minor);
  capability = *major * 10 + *minor;
  return {};
}

Result<int> Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  LLMC_RETURN_IF_ERROR(
      check(api->cuDeviceGetAttribute(&value, which, device), fmt::format("attribute {}", static_cast<int>(which))));
  return value;
}

std::string Context::identity() const {
  std::string uuid = "GPU-";
  for (size_t i = 0; i < deviceUuid.size(); ++i)
    uuid += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(deviceUuid[i]));
  return fmt::format("{}, PCI {}, UUID {}", deviceName, pciId, uuid);
}

Status Context::makeCurrent() const { return check(api->cuCtxSetCurrent(context), "entering the GPU's context"); }

Status Context::check(CUresult result, const std::string &what) const {
  Status status = api->check(result, what);
  return status ? status : Status(Error{fmt::format("{} ({})", status.error().message, identity())});
}

void Context::noteAllocated(uint64_t bytes) {
  uint64_t now = allocated += bytes, before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
}

Result<Event> makeEvent(const Context &context, bool hasTiming) {
  CUevent event = nullptr;
  unsigned int flags = hasTiming ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  LLMC_RETURN_IF_ERROR(context.check(context.driver().cuEventCreate(&event, flags), "making an event"));
  return Event(context.driver(), event);
}

Result<Stream> makeStream(const Context &context, bool isUrgent) {
  const Driver &driver = context.driver();
  int least = 0, greatest = 0;
  CUstream stream = nullptr;
  LLMC_RETURN_IF_ERROR(context.check(driver.cuCtxGetStreamPriorityRange(&least, &greatest), "asking for priorities"));
  LLMC_RETURN_IF_ERROR(context.check(
      driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, isUrgent ? greatest : 0), "making a stream"));
  return Stream(driver, stream);
}

} // namespace llmc::cuda
