// How long an all-reduce takes between real processes of this machine, by shared memory and by TCP: the best of some
// rounds, and the CPU time of one rank for one of them, which is what ranks that compute have to pay.
#include "tests/backend/comm/RankProcesses.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
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

std::string measure(CommApi &comm, uint64_t bytes, ElementType type) {
  std::vector<std::byte> buffer(bytes, std::byte{1});
  int rounds = static_cast<int>(std::clamp<uint64_t>((1 << 30) / bytes, 5, 200));
  double best = 1e9, cpu = 0;
  for (int round = -1; round < rounds; ++round) {
    if (!comm.allGather({}, {}, "start"))
      return "failed";
    double cpuBefore = cpuMs();
    auto begin = std::chrono::steady_clock::now();
    Result<uint64_t> ticket = comm.startAllReduce(buffer, type, "bench");
    if (!ticket || !comm.wait(*ticket))
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
  for (int ranks : {2, 4})
    for (ElementType type : {ElementType::f32, ElementType::bf16})
      for (uint64_t bytes : {uint64_t{64} << 10, uint64_t{25} << 20, uint64_t{500} << 20})
        for (TransportChoice choice : {TransportChoice::sharedMemory, TransportChoice::tcp}) {
          test::RankSetup setup{ranks, choice, std::chrono::milliseconds(30000), {}};
          auto outcomes =
              test::runRanks(setup, [&](Rendezvous &, CommApi &comm) { return test::measure(comm, bytes, type); }, 120);
          fmt::print("{} ranks, {:4}, {:8.3f} MiB, {:13}: {}\n", ranks, elementTypeName(type),
                     static_cast<double>(bytes) / (1 << 20), choice == TransportChoice::tcp ? "TCP" : "shared memory",
                     outcomes[0].text);
          std::fflush(stdout);
        }
  return 0;
}
