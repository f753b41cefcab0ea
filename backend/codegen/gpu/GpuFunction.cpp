// Kernels are functions of the LLVM dialect with arith, scf and NVVM ops inside. Shared memory is one array a kernel,
// static up to the 48 KiB that every launch may have, else dynamic.
#include "backend/codegen/gpu/GpuFunction.h"
#include "backend/codegen/LaneOps.h"
#include "backend/codegen/Storage.h"
#include "runtime/KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;

namespace llmc {

static constexpr unsigned kGlobal = 1, kShared = 3;
static constexpr int64_t kStaticSharedBytes = 48 * 1024;

static Type typeOf(ElementType type, MLIRContext *context) {
  switch (type) {
  case ElementType::f32:
    return Float32Type::get(context);
  case ElementType::bf16:
    return BFloat16Type::get(context);
  default:
    return IntegerType::get(context, unsigned(8 * elementBytes(type)));
  }
}

int64_t accessWidth(int64_t most, std::initializer_list<int64_t> numbers) {
  for (int64_t number : numbers)
    most = std::gcd(most, number);
  return most;
}

GpuFunction::GpuFunction(const Launch &launch, StringRef symbol, MLIRContext &context, uint32_t threads)
    : builder(&context), loc(builder.getUnknownLoc()), launch(launch), threads(threads), module(ModuleOp::create(loc)),
      symbol(symbol) {
  builder.setInsertionPointToEnd(module->getBody());
  size_t numParameters = takesStatus(launch.kind);
  for (const BufferRef &operand : launch.operands)
    numParameters += operand.space != Space::none;
  SmallVector<Type> parameters(numParameters, LLVM::LLVMPointerType::get(&context, kGlobal));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context), parameters);
  auto function = builder.create<LLVM::LLVMFuncOp>(loc, symbol, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), builder.getDenseI32ArrayAttr({int32_t(threads)}));
  entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
}

void GpuFunction::preferRegisters() {
  entry->getParentOp()->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(), builder.getI32IntegerAttr(255));
}

GpuKernel GpuFunction::finish(int64_t blocks) {
  builder.create<LLVM::ReturnOp>(loc, mlir::ValueRange());
  GpuKernel kernel{std::move(module), uint32_t(blocks), threads, 0};
  if (sharedBytes == 0)
    return kernel;
  bool isDynamic = sharedBytes > kStaticSharedBytes;
  kernel.sharedBytes = isDynamic ? uint32_t(sharedBytes) : 0;
  builder.setInsertionPointToStart(kernel.module->getBody());
  Type array = LLVM::LLVMArrayType::get(builder.getI8Type(), isDynamic ? 0 : uint64_t(sharedBytes));
  builder.create<LLVM::GlobalOp>(loc, array, /*isConstant=*/false,
                                 isDynamic ? LLVM::Linkage::External : LLVM::Linkage::Internal, symbol + "_shared",
                                 Attribute(), /*alignment=*/16, kShared);
  return kernel;
}

GpuBuffer GpuFunction::operand(StringRef name, ElementType type) const {
  size_t place = argumentPlace(name, kernelInfo(launch.kind).operands), parameter = 0;
  if (launch.operands[place].space == Space::none)
    return {};
  for (size_t i = 0; i < place; ++i)
    parameter += launch.operands[i].space != Space::none;
  return {entry->getArgument(unsigned(parameter)), typeOf(type, builder.getContext())};
}

GpuBuffer GpuFunction::status() const {
  return {entry->getArguments().back(), IntegerType::get(builder.getContext(), 64)};
}

GpuBuffer GpuFunction::shared(int64_t count, Type type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext(), kShared);
  Value base = builder.create<LLVM::AddressOfOp>(loc, pointer, symbol + "_shared");
  Value address = builder.create<LLVM::GEPOp>(loc, pointer, builder.getI8Type(), base,
                                              ArrayRef<LLVM::GEPArg>{int32_t(sharedBytes)});
  sharedBytes += (count * storageBytes(type) + 15) / 16 * 16;
  return {address, type};
}

Lanes GpuFunction::i32(int64_t number) { return lanes(builder.create<arith::ConstantIntOp>(loc, number, 32)); }
Lanes GpuFunction::i64(int64_t number) { return lanes(builder.create<arith::ConstantIntOp>(loc, number, 64)); }
Lanes GpuFunction::f32(double number) {
  return lanes(builder.create<arith::ConstantOp>(loc, builder.getF32FloatAttr(float(number))));
}
Lanes GpuFunction::wide(Lanes index) { return index.castTo(builder.getI64Type()); }
Lanes GpuFunction::thread() { return lanes(builder.create<NVVM::ThreadIdXOp>(loc, builder.getI32Type())); }
Lanes GpuFunction::block() { return lanes(builder.create<NVVM::BlockIdXOp>(loc, builder.getI32Type())); }
Lanes GpuFunction::quotient(Lanes a, int64_t b) { return apply<arith::DivUIOp>(a, a.constant(double(b))); }
Lanes GpuFunction::remainder(Lanes a, int64_t b) { return apply<arith::RemUIOp>(a, a.constant(double(b))); }

