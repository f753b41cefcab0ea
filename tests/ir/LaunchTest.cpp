// Every launch against runtime/Kernels.def: the kernel exists, takes as many operands, and knows each argument by name.
#include "runtime/Plan.h"
#include "tests/ir/OpProgram.h"

#include <sstream>

using namespace mlir;

namespace llmc::testing {
namespace {

struct LaunchOf : ::testing::TestWithParam<OpCase> {};

std::vector<std::string> words(const char *text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

const KernelInfo *findKernel(StringRef name) {
  for (const KernelInfo &kernel : allKernels())
    if (name == kernel.name)
      return &kernel;
  return nullptr;
}

TEST_P(LaunchOf, FitsItsKernel) {
  OpProgram program(GetParam());
  ASSERT_TRUE(program.op);
  LaunchDescription launch;
  cast<KernelOpInterface>(program.op).describeLaunch(launch);
  const KernelInfo *kernel = findKernel(launch.kernel);
  ASSERT_TRUE(kernel) << launch.kernel.str();
  std::vector<std::string> operands = words(kernel->operands), ints = words(kernel->ints),
                           floats = words(kernel->floats);
  if (operands.back().ends_with("...")) {
    unsigned numTied = 0;
    for (unsigned i = 0; i < program.op->getNumResults(); ++i)
      numTied += cast<KernelOpInterface>(program.op).getTiedOperand(i) >= 0;
    EXPECT_EQ(launch.operands.size(), program.op->getNumOperands() + program.op->getNumResults() - numTied);
  } else {
    ASSERT_EQ(launch.operands.size(), operands.size());
  }
  for (size_t i = 0; i < std::min(operands.size(), launch.operands.size()); ++i)
    EXPECT_TRUE(launch.operands[i] || operands[i].ends_with("?")) << operands[i] << " is absent";
  for (const auto &argument : launch.ints)
    EXPECT_TRUE(llvm::is_contained(ints, argument.getKey().str())) << argument.getKey().str();
  for (const auto &argument : launch.floats)
    EXPECT_TRUE(llvm::is_contained(floats, argument.getKey().str())) << argument.getKey().str();
}

TEST_P(LaunchOf, ReadsAllItsOperands) {
  OpProgram program(GetParam());
  ASSERT_TRUE(program.op);
  auto kernelOp = cast<KernelOpInterface>(program.op);
  LaunchDescription launch;
  kernelOp.describeLaunch(launch);
  std::set<unsigned> tied;
  for (unsigned i = 0; i < program.op->getNumResults(); ++i) {
    if (int operand = kernelOp.getTiedOperand(i); operand >= 0) {
      ASSERT_LT(unsigned(operand), program.op->getNumOperands());
      EXPECT_EQ(program.op->getOperand(operand).getType(), program.op->getResult(i).getType());
      tied.insert(operand);
    }
    EXPECT_TRUE(llvm::is_contained(launch.operands, Value(program.op->getResult(i))))
        << "result " << i << " is not written";
  }
  for (unsigned i = 0; i < program.op->getNumOperands(); ++i)
    EXPECT_TRUE(tied.count(i) || llvm::is_contained(launch.operands, program.op->getOperand(i)))
        << "operand " << i << " is not read";
}

INSTANTIATE_TEST_SUITE_P(Ops, LaunchOf, ::testing::ValuesIn(casesWith<KernelOpInterface>()), caseName);

TEST(LaunchCoverage, EveryKernelOpHasACase) {
  EXPECT_EQ(opsWithoutCase<KernelOpInterface>(), std::vector<std::string>());
}

} // namespace
} // namespace llmc::testing
