// llmc-opt: runs passes on IR by name, as mlir-opt does for MLIR's own dialects. What people use to see one pass at
// work, and what the lit tests run.
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<llmc::LlmcDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::vector::VectorDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
  llmc::registerLlmcPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv,
                                                  "llmc-opt: the passes of llmc, by name\n\n"
                                                  "Example, on IR that llmc-compile --dump-ir wrote:\n"
                                                  "  llmc-opt ir/00-import.mlir --llmc-raise-norm --canonicalize\n",
                                                  registry));
}
