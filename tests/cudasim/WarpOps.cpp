// What lanes of a warp do together: shfl.sync, vote.sync, redux.sync, activemask, bar.warp.sync. All lanes that the
// member mask names must be here; the others would be waited for, so their absence is a fault.
#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lanes.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

/// Whether every active lane names the same members and all of them take part.
bool membersHere(Context &context, const Instruction &in, uint32_t maskSlot) {
  bool good = true;
  forLanes(context.mask, [&](uint32_t lane) {
    uint32_t members = readLane<uint32_t>(context.registers + maskSlot, lane);
    if ((members & ~context.mask) == 0 && (members >> lane & 1))
      return;
    good = false;
    context.report(FaultKind::warpDivergence, in, lane, 0,
                   fmt::format("member mask {:#010x}, but lanes {:#010x} are here", members, context.mask));
  });
  return good;
}

enum class Exchange : int64_t { bfly, up, down, idx };

/// shfl.sync d|p, a, b, c, members: c holds the clamp (bits 0-4) and the segment mask (bits 8-12).
void shuffle(Context &context, const Instruction &in) {
  if (!membersHere(context, in, in.src[3]))
    return;
  uint32_t values[kWarpLanes], inRange = 0;
  const std::byte *source = context.registers + in.src[0];
  forLanes(context.mask, [&](uint32_t lane) {
    uint32_t b = readLane<uint32_t>(context.registers + in.src[1], lane) & 31;
    uint32_t c = readLane<uint32_t>(context.registers + in.src[2], lane);
    uint32_t clamp = c & 31, segment = c >> 8 & 31;
    uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int64_t from = 0;
    bool valid = true;
    switch (static_cast<Exchange>(in.immediate)) {
    case Exchange::up:
      from = int64_t(lane) - b;
      valid = from >= int64_t(most);
      break;
    case Exchange::down:
      from = lane + b;
      valid = from <= most;
      break;
    case Exchange::bfly:
      from = lane ^ b;
      valid = from <= most;
      break;
    case Exchange::idx:
      from = least | (b & ~segment);
      valid = from <= most;
      break;
    }
    if (!valid)
      from = lane;
    if (!(context.mask >> from & 1))
      context.report(FaultKind::warpDivergence, in, lane, 0, fmt::format("reads lane {}, which is not here", from));
    values[lane] = readLane<uint32_t>(source, static_cast<uint32_t>(from));
    inRange |= static_cast<uint32_t>(valid) << lane;
  });
  forLanes(context.mask,
           [&](uint32_t lane) { writeLane<uint32_t>(context.registers + in.dst[0], lane, values[lane]); });
  if (in.dst[1] != kNoSlot) {
    uint32_t &dst = context.predicate(in.dst[1]);
    dst = (dst & ~context.mask) | (inRange & context.mask);
  }
}

/// One value for all active lanes, from the lanes' predicate.
template <auto f> void voteMask(Context &context, const Instruction &in) {
  if (!membersHere(context, in, in.src[1]))
    return;
  uint32_t votes = context.predicate(in.src[0]) & context.mask;
  uint32_t &dst = context.predicate(in.dst[0]);
  dst = (dst & ~context.mask) | (f(votes, context.mask) ? context.mask : 0);
}

void ballot(Context &context, const Instruction &in) {
  if (!membersHere(context, in, in.src[1]))
    return;
  uint32_t votes = context.predicate(in.src[0]) & context.mask;
  forLanes(context.mask, [&](uint32_t lane) { writeLane<uint32_t>(context.registers + in.dst[0], lane, votes); });
}

void activeMask(Context &context, const Instruction &in) {
  forLanes(context.mask,
           [&](uint32_t lane) { writeLane<uint32_t>(context.registers + in.dst[0], lane, context.mask); });
}

