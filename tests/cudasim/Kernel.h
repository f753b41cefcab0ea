// A kernel decoded once: each instruction is a function over a warp's 32 lanes and the places of its operands.
// Registers, constants and special registers (%tid.x) are all slots of one register file, so an operand is just an
// offset in it.
//
// A slot has 32 lanes of 4 bytes (types of up to 32 bits) or of 8 bytes; a predicate is a mask of 32 bits.
#pragma once

#include "runtime/Status.h"
#include "tests/cudasim/Types.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmc::cudasim {

class Context;
struct Instruction;

/// Executes an instruction for the context's active lanes.
using Handler = void (*)(Context &, const Instruction &);

inline constexpr uint32_t kWarpLanes = 32;
inline constexpr uint32_t kNoSlot = ~0u;

/// An exchange needs the lanes that its member mask names.
enum class InstructionKind : uint8_t { lanes, memory, exchange, branch, barrier, leave };
enum class Guard : uint8_t { none, whenTrue, whenFalse };
enum class Space : uint8_t { generic, global, shared, local, constant, param };

struct Instruction {
  Handler run = nullptr;
  InstructionKind kind = InstructionKind::lanes;
  Guard guard = Guard::none;
  uint32_t guardSlot = 0;
  /// Results; for a store the values stored.
  std::array<uint32_t, 4> dst{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  std::array<uint32_t, 5> src{kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  /// Memory: byte offset from the address register. Branch: index of the target. Others: what the handler says.
  int64_t immediate = 0;
  uint32_t line = 0;
  // Memory only: elements (1, 2, 4), bytes of one, bytes of a lane of the registers, bytes of the address register.
  Space space = Space::generic;
  uint8_t numElements = 1;
  uint8_t elementBytes = 0;
  uint8_t laneBytes = 4;
  uint8_t addressBytes = 8;
  bool signExtends = false;
};

/// Special registers, in the order of their slots.
enum class Special : uint8_t {
  tidX,
  tidY,
  tidZ,
  ntidX,
  ntidY,
  ntidZ,
  ctaidX,
  ctaidY,
  ctaidZ,
  nctaidX,
  nctaidY,
  nctaidZ,
  laneId,
  warpId,
  count
};

struct Parameter {
  std::string name;
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  /// Bytes of all parameters as laid out by their alignments.
  uint32_t parameterBytes = 0;
  std::vector<Instruction> code;
  /// Bytes of a warp's register file; the first slots are Special's, then constants up to firstRegister, then
  /// registers.
  uint32_t fileBytes = 0;
  uint32_t firstRegister = 0;
  /// The constants' lanes, to be copied behind the special registers.
  std::vector<std::byte> constants;
  uint32_t staticSharedBytes = 0;
  uint32_t localBytes = 0;
  /// .reqntid and .maxntid, as numbers of threads; 0 where not stated.
  std::array<uint32_t, 3> requiredThreads{};
  uint32_t maxThreads = 0;

  /// The arguments in the layout of the parameters, or what is wrong with their number or sizes.
  Result<std::vector<std::byte>> packArguments(const std::vector<std::vector<std::byte>> &arguments) const;
};

inline constexpr uint32_t kSpecialBytes = static_cast<uint32_t>(Special::count) * kWarpLanes * 4;

/// A variable of the module in .global or .const memory; .shared ones belong to the kernels that come after them.
struct Variable {
  std::string name;
  Space space = Space::global;
  uint32_t alignment = 1;
  uint64_t bytes = 0;
  std::vector<std::byte> initial;
};

class Memory;

/// A module of PTX with its kernels by name.
class Module {
public:
  /// Parses and decodes; allocates the module's variables in `memory`. Fails with the PTX line and the instruction on
  /// anything that is not known: an opcode, a modifier, an operand of the wrong width.
  static Result<Module> load(std::string_view text, Memory &memory);

  const Kernel *find(const std::string &name) const;
  const std::map<std::string, Kernel> &all() const { return kernels; }
  /// The architecture that the text names: sm_80.
  const std::string &targetName() const { return target; }
  /// Device address and bytes of a .global or .const variable; zero bytes where there is none of that name.
  std::pair<uint64_t, uint64_t> variable(const std::string &name) const;

private:
  friend class ModuleParser;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, std::pair<uint64_t, uint64_t>> variables;
  std::string target;
};

} // namespace llmc::cudasim
