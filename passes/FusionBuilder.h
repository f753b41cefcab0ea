// Makes one llmc.fusion of a cluster: iteration space with as few dimensions as its broadcasts allow, block sizes,
// body.
#pragma once

#include "passes/FusionClusters.h"

namespace llmc {

/// Builds the fusion of a cluster at the builder's insertion point and redirects all uses of the cluster's values
/// outside it to the fusion's results (column sums through a second fusion over their partial sums). The cluster's ops
/// are left without users, to be erased by the caller.
/// `isGpu`: tasks are blocks of a GPU's threads, else what a CPU's thread takes at once.
FusionOp buildFusion(mlir::OpBuilder &builder, const FusionNode &cluster, const FusibleOps &fusible, bool isGpu);

} // namespace llmc
