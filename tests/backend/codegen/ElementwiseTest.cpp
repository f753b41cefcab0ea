// Elementwise kernels: every op of the dialect that has lanes, every form of broadcast, every tail.
#include "tests/backend/codegen/FusionCase.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace llmc {
namespace {

/// Operand types (without shape) that one op may take.
using Signature = std::vector<std::string>;

class EveryOp : public testing::TestWithParam<std::string> {};

/// Attributes of elementwise ops by name; an op that needs another one has to be given a value here.
NamedAttrList attributesOf(OperationName name, bool withUnits) {
  Builder builder(&testContext());
  NamedAttrList attributes;
  for (StringAttr attribute : name.getAttributeNames()) {
    if (attribute == "dim")
      attributes.set(attribute, builder.getI64IntegerAttr(1));
    else if (attribute == "node")
      attributes.set(attribute, builder.getI64IntegerAttr(5));
    else if (attribute == "rate")
      attributes.set(attribute, builder.getF64FloatAttr(0.25));
    else if (withUnits)
      attributes.set(attribute, builder.getUnitAttr());
  }
  return attributes;
}

/// The op as a fusion, if it takes operands and gives results of these types.
std::optional<FusionSpec> specFor(OperationName name, const Signature &operands, const std::string &result,
                                  bool withUnits) {
  MLIRContext *context = &testContext();
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  FusionSpec spec{.space = {3, 19}, .rowBlock = 2};
  std::string operandText, types;
  for (size_t i = 0; i < operands.size(); ++i) {
    spec.inputs.push_back((operands[i] == "i32" ? "1x1x" : "3x19x") + operands[i]); // i32: dropout's seed and step
    operandText += (i ? ", %a" : "%a") + std::to_string(i);
    types += (i ? ", tensor<" : "tensor<") + spec.inputs.back() + ">";
  }
  spec.outputs = {"3x19x" + result};
  std::string attributes;
  llvm::raw_string_ostream(attributes) << attributesOf(name, withUnits).getDictionary(context);
  spec.body = "%0 = \"" + name.getStringRef().str() + "\"(" + operandText + ") " +
              (attributes == "{}" ? "" : "<" + attributes + ">") + " : (" + types + ") -> tensor<3x19x" + result +
              ">\nllmc.yield %0 : tensor<3x19x" + result + ">";
  return parseFusion(spec) ? std::optional(spec) : std::nullopt;
}

std::vector<std::string> laneOps() {
  std::vector<std::string> names;
  for (RegisteredOperationName name : testContext().getRegisteredOperations())
    if (name.hasInterface<LaneOpInterface>())
      names.push_back(name.getStringRef().str());
  std::sort(names.begin(), names.end());
  return names;
}

/// Runs the op on the first operand and result types that it takes; says whether there are any.
bool runFirstSignature(OperationName name, bool withUnits) {
  static const Signature signatures[] = {
      {"f32"}, {"f32", "f32"}, {"i1", "f32", "f32"}, {"f32", "i32", "i32", "i32"}, {}};
  for (const Signature &operands : signatures)
    for (const char *result : {"f32", "i64", "i1"})
      if (std::optional<FusionSpec> spec = specFor(name, operands, result, withUnits)) {
        expectMatchesHost(*spec);
        spec->low = 0.01; // where logarithms and roots are defined
        expectMatchesHost(*spec);
        return true;
      }
  return false;
}

TEST_P(EveryOp, MatchesHost) {
  OperationName name(GetParam(), &testContext());
  EXPECT_TRUE(runFirstSignature(name, /*withUnits=*/false)) << "no signature of this test fits: add one";
  runFirstSignature(name, /*withUnits=*/true);
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(laneOps()),
                         [](const auto &info) { return std::string(llvm::StringRef(info.param).split('.').second); });

//===-- Other types

TEST(Elementwise, IntegersAreExact) {
  for (const char *type : {"i64", "i32"})
    for (const char *op : {"add", "sub", "mul", "div", "max", "min"}) {
      SCOPED_TRACE(std::string(op) + " " + type);
      std::string t = std::string("tensor<5x23x") + type + ">", element = std::string("5x23x") + type;
      expectMatchesHost({.space = {5, 23},
                         .inputs = {element, element},
                         .body = "%0 = llmc." + std::string(op) + " %a0, %a1 : (" + t + ", " + t + ") -> " + t +
                                 "\nllmc.yield %0 : " + t,
                         .outputs = {element},
                         .integerLow = -7});
    }
}

TEST(Elementwise, IntegerPowersOfNegativeNumbersAndOfZero) {
  expectMatchesHost({.space = {5, 23},
                     .inputs = {"5x23xf32", "5x23xf32"},
                     .body = R"(%0 = llmc.round %a1 : tensor<5x23xf32>
                                %1 = llmc.pow %a0, %0 : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
                                %2 = llmc.round %a0 : tensor<5x23xf32>
                                %3 = llmc.pow %2, %0 : (tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
                                llmc.yield %1, %3 : tensor<5x23xf32>, tensor<5x23xf32>)",
                     .outputs = {"5x23xf32", "5x23xf32"},
                     .low = -3.4,
                     .high = 3.4});
}

TEST(Elementwise, LabelsAgainstColumns) {
  expectMatchesHost({.space = {5, 23},
                     .inputs = {"5x23xf32", "5x1xi64"},
                     .body = R"(%0 = llmc.iota {dim = 1 : i64} : tensor<1x23xi64>
                                %1 = llmc.equal %0, %a1 : (tensor<1x23xi64>, tensor<5x1xi64>) -> tensor<5x23xi1>
                                %2 = llmc.constant dense<1.000000e+00> : tensor<f32>
                                %3 = llmc.sub %a0, %2 : (tensor<5x23xf32>, tensor<f32>) -> tensor<5x23xf32>
                                %4 = llmc.select %1, %3, %a0 : (tensor<5x23xi1>, tensor<5x23xf32>, tensor<5x23xf32>) -> tensor<5x23xf32>
                                llmc.yield %4, %1 : tensor<5x23xf32>, tensor<5x23xi1>)",
                     .outputs = {"5x23xf32", "5x23xi1"},
                     .integerHigh = 22});
}

