// Starts and waits of collectives, through the CommApi of the program's session. A start finds its message between the
// first part's first byte and the last part's last; its ticket goes to the wait of the same position.
#include "backend/cpu/CpuKernel.h"

namespace llmc {

namespace {

/// Both halves: which message of which program.
struct Message {
  CpuCollectives *collectives = nullptr;
  size_t position = 0;
  ElementType type = ElementType::f32;
  std::span<std::byte> bytes;
};

class StartKernel : public CpuKernel {
public:
  StartKernel(Message message, std::string label) : message(message), label(std::move(label)) {}

  Status run(std::byte *) override {
    CpuCollectives &collectives = *message.collectives;
    if (!collectives.comm)
      return {};
    Result<uint64_t> ticket = collectives.comm->startAllReduce(message.bytes, message.type, label);
    LLMC_RETURN_IF_ERROR(ticket);
    collectives.tickets[message.position] = *ticket;
    return {};
  }

private:
  Message message;
  std::string label;
};

class WaitKernel : public CpuKernel {
public:
  explicit WaitKernel(Message message) : message(message) {}

  Status run(std::byte *) override {
    CpuCollectives &collectives = *message.collectives;
    if (!collectives.comm)
      return {};
    return collectives.comm->wait(collectives.tickets[message.position]);
  }

private:
  Message message;
};

} // namespace

/// Fails where the parts do not follow each other as Kernels.def says, or are no whole number of f32 or bf16 elements.
static Result<Message> messageOf(const KernelArgs &args, const CpuTarget &target) {
  assert(target.collectives);
  Message message{target.collectives, static_cast<size_t>(args.integer("position")), args.type("type"), {}};
  if (message.position >= target.collectives->tickets.size())
    return Error{"position " + std::to_string(args.integer("position")) + " of a program with " +
                 std::to_string(target.collectives->tickets.size()) + " launches"};
  if (message.type != ElementType::f32 && message.type != ElementType::bf16)
    return Error{"a sum over ranks of elements that are neither f32 nor bf16"};
  constexpr uint64_t kAlignment = 64;
  for (size_t i = 0; i < args.numOperands(); ++i) {
    CpuOperand part = args.operandAt(i);
    uint64_t expected = (message.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    if (!part.data || part.bytes % elementBytes(message.type) != 0 ||
        (i > 0 && part.data != message.bytes.data() + expected))
      return Error{"part " + std::to_string(i) + " does not follow the part before it"};
    message.bytes = i == 0 ? std::span(part.data, part.bytes) : std::span(message.bytes.data(), expected + part.bytes);
  }
  return message;
}

Result<std::unique_ptr<CpuKernel>> makeAllReduceStartKernel(const KernelArgs &args, const CpuTarget &target) {
  Result<Message> message = messageOf(args, target);
  LLMC_RETURN_IF_ERROR(message);
  return std::unique_ptr<CpuKernel>(new StartKernel(*message, std::string(args.name())));
}

Result<std::unique_ptr<CpuKernel>> makeAllReduceWaitKernel(const KernelArgs &args, const CpuTarget &target) {
  Result<Message> message = messageOf(args, target);
  LLMC_RETURN_IF_ERROR(message);
  return std::unique_ptr<CpuKernel>(new WaitKernel(*message));
}

} // namespace llmc
