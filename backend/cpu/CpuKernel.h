// What every CPU kernel is: an object made from a launch when a program is prepared (arguments read, sizes checked,
// library primitives created), then run again and again.
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "runtime/Device.h"

#include <memory>
#include <string_view>
#include <vector>

namespace llmc {

/// A launch made ready. Reads and writes the buffers it was bound to.
class CpuKernel {
public:
  virtual ~CpuKernel() = default;
  /// Memory that run() needs for itself, shared by all kernels of a program.
  virtual uint64_t scratchBytes() const { return 0; }
  /// Does the work on all threads; scratch is 4096-byte aligned. Allocates nothing. The caller adds the launch's name
  /// to an error.
  virtual Status run(std::byte *scratch) = 0;
};

/// The collectives of one prepared program: what a start leaves for its wait.
struct CpuCollectives {
  CommApi *comm = nullptr;       ///< null: one rank
  std::vector<uint64_t> tickets; ///< by position
};

/// The device as kernels see it.
struct CpuTarget {
  int threads = 1;
  IsaLevel isa = IsaLevel::v3;
  const std::byte *code = nullptr; ///< the loaded blob
  uint64_t codeBytes = 0;
  std::span<const CodeEntry> entries;
  CpuCollectives *collectives = nullptr; ///< of the program being prepared
};

/// An operand: its memory and size; nothing where the launch has none.
struct CpuOperand {
  std::byte *data = nullptr;
  uint64_t bytes = 0;
  explicit operator bool() const { return data != nullptr; }
  template <typename T> T *as() const { return reinterpret_cast<T *>(data); }
};

/// A launch's arguments by the names of runtime/Kernels.def.
class KernelArgs {
public:
  KernelArgs(const Launch &launch, const DeviceSpaces &spaces) : launch(launch), spaces(spaces) {}
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  ElementType type(std::string_view name) const { return static_cast<ElementType>(integer(name)); }
  CpuOperand operand(std::string_view name) const;
  CpuOperand operandAt(size_t index) const;
  size_t numOperands() const { return launch.operands.size(); }
  std::string_view name() const { return launch.name; }
  const Launch &source() const { return launch; }
  int32_t entry() const { return launch.entry; }
  /// Fails where a named integer is below `least`.
  Status requireAtLeast(int64_t least, std::initializer_list<std::string_view> names) const;

private:
  const Launch &launch;
  const DeviceSpaces &spaces;
};

/// Fails unless an operand holds elements [0, last] of a type; last < 0 asks for nothing.
Status requireElements(const KernelArgs &args, std::string_view operand, __int128 last, ElementType type);

/// Makes a kernel ready, or says why the launch cannot run here.
using KernelFactory = Result<std::unique_ptr<CpuKernel>> (*)(const KernelArgs &, const CpuTarget &);

/// One factory per kind, each in the file that does the work; the table is in KernelTable.cpp.
#define LLMC_KERNEL(Kind, name, operands, ints, floats)                                                                \
  Result<std::unique_ptr<CpuKernel>> make##Kind##Kernel(const KernelArgs &, const CpuTarget &);
#include "runtime/Kernels.def"

/// The factory of a kind.
KernelFactory kernelFactory(KernelKind kind);

} // namespace llmc
