// A module: its variables, its kernels with parameters and shared memory. Functions to call are not supported: our
// kernels have none, and LLVM inlines.
#include "tests/cudasim/Operands.h"

#include "tests/cudasim/Memory.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace llmc::cudasim {

class ModuleParser {
public:
  ModuleParser(const std::vector<Token> &tokens, Memory &memory) : tokens(tokens), cursor(tokens), memory(memory) {}

  Result<Module> run() {
    while (!cursor.done())
      LLMC_RETURN_IF_ERROR(item());
    return std::move(module);
  }

private:
  Error at(const Token &token, const std::string &problem) const {
    return {fmt::format("PTX line {}: '{}': {}", token.line, token.text, problem)};
  }

  void skipLine() {
    uint32_t line = cursor.peek().line;
    while (!cursor.done() && cursor.peek().line == line)
      cursor.next();
  }

  Status item() {
    const Token &token = cursor.next();
    if (token.is(".version") || token.is(".address_size") || token.is(".file"))
      return skipLine(), Status();
    if (token.is(".target")) {
      module.target = cursor.peek().text;
      return skipLine(), Status();
    }
    if (token.is(".visible") || token.is(".weak") || token.is(".common") || token.is(".extern"))
      return {};
    if (token.is(".section")) {
      while (!cursor.done() && !cursor.accept("}"))
        cursor.next();
      return {};
    }
    if (token.is(".global") || token.is(".const"))
      return moduleVariable(token.is(".const"));
    if (token.is(".shared")) {
      Result<Variable> variable = declaration(cursor);
      LLMC_RETURN_IF_ERROR(variable);
      sharedVariables.push_back(*variable);
      return {};
    }
    if (token.is(".entry"))
      return entry();
    return at(token, "not supported in a module");
  }

  /// `.align 16 .b8 name[64] = {1, 2};` after the space; an open array has no bytes.
  Result<Variable> declaration(TokenCursor &cursor) {
    Variable variable;
    while (cursor.accept(".align"))
      variable.alignment = static_cast<uint32_t>(std::max<uint64_t>(1, cursor.next().value));
    const Token &typeToken = cursor.next();
    std::optional<Type> type = typeNamed(typeToken.text.substr(std::min<size_t>(1, typeToken.text.size())));
    if (!type || bytesOf(*type) == 0)
      return at(typeToken, "type expected");
    variable.alignment = std::max(variable.alignment, bytesOf(*type));
    variable.name = cursor.next().text;
    variable.bytes = bytesOf(*type);
    while (cursor.accept("[")) {
      uint64_t count = cursor.peek().is("]") ? 0 : cursor.next().value;
      if (count > (uint64_t(1) << 32) || !cursor.accept("]"))
        return at(cursor.peek(), "number of elements expected");
      variable.bytes *= count;
    }
    if (cursor.accept("="))
      LLMC_RETURN_IF_ERROR(initializer(cursor, variable, bytesOf(*type)));
    if (!cursor.accept(";"))
      return at(cursor.peek(), "; expected");
    return variable;
  }

  Status initializer(TokenCursor &cursor, Variable &variable, uint32_t elementBytes) {
    variable.initial.resize(variable.bytes);
    bool isList = cursor.accept("{");
    uint64_t offset = 0;
    do {
      bool negative = cursor.accept("-");
      const Token &token = cursor.next();
      bool isNumber =
          token.kind == TokenKind::integer || token.kind == TokenKind::float32 || token.kind == TokenKind::float64;
      if (!isNumber || offset + elementBytes > variable.bytes)
        return at(token, "initial value expected, as many as there are elements");
      uint64_t value = negative ? -token.value : token.value;
      std::memcpy(variable.initial.data() + offset, &value, elementBytes);
      offset += elementBytes;
    } while (isList && cursor.accept(","));
    return !isList || cursor.accept("}") ? Status() : at(cursor.peek(), "} expected");
  }

  Status moduleVariable(bool isConstant) {
    Result<Variable> variable = declaration(cursor);
    LLMC_RETURN_IF_ERROR(variable);
    uint64_t address = memory.allocate(variable->bytes, variable->name);
    // Like the driver: what has no initial value is zero.
    Allocation &made = *memory.find(address);
    std::memset(made.data, 0, variable->bytes);
    std::copy(variable->initial.begin(), variable->initial.end(), made.data);
    made.shadow.markInitialized(0, variable->bytes);
    made.isConstant = isConstant;
    module.variables[variable->name] = {address, variable->bytes};
    symbols[variable->name] = {Space::global, address, variable->bytes};
    return {};
  }