template <typename T, auto f> void reduce(Context &context, const Instruction &in) {
  if (!membersHere(context, in, in.src[1]))
    return;
  bool first = true;
  T result = 0;
  forLanes(context.mask, [&](uint32_t lane) {
    T value = readLane<T>(context.registers + in.src[0], lane);
    result = first ? value : static_cast<T>(f(result, value));
    first = false;
  });
  forLanes(context.mask, [&](uint32_t lane) { writeLane<T>(context.registers + in.dst[0], lane, result); });
}

FormResult reduceForm(Mnemonic &mnemonic) {
  std::string_view how = mnemonic.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  Type type = mnemonic.takeType();
  using U = uint32_t;
  using S = int32_t;
  Handler run = nullptr;
  bool isArithmetic = how == "add" || how == "min" || how == "max";
  if (how == "add")
    run = reduce<U, [](U a, U b) { return a + b; }>;
  else if (how == "min")
    run = type == Type::s32 ? reduce<S, [](S a, S b) { return a < b ? a : b; }>
                            : reduce<U, [](U a, U b) { return a < b ? a : b; }>;
  else if (how == "max")
    run = type == Type::s32 ? reduce<S, [](S a, S b) { return a < b ? b : a; }>
                            : reduce<U, [](U a, U b) { return a < b ? b : a; }>;
  else if (how == "and")
    run = reduce<U, [](U a, U b) { return a & b; }>;
  else if (how == "or")
    run = reduce<U, [](U a, U b) { return a | b; }>;
  else if (how == "xor")
    run = reduce<U, [](U a, U b) { return a ^ b; }>;
  bool typeFits = isArithmetic ? type == Type::u32 || type == Type::s32 : type == Type::b32;
  return run && typeFits ? FormResult(Form{run, {type}, {type, Type::u32}}) : std::nullopt;
}

FormResult voteForm(Mnemonic &mnemonic) {
  std::string_view how = mnemonic.takeOneOf({"all", "any", "uni", "ballot"});
  Type type = mnemonic.takeType();
  if (how == "ballot" && type == Type::b32)
    return Form{ballot, {Type::b32}, {Type::pred, Type::u32}};
  if (type != Type::pred)
    return std::nullopt;
  Handler run = how == "all"   ? voteMask<[](uint32_t votes, uint32_t here) { return votes == here; }>
                : how == "any" ? voteMask<[](uint32_t votes, uint32_t here) { return votes != 0; }>
                : how == "uni" ? voteMask<[](uint32_t votes, uint32_t here) { return votes == here || votes == 0; }>
                               : nullptr;
  return run ? FormResult(Form{run, {Type::pred}, {Type::pred, Type::u32}}) : std::nullopt;
}

void warpBarrier(Context &context, const Instruction &in) {
  if (membersHere(context, in, in.src[0]) && context.mask == context.liveMask)
    ++context.warpEpoch;
}

} // namespace

FormResult warpForm(Mnemonic &mnemonic) {
  const std::string &name = mnemonic.name();
  if (name == "activemask" && mnemonic.takeType() == Type::b32)
    return Form{activeMask, {Type::b32}, {}};
  if (name == "bar" && mnemonic.take("warp") && mnemonic.take("sync"))
    return Form{warpBarrier, {}, {Type::b32}};
  if (!mnemonic.take("sync"))
    return std::nullopt;
  if (name == "redux")
    return reduceForm(mnemonic);
  if (name == "vote")
    return voteForm(mnemonic);
  if (name != "shfl")
    return std::nullopt;
  std::string_view how = mnemonic.takeOneOf({"bfly", "up", "down", "idx"});
  if (how.empty() || mnemonic.takeType() != Type::b32)
    return std::nullopt;
  Exchange exchange = how == "bfly"   ? Exchange::bfly
                      : how == "up"   ? Exchange::up
                      : how == "down" ? Exchange::down
                                      : Exchange::idx;
  return Form{.run = shuffle,
              .dst = {Type::b32},
              .src = {Type::b32, Type::u32, Type::u32, Type::u32},
              .immediate = static_cast<int64_t>(exchange)};
}

} // namespace llmc::cudasim
