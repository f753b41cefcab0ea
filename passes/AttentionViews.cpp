// Following queries, keys and values back to where they were computed.
#include "passes/AttentionViews.h"

#include "passes/Match.h"

using namespace mlir;

namespace llmc {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static void appendPart(SmallVectorImpl<AxisPart> &dim, HeadAxis axis, int64_t size, int64_t stride = 1) {
  if (size != 1)
    dim.push_back({axis, size, stride});
}

HeadTensor headTensor(Value value, const HeadSizes &sizes, bool isTransposed) {
  ArrayRef<int64_t> shape = typeOf(value).getShape(), leading = shape.drop_back(2);
  HeadTensor tensor{value, {}};
  tensor.dims.resize(shape.size());
  if (leading.size() == 1) {
    appendPart(tensor.dims[0], HeadAxis::batch, sizes.batch);
    appendPart(tensor.dims[0], HeadAxis::head, sizes.heads);
  } else if (!leading.empty()) {
    appendPart(tensor.dims[0], HeadAxis::batch, leading[0]);
    int64_t stride = sizes.heads;
    for (size_t d = 1; d < leading.size(); ++d) {
      stride /= leading[d];
      appendPart(tensor.dims[d], HeadAxis::head, leading[d], stride);
    }
  }
  size_t token = shape.size() - (isTransposed ? 1 : 2), column = shape.size() - (isTransposed ? 2 : 1);
  appendPart(tensor.dims[token], HeadAxis::token, sizes.tokens);
  appendPart(tensor.dims[column], HeadAxis::column, sizes.columns);
  return tensor;
}

HeadTensor tokenMajorTensor(Value value, const HeadSizes &sizes, int64_t repeat) {
  HeadTensor tensor{value, {}};
  tensor.repeat = repeat;
  tensor.dims.resize(3);
  appendPart(tensor.dims[0], HeadAxis::batch, sizes.batch);
  appendPart(tensor.dims[1], HeadAxis::token, sizes.tokens);
  appendPart(tensor.dims[2], HeadAxis::head, sizes.heads / repeat, repeat);
  appendPart(tensor.dims[2], HeadAxis::column, sizes.columns);
  return tensor;
}

static SmallVector<AxisPart> flattened(const HeadTensor &tensor) {
  SmallVector<AxisPart> parts;
  for (const auto &dim : tensor.dims)
    parts.append(dim.begin(), dim.end());
  return parts;
}

/// The parts in order, grouped into dimensions of another shape with as many elements; an axis that a boundary cuts is
/// split. Nothing where it does not divide.
static std::optional<SmallVector<SmallVector<AxisPart>>> regrouped(SmallVector<AxisPart> parts,
                                                                   ArrayRef<int64_t> shape) {
  std::reverse(parts.begin(), parts.end()); // the next one is the last
  SmallVector<SmallVector<AxisPart>> dims;
  for (int64_t size : shape) {
    SmallVector<AxisPart> dim;
    for (int64_t rest = size; rest > 1;) {
      if (parts.empty())
        return std::nullopt;
      AxisPart part = parts.pop_back_val();
      if (part.size > rest) {
        if (part.size % rest != 0)
          return std::nullopt;
        int64_t inner = part.size / rest;
        parts.push_back({part.axis, inner, part.stride});
        part = {part.axis, rest, part.stride * inner};
      }
      if (rest % part.size != 0)
        return std::nullopt;
      rest /= part.size;
      dim.push_back(part);
    }
    dims.push_back(std::move(dim));
  }
  if (!parts.empty())
    return std::nullopt;
  return dims;
}

static std::optional<HeadTensor> stepReshape(const HeadTensor &tensor, ReshapeOp reshape) {
  auto dims = regrouped(flattened(tensor), reshape.getA().getType().getShape());
  if (!dims)
    return std::nullopt;
  return HeadTensor{reshape.getA(), std::move(*dims), tensor.scale, tensor.repeat};
}

static HeadTensor stepTranspose(const HeadTensor &tensor, TransposeOp transpose) {
  HeadTensor source{transpose.getA(), {}, tensor.scale, tensor.repeat};
  source.dims.resize(tensor.dims.size());
  for (auto [d, from] : llvm::enumerate(transpose.getPermutation()))
    source.dims[from] = tensor.dims[d];
  return source;
}

static std::optional<HeadTensor> stepBroadcast(const HeadTensor &tensor, BroadcastToOp broadcast) {
  RankedTensorType type = broadcast.getA().getType();
  int64_t added = int64_t(tensor.dims.size()) - type.getRank();
  HeadTensor source{broadcast.getA(), {}, tensor.scale, tensor.repeat};
  for (int64_t d = 0; d < int64_t(tensor.dims.size()); ++d) {
    if (d >= added && type.getDimSize(d - added) == broadcast.getType().getDimSize(d)) {
      source.dims.push_back(tensor.dims[d]);
      continue;
    }
    for (const AxisPart &part : tensor.dims[d]) {
      if (part.axis != HeadAxis::head)
        return std::nullopt;
      source.repeat *= part.size;
    }
    if (d >= added)
      source.dims.emplace_back();
  }
  // The repeated heads must be neighbours: what remains has strides of whole groups.
  for (const AxisPart &part : flattened(source))
    if (part.axis == HeadAxis::head && part.stride < source.repeat)
      return std::nullopt;
  return source;
}

/// Through a product with a number.
static std::optional<HeadTensor> stepScale(const HeadTensor &tensor, Operation *op) {
  for (unsigned i : {0u, 1u}) {
    std::optional<double> number = knownNumber(op->getOperand(1 - i));
    if (!number || op->getOperand(i).getType() != tensor.value.getType() || (isa<DivOp>(op) && i == 1))
      continue;
    HeadTensor source = tensor;
    source.value = op->getOperand(i);
    source.scale *= isa<DivOp>(op) ? 1 / *number : *number;
    return source;
  }
  return std::nullopt;
}

static std::optional<HeadTensor> step(const HeadTensor &tensor, TraceOptions options) {
  Operation *op = tensor.value.getDefiningOp();
  if (auto reshape = dyn_cast_if_present<ReshapeOp>(op))
    return stepReshape(tensor, reshape);
  if (auto transpose = dyn_cast_if_present<TransposeOp>(op))
    return stepTranspose(tensor, transpose);
  if (auto broadcast = dyn_cast_if_present<BroadcastToOp>(op); broadcast && options.throughRepeat)
    return stepBroadcast(tensor, broadcast);
  if (isa_and_present<MulOp, DivOp>(op) && options.throughScale)
    return stepScale(tensor, op);
  if (auto cast = dyn_cast_if_present<CastOp>(op); cast && cast.getA().getType() == cast.getType()) {
    HeadTensor source = tensor;
    source.value = cast.getA();
    return source;
  }
  return std::nullopt;
}

static bool isBefore(const AxisPart &a, const AxisPart &b) {
  return a.axis != b.axis ? a.axis < b.axis : a.stride > b.stride;
}

bool isTokenMajor(const HeadTensor &tensor) { return llvm::is_sorted(flattened(tensor), isBefore); }

HeadTensor traceToSource(const HeadTensor &tensor, TraceOptions options) {
  HeadTensor best = tensor;
  for (std::optional<HeadTensor> current = step(tensor, options); current; current = step(*current, options)) {
    // Fewer heads are fewer bytes, whatever their order.
    bool isSmaller = current->repeat > best.repeat;
    if (isSmaller || isTokenMajor(*current) || !isTokenMajor(best))
      best = *current;
  }
  return best;
}

Value buildTokenMajor(OpBuilder &builder, Location loc, const HeadTensor &tensor) {
  Expr value = ExprScope{builder, loc}(tensor.value);
  SmallVector<AxisPart> parts = flattened(tensor);
  int64_t sizes[4] = {1, 1, 1, 1};
  SmallVector<int64_t> shape, order = llvm::to_vector(llvm::seq<int64_t>(0, parts.size()));
  for (const AxisPart &part : parts) {
    sizes[int(part.axis)] *= part.size;
    shape.push_back(part.size);
  }
  llvm::sort(order, [&](int64_t a, int64_t b) { return isBefore(parts[a], parts[b]); });
  if (!llvm::is_sorted(order))
    value = transpose(reshape(value, shape), order);
  return reshape(value, {sizes[int(HeadAxis::batch)], sizes[int(HeadAxis::token)],
                         sizes[int(HeadAxis::head)] * sizes[int(HeadAxis::column)]});
}

std::optional<std::pair<int64_t, int64_t>> leadingSplit(Value value, bool isTransposed) {
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  HeadSizes sizes{shape[0], shape[isTransposed ? 2 : 1], 1, shape[isTransposed ? 1 : 2]};
  std::optional<HeadTensor> tensor = headTensor(value, sizes, isTransposed);
  for (; tensor; tensor = step(*tensor, {})) {
    for (const AxisPart &part : flattened(*tensor))
      if (part.axis == HeadAxis::batch && part.size != shape[0] && part.stride * part.size == shape[0])
        return std::pair(part.size, part.stride);
  }
  return std::nullopt;
}

} // namespace llmc
