// Where two steps that end differently begin to differ: the first op of the optimized one whose result departs.
#pragma once

#include "runtime/Plan.h"
#include "tools/llmc-compile/NumericsBound.h"

#include <string>

namespace llmc {

struct NumericsComparison;

/// The first op whose result departs.
struct NumericsDeparture {
  std::string nodes;     ///< of the result
  std::string kernel;    ///< and the nodes of the whole launch, where they are more
  std::string shape;     ///< "(2, 3) bf16"
  std::string index;     ///< "[1, 2]": the entry that departs most
  size_t launch = 0;     ///< 1-based
  Difference difference; ///< at that entry
  std::string unchecked; ///< nodes of operands without a counterpart: they may be the cause; or ""
};

/// Of a comparison in which something departs; `program` is the optimized step's.
NumericsDeparture blame(const NumericsComparison &comparison, const Program &program);

} // namespace llmc
