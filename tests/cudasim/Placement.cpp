// Widths, constants, symbols.
#include "tests/cudasim/Placement.h"

#include <fmt/format.h>

namespace llmc::cudasim {

Error Placement::error(const std::string &problem) const {
  return {fmt::format("PTX line {}: {}: {}", line, instruction, problem)};
}

Status Placement::placeResult(Instruction &in, size_t index, const Operand &operand, Type type) {
  if (operand.kind == Operand::sink && operand.second.empty())
    return error("a result is missing");
  if (operand.kind != Operand::reg || operand.place.slot & kSpecialTag)
    return error("a result must be a register");
  LLMC_RETURN_IF_ERROR(checkWidth(operand.place, type, false));
  in.dst[index] = operand.place.slot;
  if (operand.second.empty())
    return {};
  const Operand &second = operand.second[0];
  if (second.kind == Operand::sink)
    return {};
  if (!second.place.isPredicate || index != 0)
    return error("the second result must be a predicate");
  in.dst[1] = second.place.slot;
  return {};
}

Status Placement::checkWidth(const Register &found, Type type, bool relaxed) const {
  if (found.isPredicate != (type == Type::pred))
    return error("predicate where a value is expected, or the other way round");
  uint32_t wanted = std::max(bytesOf(type), 2u), storage = wanted == 8 ? 8 : 4, have = found.bytes == 8 ? 8 : 4;
  bool fits = type == Type::pred || (relaxed ? have == storage && found.bytes >= bytesOf(type) : found.bytes == wanted);
  return fits ? Status() : error(fmt::format("register of {} bytes where {} are expected", found.bytes, wanted));
}

Status Placement::placeSource(uint32_t &slot, const Operand &operand, Type type, bool relaxed) {
  switch (operand.kind) {
  case Operand::reg:
    LLMC_RETURN_IF_ERROR(checkWidth(operand.place, type, relaxed));
    slot = operand.place.slot;
    return {};
  case Operand::integer:
    if (isFloat(type) && bytesOf(type) != 2 && type != Type::bf16x2 && type != Type::f16x2 && operand.value != 0)
      return error("integer where a float is expected");
    slot = constant(operand.value, type);
    return {};
  case Operand::float32:
  case Operand::float64:
    if (bytesOf(type) != (operand.kind == Operand::float32 ? 4 : 8))
      return error("float of another width expected");
    slot = constant(operand.value, type);
    return {};
  case Operand::symbol: {
    auto found = symbols.find(operand.text);
    if (found == symbols.end() || found->second.space == Space::param)
      return error(fmt::format("unknown symbol {}", operand.text));
    if (bytesOf(type) != 8 && found->second.space == Space::global)
      return error("an address has 8 bytes");
    slot = constant(found->second.address, type);
    return {};
  }
  default:
    return error("operand of an unknown kind");
  }
}

uint32_t Placement::constant(uint64_t value, Type type) {
  bool isPredicate = type == Type::pred;
  uint32_t laneBytes = bytesOf(type) == 8 ? 8 : 4;
  if (isPredicate)
    value = value != 0 ? 0xffffffff : 0;
  else if (bytesOf(type) < 4)
    value &= (1u << (8 * bytesOf(type))) - 1;
  auto [known, isNew] = constants.try_emplace({value, laneBytes}, kernel.constants.size());
  if (isNew)
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      auto bytes = reinterpret_cast<const std::byte *>(&value);
      kernel.constants.insert(kernel.constants.end(), bytes, bytes + laneBytes);
    }
  return kConstantTag | known->second;
}

} // namespace llmc::cudasim
