// A small plan made by hand: a table of ids to logits with a loss, one target of the device "fake" with all programs.
// The launches are Zero and Copy only; what a training step means is up to the test's device.
#pragma once

#include "runtime/PlanWriter.h"

#include <string>
#include <vector>

namespace llmc::test {

struct TinyPlan {
  TinyPlan();
  /// Pieces of the weights section, code and model; valid as long as this object.
  PlanPayload payload() const;
  /// The entry of a name in plan.state.
  StateEntry &entry(const std::string &name);

  Plan plan;
  std::vector<float> table;    ///< parameter "table" (5, 4)
  std::vector<float> bias;     ///< parameter "bias" (4)
  std::vector<float> mask;     ///< constant "mask" (3)
  std::vector<std::byte> code; ///< 100 bytes
  std::string model;           ///< source model without payloads
};

/// A folder of this test's own, removed with it.
class TestFolder {
public:
  TestFolder();
  ~TestFolder();
  std::string path(const std::string &name) const { return folder + "/" + name; }
  /// Writes a file with this content and returns its path.
  std::string write(const std::string &name, std::string_view content) const;

private:
  std::string folder;
};

/// A whole file.
std::string readFile(const std::string &path);

} // namespace llmc::test
