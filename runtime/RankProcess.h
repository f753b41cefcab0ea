// A rank's process as the other ranks of its machine know it. A stopped process cannot end itself, whatever it was told
// before: once the run has failed the others end it, where no parent does.
#pragma once

#include <string>

namespace llmc {

/// The same text in all processes that can share memory, and in no others: machine, user, namespaces.
std::string machineId();

/// Names this process to others: its machine, number and start.
std::string describeProcess();

/// True for a process of this machine that a signal stopped and that may be continued; not for one that a debugger
/// holds.
bool isStoppedProcess(int pid);

/// Kills the process that describeProcess() named so, if it is one of this machine and is stopped. Another that has got
/// its number since is left alone.
void endIfStopped(const std::string &process);

} // namespace llmc
