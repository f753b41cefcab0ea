// The helpers of the recognisers.
#include "passes/Match.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

VariableOp variableOf(Value value) {
  auto get = value.getDefiningOp<GetOp>();
  return get ? SymbolTable::lookupNearestSymbolFrom<VariableOp>(get, get.getVariableAttr()) : VariableOp();
}

std::optional<double> knownNumber(Value value) {
  if (std::optional<double> splat = constantSplat(value))
    return splat;
  if (cast<RankedTensorType>(value.getType()).getNumElements() != 1)
    return std::nullopt;
  VariableOp variable = variableOf(value);
  if (!variable || variable.getKind() != "constant")
    return std::nullopt;
  FailureOr<HostTensor> tensor = knownValue(value);
  return failed(tensor) ? std::nullopt : std::optional(tensor->asDouble(0));
}

bool isClose(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance * std::fabs(b); }

Value skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (cast.getA().getType() != cast.getType())
      break;
    value = cast.getA();
  }
  return value;
}

static SmallVector<int64_t> withoutOnes(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> rest;
  llvm::copy_if(shape, std::back_inserter(rest), [](int64_t size) { return size != 1; });
  return rest;
}

Value skipUnitReshapes(Value value) {
  for (;;) {
    value = skipCasts(value);
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape || withoutOnes(reshape.getA().getType().getShape()) != withoutOnes(reshape.getType().getShape()))
      return value;
    value = reshape.getA();
  }
}

std::optional<Product> factorize(Value value, function_ref<bool(Value)> isWhole) {
  constexpr unsigned kMaxVisited = 32;
  struct Item {
    Value value;
    bool isInverse;
  };
  Product product;
  SmallVector<Item> pending = {{value, false}};
  for (unsigned visited = 0; !pending.empty(); ++visited) {
    if (visited == kMaxVisited)
      return std::nullopt;
    auto [current, isInverse] = pending.pop_back_val();
    current = skipCasts(current);
    Operation *op = current.getDefiningOp();
    if (!(isWhole && isWhole(current))) {
      if (std::optional<double> number = knownNumber(current)) {
        product.factor *= isInverse ? 1 / *number : *number;
        continue;
      }
      if (isa_and_present<MulOp, DivOp>(op)) {
        pending.push_back({op->getOperand(1), isInverse != isa<DivOp>(op)});
        pending.push_back({op->getOperand(0), isInverse});
        continue;
      }
      if (isa_and_present<NegOp>(op)) {
        product.factor = -product.factor;
        pending.push_back({op->getOperand(0), isInverse});
        continue;
      }
    }
    (isInverse ? product.denominators : product.numerators).push_back(current);
  }
  return product;
}

static std::optional<Polynomial> times(const Polynomial &a, const Polynomial &b) {
  Polynomial product{};
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0)
        continue;
      if (i + j >= product.size())
        return std::nullopt;
      product[i + j] += a[i] * b[j];
    }
  return product;
}

static Polynomial scaled(Polynomial a, double factor) {
  for (double &coefficient : a)
    coefficient *= factor;
  return a;
}

std::optional<Polynomial> polynomialOf(Value value, Value variable, unsigned depth) {
  value = skipCasts(value);
  if (value == variable)
    return Polynomial{0, 1, 0, 0};
  if (std::optional<double> number = knownNumber(value))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !isa_and_present<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp>(op))
    return std::nullopt;
  std::optional<Polynomial> a = polynomialOf(op->getOperand(0), variable, depth - 1);
  if (!a)
    return std::nullopt;
  if (isa<NegOp>(op))
    return scaled(*a, -1);
  if (isa<DivOp, PowOp>(op)) {
    std::optional<double> number = knownNumber(op->getOperand(1));
    if (!number)
      return std::nullopt;
    if (isa<DivOp>(op))
      return scaled(*a, 1 / *number);
    std::optional<Polynomial> power = Polynomial{1, 0, 0, 0};
    if (*number != 1 && *number != 2 && *number != 3)
      return std::nullopt;
    for (int i = 0; power && i < int(*number); ++i)
      power = times(*power, *a);
    return power;
  }
  std::optional<Polynomial> b = polynomialOf(op->getOperand(1), variable, depth - 1);
  if (!b)
    return std::nullopt;
  if (isa<MulOp>(op))
    return times(*a, *b);
  for (size_t i = 0; i < a->size(); ++i)
    (*a)[i] += isa<SubOp>(op) ? -(*b)[i] : (*b)[i];
  return a;
}

Value meanOf(Value value) {
  value = skipUnitReshapes(value);
  if (auto mean = value.getDefiningOp<ReduceMeanOp>(); mean && mean.isOverLastAxis())
    return skipCasts(mean.getA());
  if (!isa_and_present<MulOp, DivOp>(value.getDefiningOp()))
    return {};
  std::optional<Product> product = factorize(value);
  if (!product || product->numerators.size() != 1 || !product->denominators.empty())
    return {};
  auto sum = skipUnitReshapes(product->numerators[0]).getDefiningOp<ReduceSumOp>();
  if (!sum || !sum.isOverLastAxis() || !isClose(product->factor * double(sum.getA().getType().getShape().back()), 1))
    return {};
  return skipCasts(sum.getA());
}

Value squareRootOf(Value value) {
  value = skipCasts(value);
  if (auto product = value.getDefiningOp<MulOp>(); product && skipCasts(product.getA()) == skipCasts(product.getB()))
    return skipCasts(product.getA());
  if (auto power = value.getDefiningOp<PowOp>(); power && knownNumber(power.getB()) == 2.0)
    return skipCasts(power.getA());
  return {};
}

bool isRowVector(Value value, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() > 0 && type.getShape().back() == size && type.getNumElements() == size;
}

Value asRowVector(OpBuilder &builder, Value vector) {
  Expr expr = ExprScope{builder, vector.getLoc()}(vector);
  return reshape(expr, {expr.shape().back()});
}

const HostTensor *KnownTensors::of(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second.get();
  return compute(value);
}

// Operands first, on a stack of its own: graphs are deeper than the machine's stack.
const HostTensor *KnownTensors::compute(Value root) {
  SmallVector<Value> pending = {root};
  while (!pending.empty()) {
    Value value = pending.back();
    if (known.contains(value)) {
      pending.pop_back();
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (auto variable = variableOf(value); variable || isa_and_present<ConstantOp>(op)) {
      bool isFixed = !variable || variable.getKind() == "constant";
      FailureOr<HostTensor> tensor = isFixed ? knownValue(value) : FailureOr<HostTensor>(failure());
      known[value] = failed(tensor) ? nullptr : std::make_unique<HostTensor>(std::move(*tensor));
      continue;
    }
    auto evaluable = dyn_cast_if_present<EvaluableOpInterface>(op);
    if (!evaluable || op->getNumResults() != 1) {
      known[value] = nullptr;
      continue;
    }
    // One unknown operand settles it; otherwise the first operand not yet visited comes first.
    Value missing;
    bool isUnknown = false;
    for (Value operand : op->getOperands()) {
      auto found = known.find(operand);
      if (found == known.end())
        missing = missing ? missing : operand;
      else
        isUnknown |= !found->second;
    }
    if (isUnknown) {
      known[value] = nullptr;
      continue;
    }
    if (missing) {
      pending.push_back(missing);
      continue;
    }
    SmallVector<HostTensor> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(*known[operand]);
    bool isDone = succeeded(evaluable.evaluate(operands, results));
    known[value] = isDone ? std::make_unique<HostTensor>(std::move(results.front())) : nullptr;
  }
  return known[root].get();
}

void eraseDeadOps(ProgramOp program) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace llmc
