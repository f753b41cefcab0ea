// From a compiler's object file to bytes that run wherever they are copied: code and constants at fixed distances,
// every reference resolved.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct FlatCode {
  std::vector<std::byte> bytes; ///< a multiple of 64 long, to be placed at a multiple of 64
  uint64_t entry = 0;           ///< offset of the function
};

/// Lays out the x86-64 ELF object's code and constants and resolves its relocations. Fails, naming the symbol or
/// section, on anything undefined or writable, and on relocations other than PC32 and PLT32. `function` is the symbol
/// of the entry.
llvm::Expected<FlatCode> flattenObject(llvm::ArrayRef<char> object, llvm::StringRef function);

} // namespace llmc
