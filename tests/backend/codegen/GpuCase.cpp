// Results lie in memory that holds nothing yet: reading it is a fault, as is leaving a part of it so.
#include "tests/backend/codegen/GpuCase.h"
#include "backend/codegen/GpuCode.h"
#include "tests/cudasim/SimRun.h"

#include <gtest/gtest.h>

using mlir::RankedTensorType;

namespace llmc {

std::vector<HostTensor> runOnGpu(FusionOp fusion, const FusionSpec &spec, const std::vector<HostTensor> &inputs) {
  mlir::FailureOr<GpuSource> source = gpuSource(fusion);
  if (mlir::failed(source)) {
    ADD_FAILURE() << "not analysed";
    return {};
  }
  llvm::Expected<GpuCode> code = compileGpuSources(*fusion.getContext(), *source, gpuIsas()[0]);
  if (!code) {
    ADD_FAILURE() << llvm::toString(code.takeError());
    return {};
  }
  cudasim::SimBench bench(code->ptx);
  bench.maxWarpInstructions = 1 << 24;
  std::vector<uint64_t> addresses;
  for (const HostTensor &input : inputs)
    addresses.push_back(bench.upload(toBytes(input)));
  std::vector<RankedTensorType> types;
  for (auto [i, output] : llvm::enumerate(fusion.getOutputs())) {
    types.push_back(mlir::cast<RankedTensorType>(output.getType()));
    bool isInPlace = i < spec.inPlace.size() && spec.inPlace[i] >= 0;
    addresses.push_back(isInPlace ? addresses[size_t(spec.inPlace[i])] : bench.reserve(tensorBytes(types.back())));
  }
  std::vector<std::vector<std::byte>> arguments;
  for (uint64_t address : addresses)
    arguments.push_back(cudasim::SimBench::argument(address));
  const CodeEntry &entry = code->entries[0];
  if (std::optional<cudasim::Fault> fault = bench.runNamed(entry.symbol, entry.gridX, entry.blockX, arguments)) {
    ADD_FAILURE() << fault->describe() << "\n" << code->ptx;
    return {};
  }
  std::vector<HostTensor> results;
  for (auto [type, address] : llvm::zip_equal(types, llvm::ArrayRef(addresses).drop_front(inputs.size()))) {
    uint64_t bytes = tensorBytes(type);
    EXPECT_EQ(bench.memory.find(address)->shadow.firstUninitialized(0, bytes), std::nullopt) << "not written";
    results.push_back(fromBytes(type, bench.download<std::byte>(address, bytes).data()));
  }
  return results;
}

} // namespace llmc
