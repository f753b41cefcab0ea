// What the recognisers share: numbers and vectors however they are spelled, products taken apart into factors,
// polynomials, and tensors known when the graph is compiled. Structure is compared, never names.
#pragma once

#include "ir/Dialect.h"

#include <array>

namespace llmc {

/// The number that every element of a value has: of a constant, or of a variable of kind "constant" with one element.
std::optional<double> knownNumber(mlir::Value value);

/// a = b up to the rounding of what exporters store; `tolerance` is relative.
bool isClose(double a, double b, double tolerance = 1e-6);
/// What a constant rounded to bf16 or f16 may depart by.
inline constexpr double kRoundedTolerance = 2e-3;

/// The value behind casts to its own element type.
mlir::Value skipCasts(mlir::Value value);
/// The same, and behind reshapes that only add or drop dimensions of size one: elements stay in order.
mlir::Value skipUnitReshapes(mlir::Value value);

/// factor * product(numerators) / product(denominators), broadcast.
struct Product {
  double factor = 1;
  llvm::SmallVector<mlir::Value> numerators, denominators;
};
/// Takes mul, div and neg apart down to values that are none of them or for which `isWhole`. Nothing when there are too
/// many.
std::optional<Product> factorize(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isWhole = nullptr);

/// Coefficients of `value` as a polynomial of `variable` with numbers, constant term first; nothing when it is none of
/// degree <= 3.
using Polynomial = std::array<double, 4>;
std::optional<Polynomial> polynomialOf(mlir::Value value, mlir::Value variable, unsigned depth = 10);

/// z when `value` is the mean of z over its last axis (its dimension kept with size one, or dropped); null otherwise.
mlir::Value meanOf(mlir::Value value);
/// z when `value` is z * z; null otherwise.
mlir::Value squareRootOf(mlir::Value value);

/// The shape is (1, …, 1, size) or (size): one entry for each element of a row.
bool isRowVector(mlir::Value value, int64_t size);
/// A row vector as (size).
mlir::Value asRowVector(mlir::OpBuilder &builder, mlir::Value vector);

/// Values of constants, of variables of kind "constant", and of what is computed from these alone. Each value is
/// computed once; no op may be erased while this lives.
class KnownTensors {
public:
  /// Null when the value is not known.
  const HostTensor *of(mlir::Value value);

private:
  const HostTensor *compute(mlir::Value value);
  llvm::DenseMap<mlir::Value, std::unique_ptr<HostTensor>> known;
};

/// The variable behind a llmc.get; null for other values.
VariableOp variableOf(mlir::Value value);

/// Erases ops whose results nothing reads, last first.
void eraseDeadOps(ProgramOp program);

} // namespace llmc
