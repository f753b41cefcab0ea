// Operands, registers, special registers.
#include "tests/cudasim/Operands.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%tid.x", Special::tidX},       {"%tid.y", Special::tidY},       {"%tid.z", Special::tidZ},
    {"%ntid.x", Special::ntidX},     {"%ntid.y", Special::ntidY},     {"%ntid.z", Special::ntidZ},
    {"%ctaid.x", Special::ctaidX},   {"%ctaid.y", Special::ctaidY},   {"%ctaid.z", Special::ctaidZ},
    {"%nctaid.x", Special::nctaidX}, {"%nctaid.y", Special::nctaidY}, {"%nctaid.z", Special::nctaidZ},
    {"%laneid", Special::laneId},    {"%warpid", Special::warpId},
};

Error unexpected(const Token &token, const char *wanted) {
  return {fmt::format("PTX line {}: {} expected, found '{}'", token.line, wanted, token.text)};
}

/// An optional sign and an integer.
Result<uint64_t> parseInteger(TokenCursor &cursor) {
  cursor.accept("+"); // LLVM writes [%rd1+-4]
  bool negative = cursor.accept("-");
  const Token &token = cursor.next();
  if (token.kind != TokenKind::integer)
    return unexpected(token, "integer");
  return negative ? -token.value : token.value;
}

Result<Operand> parseAddress(TokenCursor &cursor, const RegisterScopes &scopes) {
  Operand operand{.kind = Operand::address};
  const Token &base = cursor.peek();
  if (base.kind == TokenKind::word) {
    cursor.next();
    if (const Register *found = scopes.find(base.text)) {
      operand.place = *found;
      operand.hasBaseRegister = true;
    } else {
      operand.text = base.text;
    }
  }
  if (!cursor.peek().is("]")) {
    Result<uint64_t> offset = parseInteger(cursor);
    if (!offset)
      return offset.error();
    operand.value = *offset;
  }
  return cursor.accept("]") ? Result<Operand>(operand) : unexpected(cursor.peek(), "]");
}

Result<Operand> parseVector(TokenCursor &cursor, const RegisterScopes &scopes) {
  Operand operand{.kind = Operand::vector};
  do {
    Result<Operand> element = parseOperand(cursor, scopes);
    if (!element)
      return element;
    operand.elements.push_back(*element);
  } while (cursor.accept(","));
  return cursor.accept("}") ? Result<Operand>(operand) : unexpected(cursor.peek(), "}");
}

Result<Operand> parseWord(TokenCursor &cursor, const RegisterScopes &scopes) {
  const Token &token = cursor.next();
  Operand operand{.text = token.text};
  if (token.text == "_")
    return operand;
  if (const Register *found = scopes.find(token.text)) {
    operand.kind = Operand::reg;
    operand.place = *found;
  } else if (uint32_t slot = specialSlot(token.text); slot != kNoSlot) {
    operand.kind = Operand::reg;
    operand.place = {.slot = slot, .bytes = 4};
  } else if (token.text == "WARP_SZ") {
    operand.kind = Operand::integer;
    operand.value = kWarpLanes;
  } else if (token.text.starts_with('%')) {
    return Error{fmt::format("PTX line {}: unknown register {}", token.line, token.text)};
  } else {
    operand.kind = Operand::symbol;
  }
  return operand;
}

} // namespace

uint32_t specialSlot(std::string_view name) {
  for (const auto &[known, special] : kSpecials)
    if (known == name)
      return kSpecialTag | static_cast<uint32_t>(special) * kWarpLanes * 4;
  return kNoSlot;
}

Result<Operand> parseOperand(TokenCursor &cursor, const RegisterScopes &scopes) {
  if (cursor.accept("["))
    return parseAddress(cursor, scopes);
  if (cursor.accept("{"))
    return parseVector(cursor, scopes);
  const Token &token = cursor.peek();
  if (token.kind == TokenKind::word) {
    Result<Operand> operand = parseWord(cursor, scopes);
    if (!operand || !cursor.accept("|"))
      return operand;
    Result<Operand> second = parseWord(cursor, scopes);
    if (!second)
      return second;
    operand->second.push_back(*second);
    return operand;
  }
  if (token.kind == TokenKind::float32 || token.kind == TokenKind::float64) {
    cursor.next();
    return Operand{.kind = token.kind == TokenKind::float32 ? Operand::float32 : Operand::float64,
                   .value = token.value};
  }
  Result<uint64_t> value = parseInteger(cursor);
  if (!value)
    return value.error();
  return Operand{.kind = Operand::integer, .value = *value};
}

void RegisterScopes::add(std::string name, Type type) {
  bool isPredicate = type == Type::pred;
  scopes.back()[std::move(name)] = {usedBytes, bytesOf(type), isPredicate};
  // Slots keep the alignment of the widest vectors.
  usedBytes += isPredicate ? 64 : kWarpLanes * (bytesOf(type) == 8 ? 8 : 4);
}

Status RegisterScopes::declare(TokenCursor &cursor) {
  const Token &typeToken = cursor.next();
  std::optional<Type> type = typeNamed(typeToken.text.substr(std::min<size_t>(1, typeToken.text.size())));
  if (!type)
    return unexpected(typeToken, "register type");
  do {
    const Token &name = cursor.next();
    if (name.kind != TokenKind::word)
      return unexpected(name, "register name");
    if (!cursor.accept("<")) {
      add(std::string(name.text), *type);
      continue;
    }
    const Token &count = cursor.next();
    if (count.kind != TokenKind::integer || count.value > 1000000 || !cursor.accept(">"))
      return unexpected(count, "number of registers");
    for (uint64_t i = 0; i < count.value; ++i)
      add(fmt::format("{}{}", name.text, i), *type);
  } while (cursor.accept(","));
  return cursor.accept(";") ? Status() : unexpected(cursor.peek(), ";");
}

const Register *RegisterScopes::find(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto found = scope->find(name); found != scope->end())
      return &found->second;
  return nullptr;
}

} // namespace llmc::cudasim
