// What the tests of raising share: a program in small ops with what it should become, and the means to write and check
// one.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace llmc::testing {

struct RaiseCase {
  std::string name;
  std::string arguments;
  std::string result;    ///< the type of %y, what the program returns
  std::string body;      ///< defines %y
  std::string expected;  ///< in the printed result
  std::string forbidden; ///< not in it; empty: no such thing
  std::string variables; ///< before the program
};

/// How gtest prints and names a case.
inline void PrintTo(const RaiseCase &raiseCase, std::ostream *stream) { *stream << raiseCase.name; }
inline std::string caseName(const ::testing::TestParamInfo<RaiseCase> &info) { return info.param.name; }

/// Runs the program on the host in f64 before and after the graph-level passes: both must agree, and what it became
/// must be what is expected.
void expectRaised(const RaiseCase &raiseCase);

//===-- Writing programs; shapes end in x ("2x3x"), values are named without %

std::string type(const std::string &shape, const std::string &element = "f64");
/// %name = llmc.op operands {attributes} : (types) -> type
std::string op(const std::string &name, const std::string &opName, const std::string &operands,
               const std::string &types, const std::string &result, const std::string &attributes = "");
std::string constant(const std::string &name, const std::string &number, const std::string &shape = "");
std::string reshape(const std::string &name, const std::string &a, const std::string &from, const std::string &to);
std::string transpose(const std::string &name, const std::string &a, const std::string &from, const std::string &to,
                      const std::string &order);
std::string binary(const std::string &name, const std::string &opName, const std::string &a, const std::string &b,
                   const std::string &aShape, const std::string &bShape, const std::string &result);
std::string select(const std::string &name, const std::string &condition, const std::string &a, const std::string &b,
                   const std::string &types, const std::string &result);

} // namespace llmc::testing
