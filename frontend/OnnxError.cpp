// Names of a model are anybody's bytes: what is printed of them is one line of printable characters.
#include "frontend/OnnxError.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llmc {

InFlightDiagnostic fileError(MLIRContext *context, StringRef path) {
  return std::move(emitError(UnknownLoc::get(context)) << path << ": ");
}

std::string inQuotes(StringRef name) {
  constexpr size_t kLongest = 100;
  std::string text = "'";
  llvm::raw_string_ostream stream(text);
  llvm::printEscapedString(name.take_front(kLongest), stream);
  stream << (name.size() > kLongest ? "...'" : "'");
  return text;
}

} // namespace llmc