  Status parameters(Kernel &kernel, SymbolTable &local) {
    if (!cursor.accept("("))
      return {};
    while (!cursor.accept(")")) {
      cursor.accept(",");
      if (!cursor.accept(".param"))
        return at(cursor.peek(), ".param expected");
      const Token &typeToken = cursor.peek();
      uint32_t alignment = 1, bytes = 0;
      bool isPointer = false;
      for (;;) {
        const Token &word = cursor.next();
        if (word.is(".align")) {
          auto stated = static_cast<uint32_t>(cursor.next().value);
          alignment = isPointer ? alignment : stated; // behind .ptr it is the pointed-to memory's
        } else if (std::optional<Type> type = typeNamed(word.text.substr(std::min<size_t>(1, word.text.size()))))
          bytes = bytesOf(*type);
        else if (word.is(".ptr"))
          isPointer = true;
        else if (word.is(".global") || word.is(".shared") || word.is(".const"))
          continue;
        else {
          Parameter &parameter = kernel.parameters.emplace_back();
          parameter.name = word.text;
          break;
        }
      }
      Parameter &parameter = kernel.parameters.back();
      alignment = std::max(alignment, bytes);
      if (cursor.accept("[")) {
        bytes *= static_cast<uint32_t>(cursor.next().value);
        cursor.accept("]");
      }
      if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return at(typeToken, "parameter without a size");
      parameter.offset = (kernel.parameterBytes + alignment - 1) / alignment * alignment;
      parameter.bytes = bytes;
      kernel.parameterBytes = parameter.offset + bytes;
      local[parameter.name] = {Space::param, parameter.offset, bytes};
    }
    return {};
  }

  void directives(Kernel &kernel) {
    auto numbers = [&] {
      std::array<uint32_t, 3> values{1, 1, 1};
      for (uint32_t &value : values) {
        value = static_cast<uint32_t>(cursor.next().value);
        if (!cursor.accept(","))
          break;
      }
      return values;
    };
    while (!cursor.done() && !cursor.peek().is("{")) {
      const Token &word = cursor.next();
      if (word.is(".reqntid")) {
        kernel.requiredThreads = numbers();
      } else if (word.is(".maxntid")) {
        auto most = numbers();
        kernel.maxThreads = most[0] * most[1] * most[2];
      }
    }
  }

  Status entry() {
    Kernel kernel;
    kernel.name = cursor.next().text;
    SymbolTable local = symbols;
    LLMC_RETURN_IF_ERROR(parameters(kernel, local));
    directives(kernel);
    if (!cursor.accept("{"))
      return at(cursor.peek(), "body of a kernel expected");
    size_t begin = cursor.position();
    for (int depth = 1; depth > 0;) {
      if (cursor.done())
        return at(cursor.peek(), "the kernel's } is missing");
      const Token &token = cursor.next();
      depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    }
    std::span<const Token> body(tokens.data() + begin, cursor.position() - 1 - begin);
    LLMC_RETURN_IF_ERROR(layOut(body, kernel, local));
    LLMC_RETURN_IF_ERROR(decodeBody(body, local, kernel));
    std::string name = kernel.name;
    if (!module.kernels.emplace(name, std::move(kernel)).second)
      return Error{fmt::format("PTX: two kernels of the name {}", name)};
    return {};
  }

  /// Gives the kernel's shared and local variables their places: those declared inside, and the module's that it names.
  Status layOut(std::span<const Token> body, Kernel &kernel, SymbolTable &local) {
    std::set<std::string_view> named;
    std::vector<Variable> inside;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i].kind != TokenKind::word)
        continue;
      named.insert(body[i].text);
      bool isShared = body[i].is(".shared");
      if (!isShared && !body[i].is(".local"))
        continue;
      TokenCursor inner(body.subspan(i + 1));
      Result<Variable> variable = declaration(inner);
      LLMC_RETURN_IF_ERROR(variable);
      variable->space = isShared ? Space::shared : Space::local;
      inside.push_back(*variable);
    }
    for (const Variable &variable : sharedVariables)
      if (named.count(variable.name) != 0)
        inside.push_back(variable), inside.back().space = Space::shared;
    // Open arrays (dynamic shared memory) begin where the others end.
    std::stable_partition(inside.begin(), inside.end(), [](const Variable &variable) { return variable.bytes != 0; });
    for (const Variable &variable : inside) {
      uint32_t &used = variable.space == Space::shared ? kernel.staticSharedBytes : kernel.localBytes;
      used = (used + variable.alignment - 1) / variable.alignment * variable.alignment;
      local[variable.name] = {variable.space, used, variable.bytes};
      used += static_cast<uint32_t>(variable.bytes);
    }
    return {};
  }

  std::span<const Token> tokens;
  TokenCursor cursor;
  Memory &memory;
  Module module;
  SymbolTable symbols;
  std::vector<Variable> sharedVariables;
};

Result<Module> Module::load(std::string_view text, Memory &memory) {
  Result<std::vector<Token>> tokens = tokenize(text);
  if (!tokens)
    return tokens.error();
  return ModuleParser(*tokens, memory).run();
}

const Kernel *Module::find(const std::string &name) const {
  auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

std::pair<uint64_t, uint64_t> Module::variable(const std::string &name) const {
  auto found = variables.find(name);
  return found == variables.end() ? std::pair<uint64_t, uint64_t>() : found->second;
}

Result<std::vector<std::byte>> Kernel::packArguments(const std::vector<std::vector<std::byte>> &arguments) const {
  if (arguments.size() != parameters.size())
    return Error{fmt::format("{}: {} arguments for {} parameters", name, arguments.size(), parameters.size())};
  std::vector<std::byte> packed(parameterBytes);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].size() != parameters[i].bytes)
      return Error{fmt::format("{}: argument {} has {} bytes, its parameter {}", name, i, arguments[i].size(),
                               parameters[i].bytes)};
    std::memcpy(packed.data() + parameters[i].offset, arguments[i].data(), arguments[i].size());
  }
  return packed;
}

} // namespace llmc::cudasim
