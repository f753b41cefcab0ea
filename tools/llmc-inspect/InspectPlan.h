// Opens a plan and says what is in it.
#pragma once

#include "runtime/Status.h"

#include <string>

namespace llmc {

struct InspectOptions {
  std::string plan;
  std::string device = "this";
  std::string isa;     ///< "" or the one target that is shown
  std::string program; ///< "" or the program whose kernels are listed
  std::string profile; ///< "" or a trace of llmc-run
  std::string diff;    ///< "" or another plan
  std::string html;    ///< "" or the page to write
  bool isJson = false;
  bool isWhole = false; ///< every launch and fusion
};

/// Prints the report (or the JSON, or the difference) on standard output, or writes the page.
Status inspectPlan(const InspectOptions &options);

} // namespace llmc
