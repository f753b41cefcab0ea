// Where the elements of attention's queries, keys and values come from: a tensor is followed back through reshapes,
// transposes, repetitions of heads and multiplications by a number, with the meaning of each dimension carried along.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// What an index of a query, key or value tensor can mean. Their order is that of a token-major tensor.
enum class HeadAxis { batch, token, head, column };

/// A part of an axis: the axis's index is the sum over its parts of index * stride.
struct AxisPart {
  HeadAxis axis;
  int64_t size;
  int64_t stride;
};

/// Batches, query or key positions, heads and elements of a head.
struct HeadSizes {
  int64_t batch, tokens, heads, columns;
};

/// `value` times `scale` is the tensor in question, with dimension d of `value` made of `dims[d]`, largest stride
/// first. Parts of size one are left out. Heads are repeated `repeat` times: head h is the value's head h / repeat.
struct HeadTensor {
  mlir::Value value;
  llvm::SmallVector<llvm::SmallVector<AxisPart>> dims;
  double scale = 1;
  int64_t repeat = 1;
};

/// A tensor (…, tokens, columns) or, if `isTransposed`, (…, columns, tokens). The leading dimensions are batch and
/// heads, in parts.
HeadTensor headTensor(mlir::Value value, const HeadSizes &sizes, bool isTransposed);

/// A tensor (batch, tokens, heads / repeat * columns) of which each head serves `repeat` heads.
HeadTensor tokenMajorTensor(mlir::Value value, const HeadSizes &sizes, int64_t repeat);

struct TraceOptions {
  bool throughScale = true;
  bool throughRepeat = true;
};
/// Of the values it comes from with the fewest heads: the farthest that is token-major; where none is, the farthest.
HeadTensor traceToSource(const HeadTensor &tensor, TraceOptions options);

/// Whether the elements lie in memory as (batch, token, head, column).
bool isTokenMajor(const HeadTensor &tensor);

/// The value as (batch, tokens, heads * columns): a view where it is token-major.
mlir::Value buildTokenMajor(mlir::OpBuilder &builder, mlir::Location loc, const HeadTensor &tensor);

/// How an earlier reshape split the leading dimension of a (N, tokens, columns) tensor into batch and heads; nothing
/// when none did.
std::optional<std::pair<int64_t, int64_t>> leadingSplit(mlir::Value value, bool isTransposed);

} // namespace llmc
