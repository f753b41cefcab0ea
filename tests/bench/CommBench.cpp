// How long collectives take between real processes of this machine, by shared memory and by TCP: the best of some
// rounds, and the CPU time of one rank for one of them, which is what ranks that compute have to pay.
#include "tests/backend/comm/RankProcesses.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <sys/resource.h>

namespace llmc::test {
namespace {

double cpuMs() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  auto ms = [](timeval time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

Status allReduce(CommApi &comm, std::span<std::byte> buffer, ElementType type) {
  Result<uint64_t> ticket = comm.startAllReduce(buffer, type, "bench");
  return ticket ? comm.wait(*ticket) : ticket.status();
}

/// The small message around a step.
Status gather(CommApi &comm, std::span<std::byte> buffer) {
  std::vector<std::byte> all(buffer.size() * static_cast<size_t>(comm.worldSize()));
  return comm.allGather(buffer, all, "bench");
}

std::string measure(CommApi &comm, uint64_t bytes, const std::function<Status(CommApi &, std::span<std::byte>)> &call) {
  std::vector<std::byte> buffer(bytes, std::byte{1});
  int rounds = static_cast<int>(std::clamp<uint64_t>((1 << 30) / bytes, 5, 200));
  double best = 1e9, cpu = 0;
  for (int round = -1; round < rounds; ++round) {
    if (!comm.allGather({}, {}, "start"))
      return "failed";
    double cpuBefore = cpuMs();
    auto begin = std::chrono::steady_clock::now();
    if (!call(comm, buffer))
      return "failed";
    if (round < 0) // pages and connections warm up
      continue;
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    cpu += cpuMs() - cpuBefore;
  }
  return fmt::format("{:9.3f} ms, {:9.3f} ms CPU a rank", best, cpu / rounds);
}

} // namespace
} // namespace llmc::test

int main() {
  using namespace llmc;
  using Bytes = std::span<std::byte>;
  struct Case {
    const char *name;
    std::vector<uint64_t> sizes;
    std::function<Status(CommApi &, Bytes)> call;
  };
  const uint64_t kib = 1 << 10, mib = 1 << 20;
  const Case cases[] = {
      {"all_reduce f32",
       {64 * kib, 25 * mib, 500 * mib},
       [](CommApi &comm, Bytes bytes) { return test::allReduce(comm, bytes, ElementType::f32); }},
      {"all_reduce bf16",
       {64 * kib, 25 * mib, 500 * mib},
       [](CommApi &comm, Bytes bytes) { return test::allReduce(comm, bytes, ElementType::bf16); }},
      {"broadcast", {500 * mib}, [](CommApi &comm, Bytes bytes) { return comm.broadcast(bytes, 0, "bench"); }},
      {"all_gather", {32}, [](CommApi &comm, Bytes bytes) { return test::gather(comm, bytes); }}};
  for (int ranks : {2, 4})
    for (const Case &one : cases)
      for (uint64_t bytes : one.sizes)
        for (TransportChoice choice : {TransportChoice::sharedMemory, TransportChoice::tcp}) {
          test::RankSetup setup{ranks, choice, std::chrono::milliseconds(30000), {}};
          auto outcomes = test::runRanks(
              setup, [&](Rendezvous &, CommApi &comm) { return test::measure(comm, bytes, one.call); }, 120);
          fmt::print("{} ranks, {:15}, {:8.3f} MiB, {:13}: {}\n", ranks, one.name,
                     static_cast<double>(bytes) / (1 << 20), choice == TransportChoice::tcp ? "TCP" : "shared memory",
                     outcomes[0].text);
          std::fflush(stdout);
        }
  return 0;
}
