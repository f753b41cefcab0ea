// PTX text to tokens. A word is a name with its dots (`ld.global.v4.f32`, `%tid.x`, `$L__BB0_2`); a number is an
// integer or the bits of a float (`0f3F800000`, `0d3FF0000000000000`); all else is one character.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::cudasim {

enum class TokenKind { word, integer, float32, float64, string, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text{};
  /// The integer, or the float's bits.
  uint64_t value = 0;
  uint32_t line = 0;

  bool is(std::string_view expected) const { return kind != TokenKind::string && text == expected; }
};

/// The tokens of a text that outlives them; the last one is the end. Fails on characters that PTX does not know.
Result<std::vector<Token>> tokenize(std::string_view text);

} // namespace llmc::cudasim
