// One pass over the text, comments left out.
#include "tests/cudasim/Lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

bool startsWord(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continuesWord(char c) { return startsWord(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (skipBlanks(), at < text.size()) {
      size_t begin = at;
      Token token{.line = line};
      char c = text[at];
      if (startsWord(c)) {
        scanWord();
        token.kind = TokenKind::word;
      } else if (std::isdigit(static_cast<unsigned char>(c))) {
        if (!scanNumber(token))
          return Error{fmt::format("PTX line {}: number expected, found '{}'", line, text.substr(begin, 24))};
      } else if (c == '"') {
        at = std::min(text.find('"', at + 1), text.size() - 1) + 1;
        token.kind = TokenKind::string;
      } else if (std::string_view("{}[]()<>,;:@!+-=|*").find(c) != std::string_view::npos) {
        ++at;
        token.kind = TokenKind::punctuation;
      } else {
        return Error{fmt::format("PTX line {}: unknown character '{}'", line, c)};
      }
      token.text = text.substr(begin, at - begin);
      tokens.push_back(token);
    }
    tokens.push_back({.line = line});
    return tokens;
  }

private:
  void skipBlanks() {
    while (at < text.size()) {
      std::string_view rest = text.substr(at);
      if (rest.starts_with("//")) {
        at = std::min(text.find('\n', at), text.size());
      } else if (rest.starts_with("/*")) {
        size_t stop = std::min(text.find("*/", at), text.size() - 2) + 2;
        line += std::count(text.begin() + at, text.begin() + stop, '\n');
        at = stop;
      } else if (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '\0') {
        line += text[at] == '\n';
        ++at;
      } else {
        return;
      }
    }
  }

  /// `L1::no_allocate` is one suffix, so two colons belong to the word.
  void scanWord() {
    while (at < text.size() && (continuesWord(text[at]) || (text.substr(at).starts_with("::"))))
      at += text[at] == ':' ? 2 : 1;
  }

  bool scanNumber(Token &token) {
    std::string_view rest = text.substr(at);
    int base = 10;
    size_t skip = 0;
    token.kind = TokenKind::integer;
    if (rest.size() > 1 && rest[0] == '0' && std::isalpha(static_cast<unsigned char>(rest[1]))) {
      switch (std::tolower(rest[1])) {
      case 'x':
        base = 16;
        break;
      case 'b':
        base = 2;
        break;
      case 'f':
        base = 16;
        token.kind = TokenKind::float32;
        break;
      case 'd':
        base = 16;
        token.kind = TokenKind::float64;
        break;
      default:
        return false;
      }
      skip = 2;
    }
    auto [stop, error] = std::from_chars(rest.data() + skip, rest.data() + rest.size(), token.value, base);
    if (error != std::errc())
      return false;
    at += stop - rest.data();
    if (base == 10 && at < text.size() && text[at] == '.') { // a version, 7.0; floats are written as bits
      token.kind = TokenKind::word;
      scanWord();
      return true;
    }
    if (at < text.size() && text[at] == 'U')
      ++at;
    return at == text.size() || !continuesWord(text[at]);
  }

  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
};

} // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Scanner(text).run(); }

} // namespace llmc::cudasim
