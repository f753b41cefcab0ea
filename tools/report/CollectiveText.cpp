// A start and its wait are found by the position they share.
#include "tools/report/CollectiveText.h"

#include "tools/report/PlanText.h"

#include <fmt/format.h>
#include <map>

namespace llmc {

namespace {
struct Message {
  const Launch *start = nullptr;
  size_t from = 0, to = 0; ///< launches
  uint64_t bytes = 0;
};
} // namespace

static std::vector<Message> messagesOf(const Program &program) {
  std::map<int64_t, Message> byPosition;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch &launch = program.launches[i];
    if (launch.kind != KernelKind::AllReduceStart && launch.kind != KernelKind::AllReduceWait)
      continue;
    Message &message = byPosition[launch.ints.front()]; // "position", as Kernels.def has it
    if (launch.kind == KernelKind::AllReduceWait) {
      message.to = i;
      continue;
    }
    message.start = &launch;
    message.from = i;
    for (const BufferRef &part : launch.operands)
      message.bytes += part.bytes;
  }
  std::vector<Message> messages;
  for (const auto &[position, message] : byPosition)
    messages.push_back(message);
  return messages;
}

static double flopsBetween(const Program &program, const Message &message) {
  double flops = 0;
  for (size_t i = message.from + 1; i < message.to; ++i)
    flops += program.launches[i].flops;
  return flops;
}

static std::string tableOf(const Program &program, const std::vector<Message> &messages, size_t most) {
  uint64_t bytes = 0;
  for (const Message &message : messages)
    bytes += message.bytes;
  std::string text = fmt::format("collectives of {}: {} {}, {}B a rank\n{:>7}{:>7}{:>11}{:>20}{:>14}  {}\n",
                                 programKindName(program.kind), messages.size(),
                                 messages.size() == 1 ? "message" : "messages", countText(static_cast<double>(bytes)),
                                 "message", "parts", "B", "launches meanwhile", "FLOP", "first part");
  for (size_t i = 0; i < std::min(most, messages.size()); ++i) {
    const Message &message = messages[i];
    text += fmt::format("{:>7}{:>7}{:>11}{:>20}{:>14}  {}\n", i, message.start->operands.size(),
                        countText(static_cast<double>(message.bytes)), message.to - message.from - 1,
                        countText(flopsBetween(program, message)),
                        message.start->name.substr(0, message.start->name.find('+')));
  }
  if (messages.size() > most)
    text += fmt::format("  ... {} more; --all shows them\n", messages.size() - most);
  return text;
}

std::string collectiveTable(const TargetPrograms &target, size_t most) {
  for (const Program &program : target.programs)
    if (std::vector<Message> messages = messagesOf(program); !messages.empty())
      return tableOf(program, messages, most);
  return "";
}

} // namespace llmc
