// /proc says what a process is doing and when it began: with its number that names it once and for all.
#include "runtime/RankProcess.h"

#include "runtime/Socket.h"

#include <charconv>
#include <csignal>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmc {

std::string machineId() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  for (const char *name : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    char link[64] = "";
    (void)!::readlink(name, link, sizeof(link) - 1);
    id += std::string(" ") + link;
  }
  return fmt::format("{} {}", id, ::geteuid());
}

namespace {

/// Of proc(5)'s stat.
struct ProcessFacts {
  char state = 0; ///< 'T': stopped by a signal; 0: no such process
  std::string start;
};

ProcessFacts readFacts(int pid) {
  std::string text;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), text);
  size_t name = text.rfind(')'); // the name may hold anything
  if (name == std::string::npos)
    return {};
  constexpr int kState = 3, kStart = 22; // numbers of fields
  std::istringstream fields(text.substr(name + 1));
  ProcessFacts facts;
  std::string field;
  for (int number = kState; number <= kStart && fields >> field; ++number)
    if (number == kState)
      facts.state = field.front();
    else if (number == kStart)
      facts.start = field;
  return facts;
}

} // namespace

std::string describeProcess() { return fmt::format("{} {} {}", ::getpid(), readFacts(::getpid()).start, machineId()); }

bool isStoppedProcess(int pid) { return readFacts(pid).state == 'T'; }

void endIfStopped(const std::string &process) {
  int pid = 0;
  if (std::from_chars(process.data(), process.data() + process.size(), pid).ec != std::errc() || pid <= 1)
    return;
  // Opened before it is looked at: from here on the number cannot become another process's.
  Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ProcessFacts facts = readFacts(pid);
  if (handle && facts.state == 'T' && process == fmt::format("{} {} {}", pid, facts.start, machineId()))
    (void)::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
}

} // namespace llmc
