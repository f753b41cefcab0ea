// A kernel's body to instructions: scopes and registers, labels, guards, and for each instruction its operands by the
// form that its family states. Everything unknown is an error with its line.
#pragma once

#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lexer.h"

#include <span>

namespace llmc::cudasim {

/// What a symbol of the module or the kernel stands for.
struct Symbol {
  Space space = Space::global;
  /// Address in its space; for a parameter its offset.
  uint64_t address = 0;
  uint64_t bytes = 0;
};
using SymbolTable = std::map<std::string, Symbol, std::less<>>;

/// Decodes the tokens between a kernel's outermost braces into kernel.code; the kernel has its parameters already.
Status decodeBody(std::span<const Token> body, const SymbolTable &symbols, Kernel &kernel);

} // namespace llmc::cudasim
