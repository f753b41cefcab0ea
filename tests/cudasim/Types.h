// PTX's types, and an instruction's name taken apart: `ld.global.nc.v4.f32` is the name ld with four suffixes. Whoever
// decodes an instruction takes the suffixes it knows; what is left over makes the instruction unknown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::cudasim {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  tf32,
  f32,
  f64
};

/// The type of a suffix without its dot, or nothing.
std::optional<Type> typeNamed(std::string_view name);
/// Bytes of one element in memory. A predicate has none.
uint32_t bytesOf(Type type);
bool isSigned(Type type);
bool isFloat(Type type);

/// An instruction's name and the suffixes nobody has taken yet.
class Mnemonic {
public:
  explicit Mnemonic(std::string_view text);

  const std::string &name() const { return base; }
  /// Whether the suffix is there; it is gone then.
  bool take(std::string_view suffix);
  /// The first of these that is there, or an empty view.
  std::string_view takeOneOf(std::initializer_list<std::string_view> suffixes);
  /// The first suffix that is a type, or none.
  Type takeType();
  bool allTaken() const { return rest.empty(); }

private:
  std::string base;
  std::vector<std::string> rest;
};

} // namespace llmc::cudasim
