// From a model file to a plan file: import, passes, code, report.
#pragma once

#include "frontend/OnnxImporter.h"
#include "runtime/Status.h"
#include "tools/Outputs.h"

namespace llmc {

struct CompileOptions {
  ImportOptions import;
  std::string output;
  std::string precision = "fp32"; ///< what the plan says of itself
  std::string optimizer = "adamw";
  double bucketMib = 25;               ///< gradients that travel between ranks in one message
  bool hasCpu = true, hasCuda = false; ///< targets of the plan
  std::vector<std::string> isas;       ///< names of the CPU levels to compile for; empty: all
  std::vector<std::string> disabled;   ///< passes to leave out
  std::string dumpFolder;              ///< "" or where each pass's result goes
  std::vector<std::string> dumpAfter;  ///< passes whose result is printed
  std::string remarks;                 ///< "" or the file of remarks
  std::string report;                  ///< "" or the HTML page to write
  std::string checkNumerics;           ///< "" or a safetensors file with the batch that the step is checked on
  bool isVerbose = false;              ///< the whole ledger and all remarks on screen
};

/// The files that a compilation writes, but for --dump-ir's.
std::vector<NamedFile> outputsOf(const CompileOptions &options);

/// Compiles a model and says on standard output what it made. The plan appears whole or not at all.
Status compileModel(const CompileOptions &options);

} // namespace llmc
