// ld, ldu and st: where, how much, into what.
#include "tests/cudasim/Placement.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

Status decodeElements(Placement &placement, Instruction &in, const Operand &operand, Type type, bool isLoad) {
  bool isVector = operand.kind == Operand::vector;
  if (isVector ? operand.elements.size() != in.numElements : in.numElements != 1)
    return placement.error(fmt::format("{} elements expected", in.numElements));
  in.laneBytes = 0;
  for (size_t i = 0; i < in.numElements; ++i) {
    const Operand &element = isVector ? operand.elements[i] : operand;
    if (element.kind == Operand::sink && isLoad)
      continue;
    uint32_t bytes = std::max<uint32_t>(in.elementBytes, 2);
    if (element.kind == Operand::reg) {
      if (element.place.isPredicate || element.place.bytes < in.elementBytes)
        return placement.error("a register too narrow for its element");
      bytes = element.place.bytes;
      in.dst[i] = element.place.slot;
    } else if (isLoad) {
      return placement.error("a result must be a register");
    } else {
      LLMC_RETURN_IF_ERROR(placement.placeSource(in.dst[i], element, type));
    }
    if (in.laneBytes != 0 && in.laneBytes != bytes)
      return placement.error("registers of one width expected");
    in.laneBytes = bytes;
  }
  return {};
}

Status decodeAddress(Placement &placement, Instruction &in, const Operand &operand) {
  if (operand.kind != Operand::address)
    return placement.error("an address in brackets expected");
  in.immediate = static_cast<int64_t>(operand.value);
  if (in.space == Space::param) {
    const Symbol *found = placement.find(operand.text);
    if (operand.hasBaseRegister || !found || found->space != Space::param)
      return placement.error("the name of a parameter expected");
    uint64_t bytes = uint64_t(in.elementBytes) * in.numElements;
    if (operand.value > found->bytes || bytes > found->bytes - operand.value)
      return placement.error("reads beyond the parameter");
    in.immediate += static_cast<int64_t>(found->address);
    in.run = loadParameterHandler();
    return {};
  }
  if (operand.hasBaseRegister) {
    if (operand.place.bytes != 8 && operand.place.bytes != 4)
      return placement.error("an address register has 8 or 4 bytes");
    in.addressBytes = operand.place.bytes;
    in.src[0] = operand.place.slot;
    return {};
  }
  Operand base{.kind = operand.text.empty() ? Operand::integer : Operand::symbol, .text = operand.text};
  return placement.placeSource(in.src[0], base, Type::u64);
}

} // namespace

Status decodeMemory(Placement &placement, Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
  bool isLoad = mnemonic.name() != "st";
  std::string_view space = mnemonic.takeOneOf({"global", "shared", "local", "const", "param"});
  in.space = space == "global"   ? Space::global
             : space == "shared" ? Space::shared
             : space == "local"  ? Space::local
             : space == "const"  ? Space::constant
             : space == "param"  ? Space::param
                                 : Space::generic;
  // Hints for caches change no value.
  mnemonic.takeOneOf({"weak", "volatile"});
  mnemonic.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  mnemonic.takeOneOf(
      {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  mnemonic.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  if (isLoad && in.space == Space::global)
    mnemonic.take("nc");
  in.numElements = mnemonic.take("v4") ? 4 : mnemonic.take("v2") ? 2 : 1;
  Type type = mnemonic.takeType();
  if (bytesOf(type) == 0 || !mnemonic.allTaken() || operands.size() != 2)
    return placement.error("unknown instruction");
  in.elementBytes = bytesOf(type);
  in.signExtends = isSigned(type);
  in.kind = InstructionKind::memory;
  in.run = isLoad ? loadHandler() : storeHandler();
  LLMC_RETURN_IF_ERROR(decodeAddress(placement, in, operands[isLoad ? 1 : 0]));
  return decodeElements(placement, in, operands[isLoad ? 0 : 1], type, isLoad);
}

} // namespace llmc::cudasim
