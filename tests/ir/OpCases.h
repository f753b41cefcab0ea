// Small instances of ops, one list for all tests of what ops promise: odd shapes, broadcasting, every flag.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace llmc::testing {

struct OpCase {
  std::string name;      ///< unique; names the test
  std::string arguments; ///< a program's: "%a: tensor<2x3xf64>"
  std::string statement; ///< the op: "%y = llmc.neg %a : tensor<2x3xf64>"
  /// Values that the arguments are drawn from, evenly; integers with both bounds.
  double low = -1.5, high = 1.5;
  int64_t integerLow = 0, integerHigh = 1;
  std::set<unsigned> constantOperands = {}; ///< float operands that no gradient flows to
  std::set<unsigned> hiddenResults = {};    ///< results that a loss never depends on

  /// "llmc.neg"
  std::string opName() const;
};

/// All cases.
const std::vector<OpCase> &opCases();

} // namespace llmc::testing
