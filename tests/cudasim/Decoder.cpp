// Statement by statement. What differs from the plain pattern (results, then operands) has a function of its own:
// memory, branches, barriers, packing.
#include "tests/cudasim/Operands.h"

#include "tests/cudasim/Context.h"

#include <fmt/format.h>
#include <functional>

namespace llmc::cudasim {

namespace {

class BodyDecoder {
public:
  BodyDecoder(std::span<const Token> body, const SymbolTable &symbols, Kernel &kernel)
      : cursor(body), symbols(symbols), kernel(kernel) {}

  Status run() {
    while (!cursor.done())
      LLMC_RETURN_IF_ERROR(statement());
    // Whoever falls off the end has ended.
    kernel.code.push_back({.kind = InstructionKind::leave});
    LLMC_RETURN_IF_ERROR(resolveBranches());
    placeSlots();
    return {};
  }

private:
  Error at(const std::string &problem) const {
    return {fmt::format("PTX line {}: {}: {}", line, instructionText, problem)};
  }

  Status statement() {
    const Token &first = cursor.peek();
    if (cursor.accept("{"))
      return scopes.open(), Status();
    if (cursor.accept("}"))
      return scopes.close(), Status();
    if (cursor.accept(";"))
      return {};
    if (cursor.accept(".reg"))
      return scopes.declare(cursor);
    if (first.is(".loc") || first.is(".file")) {
      while (!cursor.done() && cursor.peek().line == first.line)
        cursor.next();
      return {};
    }
    if (first.is(".pragma") || first.is(".shared") || first.is(".local")) { // memory was laid out before
      while (!cursor.done() && !cursor.accept(";"))
        cursor.next();
      return {};
    }
    if (first.kind == TokenKind::word && cursor.peek(1).is(":")) {
      labels[std::string(first.text)] = kernel.code.size();
      cursor.next();
      cursor.next();
      return {};
    }
    return instruction();
  }

  Status instruction() {
    Instruction in;
    line = in.line = cursor.peek().line;
    instructionText = "@";
    if (cursor.accept("@")) {
      in.guard = cursor.accept("!") ? Guard::whenFalse : Guard::whenTrue;
      const Register *guard = scopes.find(cursor.next().text);
      if (!guard || !guard->isPredicate)
        return at("a guard must be a predicate");
      in.guardSlot = guard->slot;
    }
    const Token &name = cursor.next();
    if (name.kind != TokenKind::word)
      return Error{fmt::format("PTX line {}: instruction expected, found '{}'", line, name.text)};
    instructionText = name.text;
    std::vector<Operand> operands;
    while (!cursor.accept(";")) {
      if (!operands.empty() && !cursor.accept(","))
        return at(fmt::format("';' expected, found '{}'", cursor.peek().text));
      Result<Operand> operand = parseOperand(cursor, scopes);
      if (!operand)
        return operand.error();
      operands.push_back(*operand);
    }
    LLMC_RETURN_IF_ERROR(decode(in, Mnemonic(name.text), operands));
    kernel.code.push_back(in);
    return {};
  }

  Status decode(Instruction &in, Mnemonic mnemonic, const std::vector<Operand> &operands) {
    const std::string &name = mnemonic.name();
    if (name == "ld" || name == "ldu" || name == "st")
      return decodeMemory(in, mnemonic, operands);
    if (name == "bra")
      return decodeBranch(in, mnemonic, operands);
    if (name == "ret" || name == "exit")
      return in.kind = InstructionKind::leave, expectNone(mnemonic, operands);
    if (name == "trap")
      return in.kind = InstructionKind::memory, in.run = trapHandler(), expectNone(mnemonic, operands);
    if (name == "membar" || name == "fence")
      return in.run = [](Context &, const Instruction &) {}, Status(); // barriers order; a fence alone does not
    if ((name == "bar" || name == "barrier") && operands.size() == 1 && !Mnemonic(mnemonic).take("warp"))
      return decodeBarrier(in, mnemonic, operands[0]);
    if (name == "cvta")
      return decodeAddressConversion(in, mnemonic, operands);
    if (name == "mov" && operands.size() == 2 &&
        (operands[0].kind == Operand::vector || operands[1].kind == Operand::vector))
      return decodePacking(in, mnemonic, operands);
    return decodeForm(in, mnemonic, operands);
  }