Lanes GpuFunction::intrinsic(const char *name, Type result, ArrayRef<Value> operands) {
  return lanes(builder.create<LLVM::CallIntrinsicOp>(loc, result, builder.getStringAttr(name), operands).getResult(0));
}
Lanes GpuFunction::exp2(Lanes a) { return intrinsic("llvm.nvvm.ex2.approx.f", builder.getF32Type(), {a.value}); }
Lanes GpuFunction::log2(Lanes a) { return intrinsic("llvm.nvvm.lg2.approx.f", builder.getF32Type(), {a.value}); }

Value GpuFunction::addressOf(const GpuBuffer &buffer, Lanes at) {
  return builder.create<LLVM::GEPOp>(loc, buffer.address.getType(), memoryType(buffer.storage), buffer.address,
                                     ArrayRef<LLVM::GEPArg>{at.value});
}

LaneList GpuFunction::load(const GpuBuffer &buffer, Lanes at, int64_t count) {
  Type element = memoryType(buffer.storage);
  Type type = count == 1 ? element : VectorType::get({count}, element);
  unsigned alignment = unsigned(count) * storageBytes(buffer.storage);
  Value loaded = builder.create<LLVM::LoadOp>(loc, type, addressOf(buffer, at), alignment);
  LaneList numbers;
  for (int64_t i = 0; i < count; ++i) {
    Value one = count == 1 ? loaded : builder.create<LLVM::ExtractElementOp>(loc, loaded, i32(i).value).getResult();
    numbers.push_back(fromStorage(lanes(one), buffer.storage));
  }
  return numbers;
}

void GpuFunction::store(ArrayRef<Lanes> numbers, const GpuBuffer &buffer, Lanes at) {
  int64_t count = int64_t(numbers.size());
  Type element = memoryType(buffer.storage);
  Value stored = count == 1 ? Value() : builder.create<LLVM::PoisonOp>(loc, VectorType::get({count}, element));
  for (int64_t i = 0; i < count; ++i) {
    Value one = toStorage(numbers[size_t(i)], buffer.storage, /*hasBf16=*/true).value;
    stored = count == 1 ? one : builder.create<LLVM::InsertElementOp>(loc, stored, one, i32(i).value).getResult();
  }
  builder.create<LLVM::StoreOp>(loc, stored, addressOf(buffer, at), unsigned(count) * storageBytes(buffer.storage));
}

void GpuFunction::barrier() { builder.create<NVVM::Barrier0Op>(loc); }
void GpuFunction::warpBarrier() { builder.create<NVVM::SyncWarpOp>(loc, i32(-1).value); }

Lanes GpuFunction::exchanged(Lanes number, int64_t distance) {
  return lanes(builder.create<NVVM::ShflOp>(loc, number.value.getType(), i32(-1).value, number.value,
                                            i32(distance).value, i32(31).value, NVVM::ShflKind::bfly, UnitAttr()));
}

Lanes GpuFunction::ballot(Lanes condition) {
  return lanes(builder.create<NVVM::VoteBallotOp>(loc, builder.getI32Type(), i32(-1).value, condition.value));
}

void GpuFunction::loop(Lanes begin, Lanes end, int64_t step, llvm::function_ref<void(Lanes)> body) {
  loop(begin, end, step, {}, [&](Lanes at, ArrayRef<Lanes>) {
    body(at);
    return LaneList();
  });
}

LaneList GpuFunction::loop(Lanes begin, Lanes end, int64_t step, ArrayRef<Lanes> initial,
                           llvm::function_ref<LaneList(Lanes, ArrayRef<Lanes>)> body) {
  SmallVector<Value> values;
  for (Lanes number : initial)
    values.push_back(number.value);
  auto op = builder.create<scf::ForOp>(loc, begin.value, end.value, i32(step).value, values);
  OpBuilder::InsertionGuard guard(builder);
  if (initial.empty()) // the builder has made the terminator
    builder.setInsertionPointToStart(op.getBody());
  else
    builder.setInsertionPointToEnd(op.getBody());
  LaneList carried, results;
  for (Value value : op.getRegionIterArgs())
    carried.push_back(lanes(value));
  SmallVector<Value> next;
  for (Lanes number : body(lanes(op.getInductionVar()), carried))
    next.push_back(number.value);
  if (!initial.empty())
    builder.create<scf::YieldOp>(loc, next);
  for (Value value : op.getResults())
    results.push_back(lanes(value));
  return results;
}

void GpuFunction::onlyIf(Lanes condition, llvm::function_ref<void()> body) {
  auto op = builder.create<scf::IfOp>(loc, condition.value, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  body();
}

LaneList GpuFunction::onlyIf(Lanes condition, ArrayRef<Lanes> otherwise, llvm::function_ref<LaneList()> body) {
  SmallVector<Value> ofElse, ofThen;
  SmallVector<Type> types;
  for (Lanes number : otherwise) {
    ofElse.push_back(number.value);
    types.push_back(number.value.getType());
  }
  auto op = builder.create<scf::IfOp>(loc, types, condition.value, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.elseBlock());
  builder.create<scf::YieldOp>(loc, ofElse);
  builder.setInsertionPointToStart(op.thenBlock());
  for (Lanes number : body())
    ofThen.push_back(number.value);
  builder.create<scf::YieldOp>(loc, ofThen);
  LaneList results;
  for (Value value : op.getResults())
    results.push_back(lanes(value));
  return results;
}

} // namespace llmc
