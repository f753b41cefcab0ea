// Large constants are left out of what is printed: weights would bury the ops.
#include "tools/llmc-compile/PassWatch.h"

#include "runtime/AtomicFile.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/Pass.h"

#include <filesystem>
#include <fmt/format.h>

using namespace mlir;

namespace llmc {

static constexpr int64_t kMaxPrintedElements = 16;

static Status writeWhole(const std::string &path, const std::string &text) {
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

static StringRef passName(Pass *pass) {
  StringRef name = pass->getArgument();
  name.consume_front("llmc-");
  return name;
}

void PassWatch::runBeforePass(Pass *pass, Operation *) {
  record.current = passName(pass).str();
  start = std::chrono::steady_clock::now();
}

void PassWatch::runAfterPass(Pass *pass, Operation *op) {
  record.seconds[passName(pass)] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  dump(passName(pass), op);
}

void PassWatch::dump(StringRef pass, Operation *module) {
  bool isShown = llvm::is_contained(options.after, pass);
  if (options.folder.empty() && !isShown)
    return;
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(kMaxPrintedElements)
      .elideLargeResourceString(kMaxPrintedElements)
      .enableDebugInfo(true, /*prettyForm=*/false) // the pretty form can't be read back
      .useLocalScope();
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, flags);
  if (isShown)
    llvm::errs() << "// -----// after " << pass << " //----- //\n" << text << "\n";
  if (options.folder.empty() || !record.dumpStatus)
    return;
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  std::string path = fmt::format("{}/{:02}-{}.mlir", options.folder, number++, pass.str());
  record.dumpStatus = writeWhole(path, text + "\n");
}

} // namespace llmc