  Status expectNone(const Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    return operands.empty() && (mnemonic.allTaken() || Mnemonic(mnemonic).take("uni")) ? Status()
                                                                                       : at("unknown instruction");
  }

  Status decodeForm(Instruction &in, const Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    for (auto family : {integerForm, floatForm, packedForm, bitForm, compareForm, convertForm, warpForm}) {
      Mnemonic rest = mnemonic;
      FormResult form = family(rest);
      if (!form || !form->run)
        continue;
      if (!rest.allTaken())
        continue;
      if (operands.size() != form->dst.size() + form->src.size())
        return at(fmt::format("{} operands expected, {} found", form->dst.size() + form->src.size(), operands.size()));
      in.run = form->run;
      in.immediate = form->immediate;
      // A warp's exchange can find lanes missing.
      in.kind = family == warpForm ? InstructionKind::memory : InstructionKind::lanes;
      for (size_t i = 0; i < form->dst.size(); ++i)
        LLMC_RETURN_IF_ERROR(placeResult(in, i, operands[i], form->dst[i], form->relaxed));
      for (size_t i = 0; i < form->src.size(); ++i)
        LLMC_RETURN_IF_ERROR(placeSource(in.src[i], operands[form->dst.size() + i], form->src[i], form->relaxed));
      return {};
    }
    return at("unknown instruction");
  }

  Status placeResult(Instruction &in, size_t index, const Operand &operand, Type type, bool relaxed) {
    if (operand.kind == Operand::sink && operand.second.empty())
      return at("a result is missing");
    if (operand.kind != Operand::reg || operand.place.slot & kSpecialTag)
      return at("a result must be a register");
    LLMC_RETURN_IF_ERROR(checkWidth(operand.place, type, false));
    in.dst[index] = operand.place.slot;
    if (operand.second.empty())
      return {};
    const Operand &second = operand.second[0];
    if (second.kind == Operand::sink)
      return {};
    if (!second.place.isPredicate || index != 0)
      return at("the second result must be a predicate");
    in.dst[1] = second.place.slot;
    return {};
  }

  Status checkWidth(const Register &found, Type type, bool relaxed) {
    if (found.isPredicate != (type == Type::pred))
      return at("predicate where a value is expected, or the other way round");
    uint32_t wanted = std::max(bytesOf(type), 2u), storage = wanted == 8 ? 8 : 4, have = found.bytes == 8 ? 8 : 4;
    bool fits =
        type == Type::pred || (relaxed ? have == storage && found.bytes >= bytesOf(type) : found.bytes == wanted);
    return fits ? Status() : at(fmt::format("register of {} bytes where {} are expected", found.bytes, wanted));
  }

  Status placeSource(uint32_t &slot, const Operand &operand, Type type, bool relaxed) {
    switch (operand.kind) {
    case Operand::reg:
      LLMC_RETURN_IF_ERROR(checkWidth(operand.place, type, relaxed));
      slot = operand.place.slot;
      return {};
    case Operand::integer:
      if (isFloat(type) && bytesOf(type) != 2 && type != Type::bf16x2 && type != Type::f16x2 && operand.value != 0)
        return at("integer where a float is expected");
      slot = constant(operand.value, type);
      return {};
    case Operand::float32:
    case Operand::float64:
      if (bytesOf(type) != (operand.kind == Operand::float32 ? 4 : 8))
        return at("float of another width expected");
      slot = constant(operand.value, type);
      return {};
    case Operand::symbol: {
      auto found = symbols.find(operand.text);
      if (found == symbols.end() || found->second.space == Space::param)
        return at(fmt::format("unknown symbol {}", operand.text));
      if (bytesOf(type) != 8 && found->second.space == Space::global)
        return at("an address has 8 bytes");
      slot = constant(found->second.address, type);
      return {};
    }
    default:
      return at("operand of an unknown kind");
    }
  }

