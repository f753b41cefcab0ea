// What travels between ranks, and how much there is to compute while it does.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// The messages of the first program that has some, in their order: parts, bytes, and the launches and operations
/// between a message's start and its wait. At most `most` lines. Empty where no program has any.
std::string collectiveTable(const TargetPrograms &target, size_t most);

} // namespace llmc
