// The code as bytes: the same for the same fusions, shared by equal kernels, free of what a plan cannot hold.
#include "backend/codegen/CpuModule.h"
#include "backend/codegen/FlattenObject.h"
#include "backend/codegen/LowerModule.h"
#include "tests/backend/codegen/FusionCase.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using testing::HasSubstr;

namespace llmc {
namespace {

FusionSpec unary(const std::string &op, int64_t size) {
  std::string type = "tensor<" + std::to_string(size) + "xf32>";
  return {.space = {size},
          .inputs = {std::to_string(size) + "xf32"},
          .body = "%0 = llmc." + op + " %a0 : " + type + "\nllmc.yield %0 : " + type,
          .outputs = {std::to_string(size) + "xf32"}};
}

FusionSpec rowSum(int64_t rows, int64_t cols) {
  std::string full = std::to_string(rows) + "x" + std::to_string(cols) + "xf32", one = std::to_string(rows) + "x1xf32";
  return {.space = {rows, cols},
          .inputs = {full},
          .body = "%0 = llmc.reduce_sum %a0 {axes = array<i64: 1>} : (tensor<" + full + ">) -> tensor<" + one +
                  ">\nllmc.yield %0 : tensor<" + one + ">",
          .outputs = {one}};
}

TEST(Code, SameFusionsSameBytes) {
  std::vector<OwningOpRef<ModuleOp>> modules;
  for (const FusionSpec &spec : {unary("exp", 100), unary("tanh", 7), rowSum(4, 50), unary("erf", 9)})
    modules.push_back(parseFusion(spec));
  std::vector<FusionOp> fusions;
  for (auto &module : modules)
    fusions.push_back(fusionIn(*module));
  for (const CpuIsa &isa : cpuIsas()) {
    FailureOr<CodeBlob> first = compileFusions(fusions, isa), second = compileFusions(fusions, isa);
    ASSERT_TRUE(succeeded(first) && succeeded(second));
    EXPECT_EQ(first->bytes, second->bytes);
    EXPECT_EQ(first->entries, second->entries);
    for (auto &[name, offset] : first->entries)
      EXPECT_EQ(offset % 16, 0u);
  }
}

TEST(Code, EqualKernelsShare) {
  OwningOpRef<ModuleOp> a = parseFusion(unary("exp", 100)), b = parseFusion(unary("exp", 200)),
                        c = parseFusion(unary("tanh", 100));
  EXPECT_EQ(kernelKey(fusionIn(*a)), kernelKey(fusionIn(*b)))
      << "an elementwise kernel over one dimension takes any size";
  EXPECT_NE(kernelKey(fusionIn(*a)), kernelKey(fusionIn(*c)));
  FailureOr<CodeBlob> blob = compileFusions({fusionIn(*a), fusionIn(*c), fusionIn(*b)}, cpuIsas()[0]);
  ASSERT_TRUE(succeeded(blob));
  EXPECT_EQ(blob->entries[0], blob->entries[2]);
  EXPECT_NE(blob->entries[0].second, blob->entries[1].second);
  EXPECT_EQ(blob->entries[0].first, "exp");
  OwningOpRef<ModuleOp> rows = parseFusion(rowSum(4, 50)), wider = parseFusion(rowSum(4, 51));
  EXPECT_NE(kernelKey(fusionIn(*rows)), kernelKey(fusionIn(*wider)));
}

TEST(Code, NothingToCompile) {
  FailureOr<CodeBlob> blob = compileFusions({}, cpuIsas()[0]);
  ASSERT_TRUE(succeeded(blob));
  EXPECT_TRUE(blob->bytes.empty());
}

/// The diagnostic of a spec that parses but cannot be compiled.
std::string errorOf(const FusionSpec &spec) {
  std::string message;
  OwningOpRef<ModuleOp> module = parseFusion(spec);
  ScopedDiagnosticHandler handler(&testContext(), [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(compileFusions({fusionIn(*module)}, cpuIsas()[0])));
  return message;
}

TEST(Code, RefusesWhatKernelsCannotHold) {
  FusionSpec doubles{.space = {4}, .inputs = {"4xf64"}, .body = "llmc.yield %a0 : tensor<4xf64>", .outputs = {"4xf64"}};
  EXPECT_THAT(errorOf(doubles), HasSubstr("kernels read f32, bf16, i64, i32 and booleans, found 'tensor<4xf64>'"));
  FusionSpec inside{.space = {4},
                    .inputs = {"4xf32"},
                    .body = "%0 = llmc.cast %a0 : (tensor<4xf32>) -> tensor<4xf16>\nllmc.yield %0 : tensor<4xf16>",
                    .outputs = {"4xf16"}};
  EXPECT_THAT(errorOf(inside), HasSubstr("kernels compute in f32, bf16, i64, i32 and i1, found 'tensor<4xf16>'"));
  FusionSpec table{.space = {4},
                   .inputs = {"4xf32"},
                   .body = "%0 = llmc.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n%1 = llmc.add %a0, %0 : "
                           "(tensor<4xf32>, tensor<4xf32>) -> "
                           "tensor<4xf32>\nllmc.yield %1 : tensor<4xf32>",
                   .outputs = {"4xf32"}};
  EXPECT_THAT(errorOf(table), HasSubstr("a constant in a kernel must be one number"));
}

/// What flattening the object of a module in LLVM's dialect says.
std::string flattenError(const char *text) {
  loadKernelDialects(testContext());
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&testContext()));
  llvm::Expected<SmallVector<char>> object = compileToObject(*module, cpuIsas()[0]);
  if (!object)
    return llvm::toString(object.takeError());
  llvm::Expected<FlatCode> code = flattenObject(*object, "kernel");
  return code ? std::string() : llvm::toString(code.takeError());
}

TEST(Code, RefusesWhatCannotBeCopied) {
  EXPECT_EQ(flattenError("llvm.func @kernel() { llvm.return }"), "");
  EXPECT_THAT(
      flattenError("llvm.func @outside()\nllvm.func @kernel() { llvm.call @outside() : () -> ()\nllvm.return }"),
      HasSubstr("undefined symbol 'outside'"));
  EXPECT_THAT(flattenError(R"(llvm.mlir.global internal @state(1 : i32) : i32
    llvm.func @kernel() -> i32 {
      %0 = llvm.mlir.addressof @state : !llvm.ptr
      %1 = llvm.load volatile %0 : !llvm.ptr -> i32
      llvm.return %1 : i32
    })"),
              HasSubstr("section .data, which is neither code nor constants"));
  EXPECT_THAT(flattenError(R"(llvm.mlir.global external @outside() : i32
    llvm.func @kernel() -> !llvm.ptr {
      %0 = llvm.mlir.addressof @outside : !llvm.ptr
      llvm.return %0 : !llvm.ptr
    })"),
              HasSubstr("undefined symbol 'outside'"));
  EXPECT_THAT(flattenError("llvm.func @other() { llvm.return }"), HasSubstr("lacks the function 'kernel'"));
}

TEST(Code, RefusesForeignObjects) {
  std::vector<char> garbage(100, 'x');
  llvm::Expected<FlatCode> code = flattenObject(garbage, "kernel");
  ASSERT_FALSE(code);
  EXPECT_FALSE(llvm::toString(code.takeError()).empty());
}

} // namespace
} // namespace llmc