  /// A slot that holds a value in every lane.
  uint32_t constant(uint64_t value, Type type) {
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

  Status decodeBranch(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    mnemonic.take("uni");
    if (!mnemonic.allTaken() || operands.size() != 1 || operands[0].kind != Operand::symbol)
      return at("unknown instruction");
    in.kind = InstructionKind::branch;
    branches.push_back({kernel.code.size(), std::string(operands[0].text), line});
    return {};
  }

  Status decodeBarrier(Instruction &in, Mnemonic &mnemonic, const Operand &operand) {
    mnemonic.take("cta");
    mnemonic.take("aligned");
    if (!mnemonic.take("sync") || !mnemonic.allTaken() || operand.kind != Operand::integer)
      return at("unknown instruction");
    in.kind = InstructionKind::barrier;
    in.immediate = static_cast<int64_t>(operand.value);
    return {};
  }

  Status decodeAddressConversion(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    bool to = mnemonic.take("to");
    std::string_view space = mnemonic.takeOneOf({"global", "const", "shared", "local"});
    if (space.empty() || mnemonic.takeType() != Type::u64 || !mnemonic.allTaken() || operands.size() != 2)
      return at("unknown instruction");
    auto window = static_cast<int64_t>(space == "shared" ? kSharedWindow : space == "local" ? kLocalWindow : 0);
    in.immediate = to ? -window : window;
    in.run = convertAddressHandler();
    LLMC_RETURN_IF_ERROR(placeResult(in, 0, operands[0], Type::u64, false));
    return placeSource(in.src[0], operands[1], Type::u64, false);
  }

  Status decodePacking(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    Type type = mnemonic.takeType();
    bool unpacks = operands[0].kind == Operand::vector;
    const std::vector<Operand> &pieces = operands[unpacks ? 0 : 1].elements;
    if (!mnemonic.allTaken() || pieces.size() > 4 || pieces.size() < 2 ||
        (!unpacks && operands[0].kind != Operand::reg))
      return at("unknown instruction");
    uint32_t pieceBytes = bytesOf(type) / pieces.size();
    Type pieceType = pieceBytes == 2 ? Type::b16 : Type::b32;
    in.run = unpacks ? unpackHandler(pieceBytes, bytesOf(type)) : packHandler(pieceBytes, bytesOf(type));
    if (!in.run)
      return at("unknown instruction");
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (unpacks && pieces[i].kind == Operand::sink)
        continue;
      LLMC_RETURN_IF_ERROR(unpacks ? placeResult(in, i, pieces[i], pieceType, false)
                                   : placeSource(in.src[i], pieces[i], pieceType, false));
    }
    return unpacks ? placeSource(in.src[0], operands[1], type, false) : placeResult(in, 0, operands[0], type, false);
  }

  Status decodeMemory(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
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
      return at("unknown instruction");
    in.elementBytes = bytesOf(type);
    in.signExtends = isSigned(type);
    in.kind = InstructionKind::memory;
    in.run = isLoad ? loadHandler() : storeHandler();
    LLMC_RETURN_IF_ERROR(decodeAddress(in, operands[isLoad ? 1 : 0]));
    return decodeElements(in, operands[isLoad ? 0 : 1], type, isLoad);
  }

