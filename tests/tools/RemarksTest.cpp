// What becomes of a pass's errors, warnings and remarks.
#include "tools/llmc-compile/Remarks.h"

#include "ir/Dialect.h"
#include "passes/Remark.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace llmc {
namespace {

TEST(Remarks, WarningsAreShownAndAreNoErrors) {
  MLIRContext context;
  std::string pass = "build-gradients";
  DiagnosticRecord record(context, pass);
  Location node = NameLoc::get(StringAttr::get(&context, "wte"));
  emitWarning(node) << "it keeps its value";
  emitWarning(node) << "no gradient reaches wte";
  ASSERT_EQ(record.getWarnings().size(), 2u);
  EXPECT_EQ(record.getWarnings()[0], "node 'wte': it keeps its value");
  EXPECT_EQ(record.getWarnings()[1], "no gradient reaches wte");
  EXPECT_EQ(record.error("nobody said anything").message, "nobody said anything");
  ASSERT_EQ(record.getRemarks().size(), 2u);
  EXPECT_EQ(record.getRemarks()[0].pass, pass);
  EXPECT_EQ(record.getRemarks()[0].node, "wte");
  EXPECT_EQ(record.getRemarks()[0].kind, "info");
  EXPECT_EQ(record.getRemarks()[0].message, "it keeps its value");
}

TEST(Remarks, ErrorsNameTheirNode) {
  MLIRContext context;
  std::string pass = "fuse";
  DiagnosticRecord record(context, pass);
  Location node = NameLoc::get(StringAttr::get(&context, "wte"));
  emitError(node) << "too large";
  emitRemark(node) << "declined: merging";
  EXPECT_EQ(record.error("").message, "node 'wte': too large");
  ASSERT_EQ(record.getRemarks().size(), 1u);
  EXPECT_EQ(record.getRemarks()[0].kind, "declined");
  EXPECT_TRUE(record.getWarnings().empty());
}

TEST(Remarks, KnowTheirProgramAndNode) {
  MLIRContext context;
  context.loadDialect<LlmcDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    llmc.program @forward "forward" () {
      llmc.return loc("wte")
    })",
                                                             &context);
  ASSERT_TRUE(module);
  std::string pass = "schedule";
  DiagnosticRecord record(context, pass);
  Operation *program = &module->getBody()->front();
  remarkOn(&program->getRegion(0).front().front()) << "declined: moving it";
  remarkOn(module->getOperation()) << "merged";
  ASSERT_EQ(record.getRemarks().size(), 2u);
  EXPECT_EQ(record.getRemarks()[0].program, "forward");
  EXPECT_EQ(record.getRemarks()[0].node, "wte");
  EXPECT_EQ(record.getRemarks()[0].message, "moving it");
  EXPECT_EQ(record.getRemarks()[1].program, "");
}

} // namespace
} // namespace llmc
