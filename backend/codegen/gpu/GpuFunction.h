// A GPU kernel under construction: the launch's operands as addresses, threads, loops, shared memory and barriers.
// Numbers are Lanes of one lane, what one thread holds; indices are i32 unless said otherwise, positions in operands
// i64.
#pragma once

#include "backend/codegen/gpu/GpuKernels.h"
#include "ir/Lanes.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace llmc {

using LaneList = llvm::SmallVector<Lanes>;

/// A stretch of elements of one type in global or shared memory.
struct GpuBuffer {
  mlir::Value address; ///< of element 0; null: absent
  mlir::Type storage;  ///< what an element is (bf16, f32, i64…); its numbers are f32 or integers
  explicit operator bool() const { return bool(address); }
};

class GpuFunction {
public:
  /// Begins the kernel of a launch, for blocks of `threads` threads.
  GpuFunction(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context, uint32_t threads);
  /// Lets a thread have as many registers as there are, where ptxas would rather spill than have fewer blocks at once.
  void preferRegisters();
  /// Ends it.
  GpuKernel finish(int64_t blocks);

  /// An operand by its name in Kernels.def; absent where the launch has none.
  GpuBuffer operand(llvm::StringRef name, ElementType type) const;
  /// The address of the status word.
  GpuBuffer status() const;
  /// Shared memory of `count` elements, 16-byte aligned, of f32 or an integer type.
  GpuBuffer shared(int64_t count, mlir::Type type);

  Lanes i32(int64_t number);
  Lanes i64(int64_t number);
  Lanes f32(double number);
  Lanes wide(Lanes index); ///< i32 to i64
  Lanes thread();
  Lanes block();
  /// Unsigned quotient and remainder by a constant.
  Lanes quotient(Lanes a, int64_t b);
  Lanes remainder(Lanes a, int64_t b);
  Lanes exp2(Lanes a); ///< within 2 units in the last place; -inf gives 0
  Lanes log2(Lanes a); ///< within 2^-22, absolutely near 1

  /// `count` elements from `at` on (i32 or i64), as numbers; more than one (2, 4, 8, 16 bytes or less in all) must lie
  /// at a multiple of their size.
  LaneList load(const GpuBuffer &buffer, Lanes at, int64_t count);
  Lanes load(const GpuBuffer &buffer, Lanes at) { return load(buffer, at, 1)[0]; }
  void store(llvm::ArrayRef<Lanes> numbers, const GpuBuffer &buffer, Lanes at);

  void barrier();
  /// Orders the warp's accesses to shared memory.
  void warpBarrier();
  /// The number that the lane at this xor distance holds.
  Lanes exchanged(Lanes number, int64_t distance);
  /// A bit a lane of the warp where the condition holds.
  Lanes ballot(Lanes condition);

  void loop(Lanes begin, Lanes end, int64_t step, llvm::function_ref<void(Lanes)> body);
  /// A loop that carries numbers: the body gets and returns them.
  LaneList loop(Lanes begin, Lanes end, int64_t step, llvm::ArrayRef<Lanes> initial,
                llvm::function_ref<LaneList(Lanes, llvm::ArrayRef<Lanes>)> body);
  void onlyIf(Lanes condition, llvm::function_ref<void()> body);
  /// `otherwise` where the condition does not hold.
  LaneList onlyIf(Lanes condition, llvm::ArrayRef<Lanes> otherwise, llvm::function_ref<LaneList()> body);

  mlir::OpBuilder builder;
  mlir::Location loc;
  const Launch &launch;
  const uint32_t threads;

private:
  Lanes lanes(mlir::Value value) { return {&builder, loc, value}; }
  Lanes intrinsic(const char *name, mlir::Type result, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value addressOf(const GpuBuffer &buffer, Lanes at);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string symbol;
  mlir::Block *entry = nullptr;
  int64_t sharedBytes = 0;
};

/// Elements that one access may take: the most (up to `most`) that divide all numbers.
int64_t accessWidth(int64_t most, std::initializer_list<int64_t> numbers);

} // namespace llmc
