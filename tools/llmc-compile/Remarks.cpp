// A remark's kind stands before its message ("declined: …"); without one it tells of something done.
#include "tools/llmc-compile/Remarks.h"

#include "backend/PlanEmitter.h"
#include "passes/Remark.h"
#include "runtime/AtomicFile.h"

#include "llvm/Support/JSON.h"

using namespace mlir;

namespace llmc {

DiagnosticRecord::DiagnosticRecord(MLIRContext &context, const std::string &currentPass)
    : currentPass(currentPass), handler(&context, [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {
  context.printOpOnDiagnostic(false);
}

static Remark makeRemark(const std::string &pass, const Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  StringRef message = text;
  std::string kind = "applied";
  for (StringRef word : {"applied", "declined", "info"})
    if (message.consume_front((word + ": ").str()))
      kind = word.str();
  Location location = diagnostic.getLocation();
  return {pass, programOfRemark(location).str(), nodeNames(location), kind, message.str()};
}

LogicalResult DiagnosticRecord::handle(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
    remarks.push_back(makeRemark(currentPass, diagnostic));
    return success();
  }
  if (diagnostic.getSeverity() == DiagnosticSeverity::Note)
    return success();
  std::string message = diagnostic.str(), node = nodeNames(diagnostic.getLocation());
  bool namesNode = node.empty() || message.find(node) != std::string::npos;
  std::string line = namesNode ? message : "node '" + node + "': " + message;
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
    remarks.push_back({currentPass, programOfRemark(diagnostic.getLocation()).str(), node, "info", message});
    warnings.push_back(line);
    return success();
  }
  if (!errors.empty())
    errors += "\n";
  errors += line;
  return success();
}

Error DiagnosticRecord::error(const std::string &otherwise) const { return {errors.empty() ? otherwise : errors}; }

Status DiagnosticRecord::write(const std::string &path) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const Remark &remark : remarks) {
    llvm::json::OStream json(stream);
    json.object([&] {
      json.attribute("pass", llvm::json::fixUTF8(remark.pass));
      json.attribute("program", remark.program);
      json.attribute("node", llvm::json::fixUTF8(remark.node));
      json.attribute("kind", remark.kind);
      json.attribute("message", llvm::json::fixUTF8(remark.message));
    });
    stream << "\n";
  }
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

} // namespace llmc
