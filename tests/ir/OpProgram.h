// One case as IR: a program with the op in it, its inputs drawn at random, and the means to evaluate it.
#pragma once

#include "ir/Interpreter.h"
#include "tests/ir/OpCases.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <memory>

namespace llmc::testing {

/// A context with the dialect loaded.
std::unique_ptr<mlir::MLIRContext> makeContext();

class OpProgram {
public:
  /// Parses a case; with `element` in place of f64. A case that does not parse fails the test and leaves `op` null.
  explicit OpProgram(const OpCase &opCase, const std::string &element = "f64");

  /// A tensor of the case's range; the same for the same seed.
  HostTensor draw(mlir::RankedTensorType type, uint32_t seed) const;
  /// The inputs of the program.
  llvm::SmallVector<HostTensor> inputs() const;
  mlir::Block &body() { return program.getBody().front(); }
  /// A builder after the op.
  mlir::OpBuilder builderAfterOp();
  /// Whether the module with all that was built into it passes the verifier; prints it when not.
  bool isValid();
  /// Runs the program on inputs.
  void run(Interpreter &interpreter, llvm::ArrayRef<HostTensor> inputs);

  mlir::Operation *op = nullptr;

private:
  const OpCase &opCase;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ProgramOp program;
};

/// The cases whose op has an interface.
template <typename Interface> std::vector<OpCase> casesWith() {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  std::vector<OpCase> cases;
  for (const OpCase &opCase : opCases())
    if (mlir::OperationName(opCase.opName(), context.get()).hasInterface<Interface>())
      cases.push_back(opCase);
  return cases;
}

/// The ops that have an interface but no case.
template <typename Interface> std::vector<std::string> opsWithoutCase() {
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  std::set<std::string> covered;
  for (const OpCase &opCase : opCases())
    covered.insert(opCase.opName());
  std::vector<std::string> missing;
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == "llmc" && name.hasInterface<Interface>() &&
        !covered.count(name.getStringRef().str()))
      missing.push_back(name.getStringRef().str());
  return missing;
}

/// How gtest names a case.
inline std::string caseName(const ::testing::TestParamInfo<OpCase> &info) { return info.param.name; }
/// How gtest prints a case.
inline void PrintTo(const OpCase &opCase, std::ostream *stream) { *stream << opCase.statement; }

/// Fails the test where two tensors differ by more than tolerance, relative to the largest expected value or 1.
void expectClose(const HostTensor &found, const HostTensor &expected, double tolerance, const std::string &what);

} // namespace llmc::testing
