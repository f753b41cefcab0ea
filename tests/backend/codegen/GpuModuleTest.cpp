// Modules to PTX: what gpu kernels are made of arrives as the instructions that we expect, and what is wrong is said.
#include "backend/codegen/GpuModule.h"
#include "backend/codegen/LowerModule.h"
#include "tests/backend/codegen/FusionCase.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using testing::HasSubstr;
using testing::Not;

namespace llmc {
namespace {

/// The PTX of a module, or the error.
std::string ptxOf(const char *text) {
  loadKernelDialects(testContext());
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&testContext()));
  if (!module)
    return "the module does not parse";
  llvm::Expected<std::string> ptx = compileToPtx(*module, gpuIsas()[0]);
  return ptx ? *ptx : "error: " + llvm::toString(ptx.takeError());
}

TEST(GpuModule, EmitsEntriesSharedMemoryAndShuffles) {
  std::string ptx = ptxOf(R"(
    llvm.mlir.global internal @partial() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>
    llvm.func @sum(%dst: !llvm.ptr<1>, %src: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      %at = llvm.getelementptr %src[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
      %four = llvm.load %at {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
      %lane0 = arith.constant 0 : i32
      %x = llvm.extractelement %four[%lane0 : i32] : vector<4xf32>
      %all = arith.constant -1 : i32
      %one = arith.constant 1 : i32
      %clamp = arith.constant 31 : i32
      %other = nvvm.shfl.sync bfly %all, %x, %one, %clamp : f32 -> f32
      %sum = arith.addf %x, %other : f32
      %shared = llvm.mlir.addressof @partial : !llvm.ptr<3>
      %slot = llvm.getelementptr %shared[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %sum, %slot : f32, !llvm.ptr<3>
      nvvm.barrier0
      %back = llvm.load %shared : !llvm.ptr<3> -> f32
      %result = math.exp %back : f32
      llvm.store %result, %dst : f32, !llvm.ptr<1>
      llvm.return
    })");
  for (const char *expected :
       {".version 7.0", ".target sm_80", ".visible .entry sum(", ".reqntid 64", ".shared .align 16", "ld.global.v4.f32",
        "shfl.sync.bfly.b32", "st.shared.f32", "bar.sync", "st.global.f32"})
    EXPECT_THAT(ptx, HasSubstr(expected));
  EXPECT_THAT(ptx, Not(HasSubstr("call")));   // exp is expanded, nothing is called
  EXPECT_THAT(ptx, Not(HasSubstr(".local"))); // and nothing is spilled by LLVM
}

TEST(GpuModule, SaysWhatDoesNotLower) {
  ScopedDiagnosticHandler quiet(&testContext(), [](Diagnostic &) { return success(); });
  EXPECT_EQ(ptxOf("llvm.func @f(%x: f32) { %0 = \"llmc.exp\"(%x) : (f32) -> f32\nllvm.return }"),
            "the module does not parse");
  EXPECT_EQ(ptxOf("func.func private @f()"), "the module does not parse");
  EXPECT_EQ(ptxOf("llmc.program @p \"graph\" () -> () { llmc.return }"),
            "error: a kernel does not lower to LLVM's dialect");
}

} // namespace
} // namespace llmc
