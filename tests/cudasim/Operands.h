// Operands as they are written, before an instruction's form says what they have to be.
#pragma once

#include "tests/cudasim/Decoder.h"

namespace llmc::cudasim {

struct Register {
  uint32_t slot = kNoSlot;
  /// Bytes of the declared type; 0 for a predicate.
  uint32_t bytes = 0;
  bool isPredicate = false;
};

struct Operand {
  enum Kind { reg, integer, float32, float64, symbol, address, vector, sink } kind = sink;
  Register place{};
  uint64_t value = 0;
  std::string_view text{};
  /// Address: the base is place (a register), or text (a symbol), or nothing; value is the offset.
  bool hasBaseRegister = false;
  std::vector<Operand> elements{};
  /// `d|p` of setp and shfl.
  std::vector<Operand> second{};
};

/// Reads tokens one by one.
class TokenCursor {
public:
  explicit TokenCursor(std::span<const Token> tokens) : tokens(tokens) {}
  const Token &peek(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  const Token &next() { return tokens[std::min(at++, tokens.size() - 1)]; }
  bool accept(std::string_view text) { return peek().is(text) && (++at, true); }
  bool done() const { return at >= tokens.size() || tokens[at].kind == TokenKind::end; }
  size_t position() const { return at; }

private:
  std::span<const Token> tokens;
  size_t at = 0;
};

/// The names of registers, by nested scopes. Slots are numbered from 0 here.
class RegisterScopes {
public:
  RegisterScopes() : scopes(1) {}
  void open() { scopes.emplace_back(); }
  void close() { scopes.pop_back(); }
  /// After `.reg`: one declaration up to its semicolon.
  Status declare(TokenCursor &cursor);
  const Register *find(std::string_view name) const;
  uint32_t bytes() const { return usedBytes; }

private:
  void add(std::string name, Type type);
  std::vector<std::map<std::string, Register, std::less<>>> scopes;
  uint32_t usedBytes = 0;
};

/// The slot of a special register, tagged as one, or kNoSlot.
uint32_t specialSlot(std::string_view name);

/// Slots are told apart by these bits until the sizes of all parts of the register file are known.
inline constexpr uint32_t kConstantTag = 1u << 31, kSpecialTag = 1u << 30;

/// One operand; fails on what PTX does not know.
Result<Operand> parseOperand(TokenCursor &cursor, const RegisterScopes &scopes);

} // namespace llmc::cudasim
