// The passes and the pipeline they form; what each does is in Passes.td.
#pragma once

#include "ir/Dialect.h"

#include "mlir/Pass/Pass.h"

#include <string>

namespace mlir {
class OpPassManager;
}

namespace llmc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// What the pipeline may be told.
struct PipelineOptions {
  std::string optimizer = "adamw";
  bool isBf16 = false; ///< contractions in bf16, see assign-precision
  bool isGpu = false;  ///< programs for GPUs: nothing is packed, kernels are cut for them
  /// Gradients that travel between ranks in one message, at most.
  int64_t bucketBytes = 25 << 20;
  /// Pass names without "llmc-", as `--disable-pass` takes them; canonicalize may be named too.
  llvm::SmallVector<std::string> disabled;
};

/// Adds all passes in order. Passes that the plan cannot do without are not left out: see whyRequired.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options);
/// Why a pass (name without "llmc-") can't be switched off; "" where it can: the step stays right, slower or larger.
llvm::StringRef whyRequired(llvm::StringRef name);
/// All pass names in pipeline order, without "llmc-".
llvm::SmallVector<llvm::StringRef> passNames();

} // namespace llmc
