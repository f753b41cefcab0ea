// Work on a device as operations with an order between them, run as late and in as unkind an order as that allows. Each
// operation knows by a vector clock what has ended before it began, so that a missing order is found in every schedule.
//
// A chain is what runs in order by itself: a stream, or a stream of a captured graph. Nothing runs until somebody
// waits.
#pragma once

#include "tests/cudasim/Fault.h"
#include "tests/cudasim/Shadow.h"

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace llmc::cudasim {

/// What an operation does, and, where it waits for another process, whether it may begin.
struct Work {
  using Run = std::function<std::optional<Fault>(const LaunchOrder &)>;
  Work(std::nullptr_t) {}
  template <typename F>
    requires std::is_invocable_r_v<std::optional<Fault>, F, const LaunchOrder &>
  Work(F run) : run(std::move(run)) {}
  Work(Run run, std::function<bool()> isReady) : run(std::move(run)), isReady(std::move(isReady)) {}

  Run run;
  std::function<bool()> isReady;
};

class Scheduler {
public:
  /// `idle` is called when all that is left waits for other processes.
  Scheduler(uint64_t seed, std::function<void()> idle) : idle(std::move(idle)), random(seed) {}

  uint32_t newChain();
  /// Appends an operation to its chain, behind those in `after` too and behind all that the host has waited for.
  uint32_t add(uint32_t chain, std::string name, std::vector<uint32_t> after, Work work);
  /// The last operation of a chain, 0 where there is none.
  uint32_t last(uint32_t chain) const { return chains[chain].last; }
  bool isDone(uint32_t op) const { return op == 0 || operations[op - 1].done; }

  /// Runs operations, not only the needed ones, until this one is done; what the host does next comes after it.
  std::optional<Fault> finish(uint32_t op);
  std::optional<Fault> finishAll();
  /// Runs some operations, waits for nobody: what a query does.
  std::optional<Fault> advance(uint32_t op);
  /// The operation's place in the order of execution, as a stand-in for time.
  uint64_t finishedAt(uint32_t op) const { return operations[op - 1].finishedAt; }

private:
  using Clock = std::vector<uint32_t>;
  struct Operation {
    std::string name;
    uint32_t chain = 0;
    uint32_t index = 0;
    std::vector<uint32_t> after;
    Work work;
    /// Before it runs: what the host knew; afterwards: all that ended before it, and itself.
    Clock clock;
    bool done = false;
    uint64_t finishedAt = 0;
  };
  struct Chain {
    uint32_t last = 0;
    uint32_t count = 0;
    /// Operations not yet run, from `next` on.
    std::vector<uint32_t> queue;
    size_t next = 0;
  };
  class Order;

  static void join(Clock &into, const Clock &other);
  bool isReady(const Chain &chain) const;
  /// Whether an operation waits for another process only.
  bool someoneElseIsAwaited() const;
  /// Runs one ready operation; false where there is none.
  bool runOne(std::optional<Fault> &fault);
  std::optional<Fault> execute(uint32_t op);

  std::function<void()> idle;
  std::vector<Operation> operations;
  std::vector<Chain> chains;
  Clock host;
  std::mt19937_64 random;
  uint32_t recentChain = 0;
  uint64_t numFinished = 0;
};

} // namespace llmc::cudasim
