// Statement by statement. What differs from the plain pattern (results, then operands) has a function of its own:
// branches, barriers, packing; memory has a file.
#include "tests/cudasim/Placement.h"

#include "tests/cudasim/Context.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

class BodyDecoder {
public:
  BodyDecoder(std::span<const Token> body, const SymbolTable &symbols, Kernel &kernel)
      : cursor(body), kernel(kernel), placement(symbols, kernel) {}

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
    placement.line = in.line = cursor.peek().line;
    placement.instruction = "@";
    if (cursor.accept("@")) {
      in.guard = cursor.accept("!") ? Guard::whenFalse : Guard::whenTrue;
      const Register *guard = scopes.find(cursor.next().text);
      if (!guard || !guard->isPredicate)
        return placement.error("a guard must be a predicate");
      in.guardSlot = guard->slot;
    }
    const Token &name = cursor.next();
    if (name.kind != TokenKind::word)
      return Error{fmt::format("PTX line {}: instruction expected, found '{}'", in.line, name.text)};
    placement.instruction = name.text;
    std::vector<Operand> operands;
    while (!cursor.accept(";")) {
      if (!operands.empty() && !cursor.accept(","))
        return placement.error(fmt::format("';' expected, found '{}'", cursor.peek().text));
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
      return decodeMemory(placement, in, mnemonic, operands);
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
    return operands.empty() && (mnemonic.allTaken() || Mnemonic(mnemonic).take("uni"))
               ? Status()
               : placement.error("unknown instruction");
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
        return placement.error(
            fmt::format("{} operands expected, {} found", form->dst.size() + form->src.size(), operands.size()));
      in.run = form->run;
      in.immediate = form->immediate;
      // A warp's exchange can find lanes missing.
      in.kind = family != warpForm  ? InstructionKind::lanes
                : form->src.empty() ? InstructionKind::memory
                                    : InstructionKind::exchange;
      for (size_t i = 0; i < form->dst.size(); ++i)
        LLMC_RETURN_IF_ERROR(placement.placeResult(in, i, operands[i], form->dst[i]));
      for (size_t i = 0; i < form->src.size(); ++i)
        LLMC_RETURN_IF_ERROR(
            placement.placeSource(in.src[i], operands[form->dst.size() + i], form->src[i], form->relaxed));
      return {};
    }
    return placement.error("unknown instruction");
  }

  Status decodeBranch(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    mnemonic.take("uni");
    if (!mnemonic.allTaken() || operands.size() != 1 || operands[0].kind != Operand::symbol)
      return placement.error("unknown instruction");
    in.kind = InstructionKind::branch;
    branches.push_back({kernel.code.size(), std::string(operands[0].text), in.line});
    return {};
  }

  Status decodeBarrier(Instruction &in, Mnemonic &mnemonic, const Operand &operand) {
    mnemonic.take("cta");
    mnemonic.take("aligned");
    if (!mnemonic.take("sync") || !mnemonic.allTaken() || operand.kind != Operand::integer)
      return placement.error("unknown instruction");
    in.kind = InstructionKind::barrier;
    in.immediate = static_cast<int64_t>(operand.value);
    return {};
  }

  Status decodeAddressConversion(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    bool to = mnemonic.take("to");
    std::string_view space = mnemonic.takeOneOf({"global", "const", "shared", "local"});
    if (space.empty() || mnemonic.takeType() != Type::u64 || !mnemonic.allTaken() || operands.size() != 2)
      return placement.error("unknown instruction");
    auto window = static_cast<int64_t>(space == "shared" ? kSharedWindow : space == "local" ? kLocalWindow : 0);
    in.immediate = to ? -window : window;
    in.run = convertAddressHandler();
    LLMC_RETURN_IF_ERROR(placement.placeResult(in, 0, operands[0], Type::u64));
    return placement.placeSource(in.src[0], operands[1], Type::u64);
  }

  Status decodePacking(Instruction &in, Mnemonic &mnemonic, const std::vector<Operand> &operands) {
    Type type = mnemonic.takeType();
    bool unpacks = operands[0].kind == Operand::vector;
    const std::vector<Operand> &pieces = operands[unpacks ? 0 : 1].elements;
    if (!mnemonic.allTaken() || pieces.size() > 4 || pieces.size() < 2 ||
        (!unpacks && operands[0].kind != Operand::reg))
      return placement.error("unknown instruction");
    uint32_t pieceBytes = bytesOf(type) / pieces.size();
    Type pieceType = pieceBytes == 2 ? Type::b16 : Type::b32;
    in.run = unpacks ? unpackHandler(pieceBytes, bytesOf(type)) : packHandler(pieceBytes, bytesOf(type));
    if (!in.run)
      return placement.error("unknown instruction");
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (unpacks && pieces[i].kind == Operand::sink)
        continue;
      LLMC_RETURN_IF_ERROR(unpacks ? placement.placeResult(in, i, pieces[i], pieceType)
                                   : placement.placeSource(in.src[i], pieces[i], pieceType));
    }
    return unpacks ? placement.placeSource(in.src[0], operands[1], type)
                   : placement.placeResult(in, 0, operands[0], type);
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
  Kernel &kernel;
  RegisterScopes scopes;
  std::map<std::string, size_t, std::less<>> labels;
  std::vector<Branch> branches;
  Placement placement;
};

} // namespace

Status decodeBody(std::span<const Token> body, const SymbolTable &symbols, Kernel &kernel) {
  return BodyDecoder(body, symbols, kernel).run();
}

} // namespace llmc::cudasim
