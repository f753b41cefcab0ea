// Gives an instruction's operands their slots: registers of the width that the form's type wants, constants in slots of
// their own, symbols as their addresses.
#pragma once

#include "tests/cudasim/Operands.h"

namespace llmc::cudasim {

class Placement {
public:
  Placement(const SymbolTable &symbols, Kernel &kernel) : symbols(symbols), kernel(kernel) {}

  /// The instruction that is being decoded, for errors.
  uint32_t line = 0;
  std::string instruction;
  Error error(const std::string &problem) const;

  const Symbol *find(std::string_view name) const {
    auto found = symbols.find(name);
    return found == symbols.end() ? nullptr : &found->second;
  }
  /// A result, with its second part (`d|p`) where it has one.
  Status placeResult(Instruction &in, size_t index, const Operand &operand, Type type);
  /// Relaxed: the register may be wider, as long as a lane's bytes are the same.
  Status placeSource(uint32_t &slot, const Operand &operand, Type type, bool relaxed = false);

private:
  Status checkWidth(const Register &found, Type type, bool relaxed) const;
  /// A slot that holds a value in every lane.
  uint32_t constant(uint64_t value, Type type);

  const SymbolTable &symbols;
  Kernel &kernel;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants;
};

/// ld, ldu and st: spaces, hints, vectors, addresses.
Status decodeMemory(Placement &placement, Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands);

} // namespace llmc::cudasim
