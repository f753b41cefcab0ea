// One way to write math, three things it can mean. A formula over T is computed when T is double or int64_t (host
// evaluation), emitted as arith/math ops when T is Lanes (kernels, see Lanes.h), and built as llmc ops when T is Expr
// (gradients, see Expr.h). This header gives double and int64_t the vocabulary, and both others theirs where one side
// is a plain number; comparisons and logic return 0 or 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>

namespace llmc {

inline double exp(double a) { return std::exp(a); }
inline double log(double a) { return std::log(a); }
inline double sqrt(double a) { return std::sqrt(a); }
inline double rsqrt(double a) { return 1.0 / std::sqrt(a); }
inline double tanh(double a) { return std::tanh(a); }
inline double erf(double a) { return std::erf(a); }
inline double sin(double a) { return std::sin(a); }
inline double cos(double a) { return std::cos(a); }
inline double abs(double a) { return std::fabs(a); }
inline double floor(double a) { return std::floor(a); }
inline double round(double a) { return std::nearbyint(a); }
inline double pow(double a, double b) { return std::pow(a, b); }
inline double max(double a, double b) { return std::isnan(a) ? a : a < b ? b : std::isnan(b) ? b : a; }
inline double min(double a, double b) { return std::isnan(a) ? a : b < a ? b : std::isnan(b) ? b : a; }
inline double equal(double a, double b) { return a == b; }
inline double less(double a, double b) { return a < b; }
inline double lessEqual(double a, double b) { return a <= b; }
inline double logicalAnd(double a, double b) { return a != 0 && b != 0; }
inline double logicalOr(double a, double b) { return a != 0 || b != 0; }
inline double logicalNot(double a) { return a == 0; }
inline double isNan(double a) { return std::isnan(a); }
inline double select(double condition, double a, double b) { return condition != 0 ? a : b; }

// Integers: what shape arithmetic and masks need. Arithmetic wraps, as ONNX runtimes do; division by zero gives zero.
inline int64_t max(int64_t a, int64_t b) { return std::max(a, b); }
inline int64_t min(int64_t a, int64_t b) { return std::min(a, b); }
inline int64_t abs(int64_t a) { return a < 0 ? int64_t(0 - uint64_t(a)) : a; }
inline int64_t equal(int64_t a, int64_t b) { return a == b; }
inline int64_t less(int64_t a, int64_t b) { return a < b; }
inline int64_t lessEqual(int64_t a, int64_t b) { return a <= b; }
inline int64_t logicalAnd(int64_t a, int64_t b) { return a != 0 && b != 0; }
inline int64_t logicalOr(int64_t a, int64_t b) { return a != 0 || b != 0; }
inline int64_t logicalNot(int64_t a) { return a == 0; }
inline int64_t select(int64_t condition, int64_t a, int64_t b) { return condition != 0 ? a : b; }

/// A number that is built or emitted: it makes plain numbers into its like.
template <typename T>
concept SymbolicNumber = requires(const T &like, double number) {
  { like.constant(number) } -> std::same_as<T>;
};
template <SymbolicNumber T> T operator+(T a, double b) { return a + a.constant(b); }
template <SymbolicNumber T> T operator-(T a, double b) { return a - a.constant(b); }
template <SymbolicNumber T> T operator*(T a, double b) { return a * a.constant(b); }
template <SymbolicNumber T> T operator/(T a, double b) { return a / a.constant(b); }
template <SymbolicNumber T> T operator+(double a, T b) { return b.constant(a) + b; }
template <SymbolicNumber T> T operator-(double a, T b) { return b.constant(a) - b; }
template <SymbolicNumber T> T operator*(double a, T b) { return b.constant(a) * b; }
template <SymbolicNumber T> T operator/(double a, T b) { return b.constant(a) / b; }
template <SymbolicNumber T> T max(T a, double b) { return max(a, a.constant(b)); }
template <SymbolicNumber T> T min(T a, double b) { return min(a, a.constant(b)); }
template <SymbolicNumber T> T less(T a, double b) { return less(a, a.constant(b)); }
template <SymbolicNumber T> T select(T condition, T a, double b) { return select(condition, a, a.constant(b)); }
template <SymbolicNumber T> T select(T condition, double a, T b) { return select(condition, b.constant(a), b); }

/// Signed arithmetic without undefined overflow: the number type of integer formulas.
struct WrappingInt {
  int64_t value = 0;
  WrappingInt(int64_t value) : value(value) {}
  operator int64_t() const { return value; }
  friend WrappingInt operator+(WrappingInt a, WrappingInt b) { return int64_t(uint64_t(a.value) + uint64_t(b.value)); }
  friend WrappingInt operator-(WrappingInt a, WrappingInt b) { return int64_t(uint64_t(a.value) - uint64_t(b.value)); }
  friend WrappingInt operator*(WrappingInt a, WrappingInt b) { return int64_t(uint64_t(a.value) * uint64_t(b.value)); }
  friend WrappingInt operator-(WrappingInt a) { return int64_t(0 - uint64_t(a.value)); }
  friend WrappingInt operator/(WrappingInt a, WrappingInt b) {
    if (b.value == 0)
      return int64_t(0);
    return b.value == -1 ? -a : WrappingInt(a.value / b.value);
  }
};

} // namespace llmc
