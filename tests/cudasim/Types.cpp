// The table of types, and the taking apart of names.
#include "tests/cudasim/Types.h"

#include <utility>

namespace llmc::cudasim {

namespace {

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::pred},   {"b8", Type::b8},         {"b16", Type::b16},   {"b32", Type::b32}, {"b64", Type::b64},
    {"u8", Type::u8},       {"u16", Type::u16},       {"u32", Type::u32},   {"u64", Type::u64}, {"s8", Type::s8},
    {"s16", Type::s16},     {"s32", Type::s32},       {"s64", Type::s64},   {"f16", Type::f16}, {"bf16", Type::bf16},
    {"f16x2", Type::f16x2}, {"bf16x2", Type::bf16x2}, {"tf32", Type::tf32}, {"f32", Type::f32}, {"f64", Type::f64},
};

} // namespace

std::optional<Type> typeNamed(std::string_view name) {
  for (const auto &[known, type] : kTypes)
    if (known == name)
      return type;
  return std::nullopt;
}

uint32_t bytesOf(Type type) {
  switch (type) {
  case Type::none:
  case Type::pred:
    return 0;
  case Type::b8:
  case Type::u8:
  case Type::s8:
    return 1;
  case Type::b16:
  case Type::u16:
  case Type::s16:
  case Type::f16:
  case Type::bf16:
    return 2;
  case Type::b64:
  case Type::u64:
  case Type::s64:
  case Type::f64:
    return 8;
  default:
    return 4;
  }
}

bool isSigned(Type type) { return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64; }

bool isFloat(Type type) { return type >= Type::f16; }

Mnemonic::Mnemonic(std::string_view text) {
  size_t dot = std::min(text.find('.'), text.size());
  base = text.substr(0, dot);
  while (dot < text.size()) {
    size_t next = std::min(text.find('.', dot + 1), text.size());
    rest.emplace_back(text.substr(dot + 1, next - dot - 1));
    dot = next;
  }
}

bool Mnemonic::take(std::string_view suffix) {
  auto found = std::find(rest.begin(), rest.end(), suffix);
  if (found == rest.end())
    return false;
  rest.erase(found);
  return true;
}

std::string_view Mnemonic::takeOneOf(std::initializer_list<std::string_view> suffixes) {
  for (std::string_view suffix : suffixes)
    if (take(suffix))
      return suffix;
  return {};
}

Type Mnemonic::takeType() {
  for (auto suffix = rest.begin(); suffix != rest.end(); ++suffix)
    if (std::optional<Type> type = typeNamed(*suffix)) {
      rest.erase(suffix);
      return *type;
    }
  return Type::none;
}

} // namespace llmc::cudasim
