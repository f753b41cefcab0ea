// Field by field in both directions. Numbers of enumerations are checked here, because a struct cannot hold a wrong
// one; everything else about a foreign plan is checked by PlanCheck.
#include "runtime/PlanProto.h"

#include "runtime/plan.pb.h"

namespace llmc {

namespace {
/// Number of values of each enumeration that a file can hold.
template <typename E> struct EnumSize;
template <> struct EnumSize<ElementType> {
  static constexpr uint32_t value = 9;
};
template <> struct EnumSize<Space> {
  static constexpr uint32_t value = 4;
};
template <> struct EnumSize<StateKind> {
  static constexpr uint32_t value = 6;
};
template <> struct EnumSize<ProgramKind> {
  static constexpr uint32_t value = kNumProgramKinds;
};
template <> struct EnumSize<KernelKind> {
  static constexpr uint32_t value = 0
#define LLMC_KERNEL(Kind, name, operands, ints, floats) +1
#include "runtime/Kernels.def"
      ;
};
} // namespace

template <typename E> static uint32_t toNumber(E value) { return static_cast<uint32_t>(value); }

/// Writes `value` when it is one of E's, else says what was read.
template <typename E> static Status fromNumber(uint32_t number, const char *what, E &value) {
  if (number >= EnumSize<E>::value)
    return Error{std::string("unknown ") + what + " " + std::to_string(number) + ": the plan needs a newer build"};
  value = static_cast<E>(number);
  return {};
}

static void toProto(const BufferRef &buffer, proto::BufferRef &message) {
  message.set_space(toNumber(buffer.space));
  message.set_offset(buffer.offset);
  message.set_bytes(buffer.bytes);
}

static Status fromProto(const proto::BufferRef &message, BufferRef &buffer) {
  LLMC_RETURN_IF_ERROR(fromNumber(message.space(), "memory space", buffer.space));
  buffer.offset = message.offset();
  buffer.bytes = message.bytes();
  return {};
}

static void toProto(const StateEntry &entry, proto::StateEntry &message) {
  message.set_name(entry.name);
  message.set_kind(toNumber(entry.kind));
  message.set_type(toNumber(entry.type));
  message.mutable_shape()->Add(entry.shape.begin(), entry.shape.end());
  toProto(entry.buffer, *message.mutable_buffer());
  message.set_decays(entry.decays);
  message.set_file_offset(entry.fileOffset);
  toProto(entry.gradient, *message.mutable_gradient());
  message.set_role(entry.role);
  message.set_vocabulary(entry.vocabulary);
  message.set_ignore_index(entry.ignoreIndex);
  message.set_row_length(entry.rows.length);
  message.set_row_stride(entry.rows.stride);
}

static Status fromProto(const proto::StateEntry &message, StateEntry &entry) {
  entry.name = message.name();
  LLMC_RETURN_IF_ERROR(fromNumber(message.kind(), "kind of state entry", entry.kind));
  LLMC_RETURN_IF_ERROR(fromNumber(message.type(), "element type", entry.type));
  entry.shape.assign(message.shape().begin(), message.shape().end());
  LLMC_RETURN_IF_ERROR(fromProto(message.buffer(), entry.buffer));
  entry.decays = message.decays();
  entry.fileOffset = message.file_offset();
  LLMC_RETURN_IF_ERROR(fromProto(message.gradient(), entry.gradient));
  entry.rows = {message.row_length(), message.row_stride()};
  entry.role = message.role();
  entry.vocabulary = message.vocabulary();
  entry.ignoreIndex = message.ignore_index();
  return {};
}

static void toProto(const Launch &launch, proto::Launch &message) {
  message.set_kind(toNumber(launch.kind));
  message.set_name(launch.name);
  for (const BufferRef &operand : launch.operands)
    toProto(operand, *message.add_operands());
  message.mutable_ints()->Add(launch.ints.begin(), launch.ints.end());
  message.mutable_floats()->Add(launch.floats.begin(), launch.floats.end());
  message.set_stream(launch.stream);
  message.set_flops(launch.flops);
  message.set_bytes(launch.bytes);
  message.set_entry(static_cast<uint32_t>(launch.entry + 1));
}

static Status fromProto(const proto::Launch &message, Launch &launch) {
  LLMC_RETURN_IF_ERROR(fromNumber(message.kind(), "kind of kernel", launch.kind));
  launch.name = message.name();
  launch.operands.resize(static_cast<size_t>(message.operands_size()));
  for (size_t i = 0; i < launch.operands.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.operands(static_cast<int>(i)), launch.operands[i]));
  launch.ints.assign(message.ints().begin(), message.ints().end());
  launch.floats.assign(message.floats().begin(), message.floats().end());
  launch.stream = message.stream();
  launch.flops = message.flops();
  launch.bytes = message.bytes();
  launch.entry = static_cast<int32_t>(message.entry() - 1); // beyond 31 bits: below -1, which PlanCheck refuses
  return {};
}

static void toProto(const Program &program, proto::Program &message) {
  message.set_kind(toNumber(program.kind));
  for (const Launch &launch : program.launches)
    toProto(launch, *message.add_launches());
  message.set_arena_bytes(program.arenaBytes);
  message.set_arena_lower_bound_bytes(program.arenaLowerBoundBytes);
  for (const ValueRange &value : program.values) {
    proto::ValueRange &range = *message.add_values();
    range.set_name(value.name);
    range.set_category(value.category);
    toProto(value.buffer, *range.mutable_buffer());
    range.set_first_launch(value.firstLaunch);
    range.set_last_launch(value.lastLaunch);
  }
}

