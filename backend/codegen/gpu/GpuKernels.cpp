// The table of emitters. A kind that is missing here is a fusion, or belongs to a library or the driver.
#include "backend/codegen/gpu/Emitters.h"

namespace llmc {

GpuKernelEmitter gpuKernelEmitter(KernelKind kind) {
  switch (kind) {
  case KernelKind::Attention:
    return emitAttention;
  case KernelKind::AttentionGrad:
    return emitAttentionGrad;
  case KernelKind::Copy:
    return emitCopy;
  case KernelKind::Embedding:
    return emitEmbedding;
  case KernelKind::EmbeddingGrad:
    return emitEmbeddingGrad;
  default:
    return nullptr;
  }
}

bool takesStatus(KernelKind kind) { return kind == KernelKind::Embedding; }

} // namespace llmc
