// What travels between ranks, and how much there is to compute while it does.
#pragma once

#include "tools/report/PlanJson.h"

namespace llmc {

/// A message of a program: from the launch that starts it to the one that waits for it.
struct Collective {
  int64_t position = 0;          ///< in the order of all ranks
  const Launch *start = nullptr; ///< its operands are the parts
  size_t startLaunch = 0, waitLaunch = 0;
  uint64_t bytes = 0;        ///< that each rank brings
  double flopsMeanwhile = 0; ///< of the launches between the two
  size_t launchesMeanwhile() const { return waitLaunch - startLaunch - 1; }
};

/// Those of a program, in their order.
std::vector<Collective> collectivesOf(const Program &program);

/// A program's messages as a member of its JSON; with measured times, how long each was waited for.
OrderedJson collectivesJson(const PlanView &view, const Program &program);

/// The messages of the first program that has some: parts, bytes, and the launches and operations between a message's
/// start and its wait. At most `most` lines. Empty where no program has any.
std::string collectiveTable(const TargetPrograms &target, size_t most);

} // namespace llmc
