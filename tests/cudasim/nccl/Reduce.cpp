// By element type and reduction.
#include "tests/cudasim/nccl/Reduce.h"
#include "tests/cudasim/Float16.h"

#include <algorithm>
#include <cstring>
#include <nccl.h>

namespace llmc::cudasim {

namespace {

double load(const std::byte *at, int32_t type) {
  auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
  case ncclFloat32:
    return as(float());
  case ncclFloat64:
    return as(double());
  case ncclBfloat16:
    return toFloat(as(Bfloat()));
  case ncclInt32:
    return as(int32_t());
  default:
    return static_cast<double>(as(int64_t()));
  }
}

void store(std::byte *at, int32_t type, double value) {
  auto as = [&](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  switch (type) {
  case ncclFloat32:
    return as(static_cast<float>(value));
  case ncclFloat64:
    return as(value);
  case ncclBfloat16:
    return as(toBfloat(static_cast<float>(value)));
  case ncclInt32:
    return as(static_cast<int32_t>(value));
  default:
    return as(static_cast<int64_t>(value));
  }
}

double combine(double sum, double next, int32_t reduction) {
  switch (reduction) {
  case ncclProd:
    return sum * next;
  case ncclMax:
    return std::max(sum, next);
  case ncclMin:
    return std::min(sum, next);
  default:
    return sum + next;
  }
}

} // namespace

uint64_t elementBytes(int32_t type) {
  switch (type) {
  case ncclFloat32:
  case ncclInt32:
    return 4;
  case ncclFloat64:
  case ncclInt64:
    return 8;
  case ncclBfloat16:
    return 2;
  default:
    return 0;
  }
}

uint64_t receivedCount(const Call &call, int numRanks) {
  return call.collective == Collective::reduceScatter ? call.count / numRanks
         : call.collective == Collective::allGather   ? call.count * numRanks
                                                      : call.count;
}

std::vector<std::byte> received(const Call &call, const Meeting &meeting) {
  uint64_t width = elementBytes(call.type), count = receivedCount(call, meeting.numRanks());
  std::vector<std::byte> result(count * width);
  if (call.collective == Collective::broadcast) {
    std::copy_n(meeting.data(call.root), result.size(), result.begin());
  } else if (call.collective == Collective::allGather) {
    for (int rank = 0; rank < meeting.numRanks(); ++rank)
      std::copy_n(meeting.data(rank), call.count * width, result.begin() + rank * call.count * width);
  } else {
    uint64_t first = call.collective == Collective::reduceScatter ? count * meeting.rank() : 0;
    for (uint64_t i = 0; i < count; ++i) {
      double value = load(meeting.data(0) + (first + i) * width, call.type);
      for (int rank = 1; rank < meeting.numRanks(); ++rank)
        value = combine(value, load(meeting.data(rank) + (first + i) * width, call.type), call.reduction);
      store(result.data() + i * width, call.type, call.reduction == ncclAvg ? value / meeting.numRanks() : value);
    }
  }
  return result;
}

} // namespace llmc::cudasim
