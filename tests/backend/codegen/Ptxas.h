// NVIDIA's assembler on a text of PTX, to hold generated kernels to what it says.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace llmc::test {

/// The architectures that every kernel must assemble for.
inline constexpr const char *kPtxasArchitectures[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

/// What ptxas says that is no praise: errors, and kernels with a stack frame or spills, each with its name.
inline std::string complaints(const std::string &said) {
  std::istringstream lines(said);
  std::string line, kernel, found;
  size_t numFrames = 0;
  while (std::getline(lines, line)) {
    bool isFrame = line.find("bytes stack frame") != line.npos;
    numFrames += isFrame;
    if (line.find("Function properties for") != line.npos)
      kernel = line;
    else if (isFrame && line.find(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == line.npos)
      found += kernel + "\n" + line + "\n";
    else if (!isFrame && !line.starts_with("ptxas info") && line.find("registers") == line.npos)
      found += line + "\n";
  }
  return numFrames == 0 && found.empty() ? "no kernels: " + said : found;
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
  int status = pclose(pipe);
  unlink(path);
  std::string found = complaints(said);
  return status == 0 ? found : "status " + std::to_string(status) + ": " + found;
}

} // namespace llmc::test
