// A fusion on the simulated GPU: every access checked, the block's warps in an unkind order.
#pragma once

#include "tests/backend/codegen/FusionCase.h"

namespace llmc {

/// Compiles a fusion for sm_80 and runs its PTX on inputs; the results in the order of the fusion. A fault is a test
/// failure.
std::vector<HostTensor> runOnGpu(FusionOp fusion, const FusionSpec &spec, const std::vector<HostTensor> &inputs);

} // namespace llmc