  Status decodeElements(Instruction &in, const Operand &operand, Type type, bool isLoad) {
    bool isVector = operand.kind == Operand::vector;
    if (isVector ? operand.elements.size() != in.numElements : in.numElements != 1)
      return at(fmt::format("{} elements expected", in.numElements));
    in.laneBytes = 0;
    for (size_t i = 0; i < in.numElements; ++i) {
      const Operand &element = isVector ? operand.elements[i] : operand;
      if (element.kind == Operand::sink && isLoad)
        continue;
      uint32_t bytes = std::max<uint32_t>(in.elementBytes, 2);
      if (element.kind == Operand::reg) {
        if (element.place.isPredicate || element.place.bytes < in.elementBytes)
          return at("a register too narrow for its element");
        bytes = element.place.bytes;
        in.dst[i] = element.place.slot;
      } else if (isLoad) {
        return at("a result must be a register");
      } else {
        LLMC_RETURN_IF_ERROR(placeSource(in.dst[i], element, type, false));
      }
      if (in.laneBytes != 0 && in.laneBytes != bytes)
        return at("registers of one width expected");
      in.laneBytes = bytes;
    }
    return {};
  }

  Status decodeAddress(Instruction &in, const Operand &operand) {
    if (operand.kind != Operand::address)
      return at("an address in brackets expected");
    in.immediate = static_cast<int64_t>(operand.value);
    if (in.space == Space::param) {
      auto found = symbols.find(operand.text);
      if (operand.hasBaseRegister || found == symbols.end() || found->second.space != Space::param)
        return at("the name of a parameter expected");
      uint64_t bytes = uint64_t(in.elementBytes) * in.numElements;
      if (operand.value > found->second.bytes || bytes > found->second.bytes - operand.value)
        return at("reads beyond the parameter");
      in.immediate += static_cast<int64_t>(found->second.address);
      in.run = loadParameterHandler();
      return {};
    }
    if (operand.hasBaseRegister) {
      if (operand.place.bytes != 8 && operand.place.bytes != 4)
        return at("an address register has 8 or 4 bytes");
      in.addressBytes = operand.place.bytes;
      in.src[0] = operand.place.slot;
      return {};
    }
    Operand base{.kind = operand.text.empty() ? Operand::integer : Operand::symbol, .text = operand.text};
    return placeSource(in.src[0], base, Type::u64, false);
  }

  Status resolveBranches() {
    for (const Branch &branch : branches) {
      auto found = labels.find(branch.label);
      if (found == labels.end())
        return Error{fmt::format("PTX line {}: bra: unknown label {}", branch.line, branch.label)};
      kernel.code[branch.index].immediate = static_cast<int64_t>(found->second);
    }
    return {};
  }

  /// Special registers, constants, registers: their sizes are known now.
  void placeSlots() {
    kernel.firstRegister = kSpecialBytes + kernel.constants.size();
    kernel.fileBytes = kernel.firstRegister + scopes.bytes();
    auto place = [&](uint32_t &slot) {
      if (slot == kNoSlot)
        return;
      slot = slot & kConstantTag  ? kSpecialBytes + (slot & ~kConstantTag)
             : slot & kSpecialTag ? slot & ~kSpecialTag
                                  : kernel.firstRegister + slot;
    };
    for (Instruction &in : kernel.code) {
      for (uint32_t &slot : in.dst)
        place(slot);
      for (uint32_t &slot : in.src)
        place(slot);
      if (in.guard != Guard::none)
        place(in.guardSlot);
    }
  }

  struct Branch {
    size_t index;
    std::string label;
    uint32_t line;
  };
  TokenCursor cursor;
  const SymbolTable &symbols;
  Kernel &kernel;
  RegisterScopes scopes;
  std::map<std::string, size_t, std::less<>> labels;
  std::vector<Branch> branches;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> constants;
  uint32_t line = 0;
  std::string instructionText;
};

} // namespace

Status decodeBody(std::span<const Token> body, const SymbolTable &symbols, Kernel &kernel) {
  return BodyDecoder(body, symbols, kernel).run();
}

} // namespace llmc::cudasim
