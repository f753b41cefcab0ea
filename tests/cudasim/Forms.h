// What each family of instructions tells the decoder: the function that executes one, and the types of its operands.
// A family looks at the mnemonic, takes the suffixes it knows, and gives nothing for names that are not its own.
#pragma once

#include "tests/cudasim/Kernel.h"

namespace llmc::cudasim {

struct Form {
  Handler run = nullptr;
  std::vector<Type> dst{};
  std::vector<Type> src{};
  /// Registers may be wider than the type, as long as a lane's bytes are the same (cvt, mov).
  bool relaxed = false;
  /// For the handler, in Instruction::immediate.
  int64_t immediate = 0;
};

using FormResult = std::optional<Form>;

FormResult integerForm(Mnemonic &mnemonic);
FormResult bitForm(Mnemonic &mnemonic);
FormResult floatForm(Mnemonic &mnemonic);
FormResult packedForm(Mnemonic &mnemonic);
FormResult compareForm(Mnemonic &mnemonic);
FormResult convertForm(Mnemonic &mnemonic);
FormResult warpForm(Mnemonic &mnemonic);

/// For ld and st: handlers by direction; the decoder fills in where and how much.
Handler loadHandler();
Handler storeHandler();
Handler loadParameterHandler();
/// cvta: moves an address by Instruction::immediate, from one window to another.
Handler convertAddressHandler();
/// trap: ends the launch with a fault.
Handler trapHandler();

/// mov.b64 {lo, hi}, %rd and mov.b32 {a, b}, %r, and back; none for pieces that do not exist.
Handler unpackHandler(uint32_t pieceBytes, uint32_t wholeBytes);
Handler packHandler(uint32_t pieceBytes, uint32_t wholeBytes);

} // namespace llmc::cudasim
