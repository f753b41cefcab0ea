// Vector clocks and the unkind choice of what runs next.
#include "tests/cudasim/driver/Scheduler.h"

#include <algorithm>

namespace llmc::cudasim {

/// The order as one operation sees it.
class Scheduler::Order : public LaunchOrder {
public:
  Order(const Scheduler &scheduler, uint32_t current) : scheduler(scheduler), current(current) {}
  uint32_t op() const override { return current; }
  bool ended(uint32_t earlierOp) const override {
    const Operation &earlier = scheduler.operations[earlierOp - 1];
    const Clock &clock = scheduler.operations[current - 1].clock;
    return earlier.chain < clock.size() && clock[earlier.chain] >= earlier.index;
  }
  std::string nameOf(uint32_t earlierOp) const override {
    const Operation &earlier = scheduler.operations[earlierOp - 1];
    return earlier.name + " (operation " + std::to_string(earlierOp) + ", on another stream)";
  }

private:
  const Scheduler &scheduler;
  uint32_t current;
};

void Scheduler::join(Clock &into, const Clock &other) {
  into.resize(std::max(into.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i)
    into[i] = std::max(into[i], other[i]);
}

uint32_t Scheduler::newChain() {
  chains.emplace_back();
  return static_cast<uint32_t>(chains.size() - 1);
}

uint32_t Scheduler::add(uint32_t chain, std::string name, std::vector<uint32_t> after, Work work) {
  Chain &place = chains[chain];
  if (place.last != 0)
    after.push_back(place.last);
  std::erase(after, 0u);
  operations.push_back({.name = std::move(name),
                        .chain = chain,
                        .index = ++place.count,
                        .after = std::move(after),
                        .work = std::move(work),
                        .clock = host});
  place.last = static_cast<uint32_t>(operations.size());
  place.queue.push_back(place.last);
  return place.last;
}

bool Scheduler::isReady(const Chain &chain) const {
  if (chain.next == chain.queue.size())
    return false;
  const Operation &first = operations[chain.queue[chain.next] - 1];
  return std::all_of(first.after.begin(), first.after.end(), [&](uint32_t op) { return operations[op - 1].done; }) &&
         (!first.work.isReady || first.work.isReady());
}

bool Scheduler::someoneElseIsAwaited() const {
  return std::any_of(chains.begin(), chains.end(), [&](const Chain &chain) {
    return chain.next != chain.queue.size() && operations[chain.queue[chain.next] - 1].work.isReady;
  });
}

std::optional<Fault> Scheduler::execute(uint32_t op) {
  Operation &operation = operations[op - 1];
  for (uint32_t before : operation.after)
    join(operation.clock, operations[before - 1].clock);
  operation.clock.resize(std::max<size_t>(operation.clock.size(), operation.chain + 1));
  operation.clock[operation.chain] = operation.index;
  Work::Run run = std::move(operation.work.run);
  operation.work = nullptr;
  std::optional<Fault> fault = run ? run(Order(*this, op)) : std::nullopt;
  operations[op - 1].done = true;
  operations[op - 1].finishedAt = ++numFinished;
  return fault;
}

/// One stream runs far ahead of the others for a while: that is what real devices do and tests never expect.
bool Scheduler::runOne(std::optional<Fault> &fault) {
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < chains.size(); ++i)
    if (isReady(chains[i]))
      ready.push_back(i);
  if (ready.empty())
    return false;
  uint64_t dice = random();
  bool stays = dice % 8 != 0 && std::find(ready.begin(), ready.end(), recentChain) != ready.end();
  if (!stays)
    recentChain = ready[(dice >> 8) % ready.size()];
  Chain &chain = chains[recentChain];
  uint32_t op = chain.queue[chain.next++];
  if (chain.next == chain.queue.size()) {
    chain.queue.clear();
    chain.next = 0;
  }
  fault = execute(op);
  return true;
}

std::optional<Fault> Scheduler::finish(uint32_t op) {
  std::optional<Fault> fault;
  while (!isDone(op) && !fault)
    if (!runOne(fault)) {
      if (someoneElseIsAwaited()) {
        idle();
        continue;
      }
      return Fault{.kind = FaultKind::endless, .kernel = operations[op - 1].name, .detail = "waits for itself"};
    }
  if (op != 0 && !fault)
    join(host, operations[op - 1].clock);
  return fault;
}

std::optional<Fault> Scheduler::advance(uint32_t op) {
  std::optional<Fault> fault;
  for (uint64_t left = random() % 4; left > 0 && !isDone(op) && !fault; --left)
    if (!runOne(fault))
      break;
  return fault;
}

std::optional<Fault> Scheduler::finishAll() {
  for (size_t i = 0; i < chains.size(); ++i)
    if (std::optional<Fault> fault = finish(chains[i].last))
      return fault;
  return std::nullopt;
}

} // namespace llmc::cudasim