static Status fromProto(const proto::Program &message, Program &program) {
  LLMC_RETURN_IF_ERROR(fromNumber(message.kind(), "kind of program", program.kind));
  program.launches.resize(static_cast<size_t>(message.launches_size()));
  for (size_t i = 0; i < program.launches.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.launches(static_cast<int>(i)), program.launches[i]));
  program.arenaBytes = message.arena_bytes();
  program.arenaLowerBoundBytes = message.arena_lower_bound_bytes();
  program.values.reserve(static_cast<size_t>(message.values_size()));
  for (const proto::ValueRange &range : message.values()) {
    ValueRange value{range.name(), range.category(), {}, range.first_launch(), range.last_launch()};
    LLMC_RETURN_IF_ERROR(fromProto(range.buffer(), value.buffer));
    program.values.push_back(std::move(value));
  }
  return {};
}

static void toProto(const TargetPrograms &target, proto::TargetPrograms &message) {
  message.set_target(target.target);
  message.set_isa(target.isa);
  for (const Program &program : target.programs)
    toProto(program, *message.add_programs());
  for (const CodeEntry &entry : target.entries) {
    proto::CodeEntry &code = *message.add_entries();
    code.set_name(entry.name);
    code.set_offset(entry.offset);
    code.set_symbol(entry.symbol);
    code.set_grid_x(entry.gridX);
    code.set_block_x(entry.blockX);
    code.set_shared_bytes(entry.sharedBytes);
  }
  message.set_code_offset(target.codeOffset);
  message.set_code_bytes(target.codeBytes);
}

static Status fromProto(const proto::TargetPrograms &message, TargetPrograms &target) {
  target.target = message.target();
  target.isa = message.isa();
  target.programs.resize(static_cast<size_t>(message.programs_size()));
  for (size_t i = 0; i < target.programs.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.programs(static_cast<int>(i)), target.programs[i]));
  for (const proto::CodeEntry &code : message.entries())
    target.entries.push_back(
        {code.name(), code.offset(), code.symbol(), code.grid_x(), code.block_x(), code.shared_bytes()});
  target.codeOffset = message.code_offset();
  target.codeBytes = message.code_bytes();
  return {};
}

static void toProto(const SpliceEntry &entry, proto::SpliceEntry &message) {
  message.set_parameter(entry.parameter);
  message.set_type(toNumber(entry.type));
  message.set_transform(entry.transform);
  message.set_model_offset(entry.modelOffset);
  message.set_bytes(entry.bytes);
}

static Status fromProto(const proto::SpliceEntry &message, SpliceEntry &entry) {
  entry.parameter = message.parameter();
  LLMC_RETURN_IF_ERROR(fromNumber(message.type(), "element type", entry.type));
  entry.transform = message.transform();
  entry.modelOffset = message.model_offset();
  entry.bytes = message.bytes();
  return {};
}

void planToProto(const Plan &plan, proto::Plan &message) {
  message.set_producer(plan.producer);
  message.set_model_name(plan.modelName);
  message.set_precision(plan.precision);
  message.set_optimizer(plan.optimizer);
  message.set_loss_is_token_mean(plan.lossIsTokenMean);
  message.set_batch(plan.batch);
  message.set_sequence(plan.sequence);
  message.set_vocabulary(plan.vocabulary);
  message.set_flops_per_token(plan.flopsPerToken);
  message.set_state_bytes(plan.stateBytes);
  message.set_gradient_bytes(plan.gradientBytes);
  for (const StateEntry &entry : plan.state)
    toProto(entry, *message.add_state());
  for (const TargetPrograms &target : plan.targets)
    toProto(target, *message.add_targets());
  for (const SpliceEntry &entry : plan.splice)
    toProto(entry, *message.add_splice());
}

Result<Plan> planFromProto(const proto::Plan &message) {
  Plan plan;
  plan.producer = message.producer();
  plan.modelName = message.model_name();
  plan.precision = message.precision();
  plan.optimizer = message.optimizer();
  plan.lossIsTokenMean = message.loss_is_token_mean();
  plan.batch = message.batch();
  plan.sequence = message.sequence();
  plan.vocabulary = message.vocabulary();
  plan.flopsPerToken = message.flops_per_token();
  plan.stateBytes = message.state_bytes();
  plan.gradientBytes = message.gradient_bytes();
  plan.state.resize(static_cast<size_t>(message.state_size()));
  for (size_t i = 0; i < plan.state.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.state(static_cast<int>(i)), plan.state[i]));
  plan.targets.resize(static_cast<size_t>(message.targets_size()));
  for (size_t i = 0; i < plan.targets.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.targets(static_cast<int>(i)), plan.targets[i]));
  plan.splice.resize(static_cast<size_t>(message.splice_size()));
  for (size_t i = 0; i < plan.splice.size(); ++i)
    LLMC_RETURN_IF_ERROR(fromProto(message.splice(static_cast<int>(i)), plan.splice[i]));
  return plan;
}

} // namespace llmc
