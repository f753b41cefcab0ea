// NVIDIA's assembler on a text of PTX, to hold generated kernels to what it says.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

namespace llmc::test {

/// The architectures that every kernel must assemble for.
inline constexpr const char *kPtxasArchitectures[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

inline size_t numOccurrences(std::string_view words, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

/// What ptxas says of `ptx` for an architecture, unless that is: done, and no function needs local memory or spills.
inline std::string ptxasProblem(const std::string &ptxas, const std::string &ptx, const std::string &architecture) {
  char path[] = "/tmp/llmc-ptxas-XXXXXX";
  int file = mkstemp(path);
  if (file < 0)
    return "cannot make a temporary file";
  close(file);
  std::ofstream(path) << ptx;
  std::string command = ptxas + " -v -arch=" + architecture + " -o /dev/null " + path + " 2>&1", said;
  FILE *pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof(buffer), pipe))
    said.append(buffer, count);
  bool isDone = pclose(pipe) == 0;
  unlink(path);
  size_t numClean = numOccurrences(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", said);
  bool isClean = numClean > 0 && numClean == numOccurrences("bytes stack frame", said);
  return isDone && isClean ? "" : said;
}

} // namespace llmc::test