TEST(Elementwise, Booleans) {
  expectMatchesHost({.space = {2, 70},
                     .inputs = {"2x70xi1", "1x70xi1", "2x1xi1"},
                     .body = R"(%0 = llmc.and %a0, %a1 : (tensor<2x70xi1>, tensor<1x70xi1>) -> tensor<2x70xi1>
                                %1 = llmc.or %0, %a2 : (tensor<2x70xi1>, tensor<2x1xi1>) -> tensor<2x70xi1>
                                %2 = llmc.not %1 : tensor<2x70xi1>
                                %3 = llmc.cast %2 : (tensor<2x70xi1>) -> tensor<2x70xf32>
                                %4 = llmc.cast %2 : (tensor<2x70xi1>) -> tensor<2x70xi64>
                                llmc.yield %2, %3, %4 : tensor<2x70xi1>, tensor<2x70xf32>, tensor<2x70xi64>)",
                     .outputs = {"2x70xi1", "2x70xf32", "2x70xi64"}});
}

//===-- Forms

std::string addBody(const std::string &a, const std::string &b, const std::string &result) {
  return "%0 = llmc.add %a0, %a1 : (tensor<" + a + ">, tensor<" + b + ">) -> tensor<" + result +
         ">\nllmc.yield %0 : tensor<" + result + ">";
}

TEST(Elementwise, EveryBroadcastOfFourDimensions) {
  int64_t space[] = {3, 4, 5, 18};
  for (unsigned mask = 0; mask < 16; ++mask) {
    std::string form;
    for (int d = 0; d < 4; ++d)
      form += std::to_string(mask >> d & 1 ? space[d] : 1) + "x";
    SCOPED_TRACE(form);
    expectMatchesHost({.space = {3, 4, 5, 18},
                       .inputs = {"3x4x5x18xf32", form + "f32"},
                       .body = addBody("3x4x5x18xf32", form + "f32", "3x4x5x18xf32"),
                       .outputs = {"3x4x5x18xf32"},
                       .rowBlock = 7});
  }
}

TEST(Elementwise, IotaOfEveryDimension) {
  for (int dim = 0; dim < 4; ++dim)
    expectMatchesHost({.space = {3, 4, 5, 18},
                       .body = "%0 = llmc.iota {dim = " + std::to_string(dim) +
                               " : i64} : tensor<3x4x5x18xi64>\nllmc.yield %0 : tensor<3x4x5x18xi64>",
                       .outputs = {"3x4x5x18xi64"},
                       .rowBlock = 13});
}

TEST(Elementwise, EveryTail) {
  for (int64_t cols : {1, 3, 7, 8, 15, 16, 17, 50, 65, 768})
    for (int64_t colBlock : {int64_t(1) << 30, int64_t(32)})
      for (int64_t rows : {0, 1, 5}) { // 0: a space of one dimension
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + ", block " + std::to_string(colBlock));
        std::string full = (rows ? std::to_string(rows) + "x" : "") + std::to_string(cols) + "xf32",
                    one = rows ? "1x1xf32" : "1xf32";
        expectMatchesHost({.space = rows ? std::vector<int64_t>{rows, cols} : std::vector<int64_t>{cols},
                           .inputs = {full, one},
                           .body = addBody(full, one, full),
                           .outputs = {full},
                           .rowBlock = 2,
                           .colBlock = colBlock});
      }
}

TEST(Elementwise, InPlace) {
  expectMatchesHost({.space = {6, 50},
                     .inputs = {"6x50xf32", "6x50xf32", "6x1xf32"},
                     .body = R"(%0 = llmc.add %a0, %a1 : (tensor<6x50xf32>, tensor<6x50xf32>) -> tensor<6x50xf32>
                                %1 = llmc.mul %a0, %a2 : (tensor<6x50xf32>, tensor<6x1xf32>) -> tensor<6x50xf32>
                                llmc.yield %0, %1 : tensor<6x50xf32>, tensor<6x50xf32>)",
                     .outputs = {"6x50xf32", "6x50xf32"},
                     .inPlace = {0, 1}});
}

} // namespace
} // namespace llmc
