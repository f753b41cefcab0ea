// A library's plans are made once for launches that differ in their operands' addresses alone.
#include "backend/cuda/AttentionKernel.h"

#include "runtime/KernelArguments.h"

namespace llmc::cuda {

namespace {
class AttentionKernel : public CudaKernel {
public:
  AttentionKernel(std::shared_ptr<AttentionPlan> plan, std::vector<CUdeviceptr> operands, CUdeviceptr workspace)
      : plan(std::move(plan)), operands(std::move(operands)), workspace(workspace) {}
  Status submit(CUstream stream) override { return plan->submit(stream, operands, workspace); }

private:
  std::shared_ptr<AttentionPlan> plan;
  std::vector<CUdeviceptr> operands;
  CUdeviceptr workspace;
};
} // namespace

/// Kernels made before keep the workspace that they were given.
Result<CUdeviceptr> Attentions::workspaceOf(uint32_t streamIndex, uint64_t bytes) {
  if (bytes == 0)
    return CUdeviceptr(0);
  std::vector<Workspace> &ofStream = workspaces[streamIndex];
  for (const Workspace &workspace : ofStream)
    if (workspace.bytes >= bytes)
      return workspace.memory.address();
  Result<DeviceMemory> memory = DeviceMemory::allocate(context, bytes, "attention's workspace");
  LLMC_RETURN_IF_ERROR(memory);
  ofStream.push_back({std::move(*memory), bytes});
  return ofStream.back().memory.address();
}

static Result<std::shared_ptr<AttentionPlan>> shared(Result<std::unique_ptr<AttentionPlan>> plan) {
  if (!plan)
    return plan.error();
  return std::shared_ptr<AttentionPlan>(std::move(*plan));
}

MadeKernel Attentions::makeKernel(const Launch &launch, const DeviceSpaces &spaces, uint32_t streamIndex) {
  bool hasMask = operandArgument(launch, "mask").space != Space::none;
  Key key(launch.kind, launch.ints, launch.floats, hasMask);
  auto found = plans.find(key);
  if (found == plans.end()) {
    Result<std::unique_ptr<AttentionPlan>> plan =
        library ? (*library)->take(launch) : Result<std::unique_ptr<AttentionPlan>>(library.error());
    found = plans.emplace(std::move(key), shared(std::move(plan))).first;
  }
  if (!found->second) {
    std::string words =
        std::string(kernelInfo(launch.kind).name) + " runs as the plan's own kernel: " + found->second.error().message;
    if (notice && noticed.insert(words).second)
      notice(words);
    return std::unique_ptr<CudaKernel>();
  }
  std::shared_ptr<AttentionPlan> plan = *found->second;
  Result<CUdeviceptr> workspace = workspaceOf(streamIndex, plan->workspaceBytes());
  LLMC_RETURN_IF_ERROR(workspace);
  std::vector<CUdeviceptr> operands;
  for (const BufferRef &operand : launch.operands)
    operands.push_back(addressOf(operand, spaces));
  return std::unique_ptr<CudaKernel>(new AttentionKernel(std::move(plan), std::move(operands), *workspace));
}

} // namespace llmc::cuda
