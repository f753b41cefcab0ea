// All exchanges are an all-gather of one small struct, reduced by everyone in the same order.
#include "runtime/RankExchange.h"

#include <fmt/format.h>

namespace llmc {

template <typename T> Result<std::vector<T>> RankExchange::gather(const T &mine, std::string_view label) {
  std::vector<T> all(static_cast<size_t>(worldSize()), mine);
  if (!comm)
    return all;
  LLMC_RETURN_IF_ERROR(
      comm->allGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), label));
  return all;
}

Result<RankExchange::Contribution> RankExchange::sum(const Contribution &mine) {
  Result<std::vector<Contribution>> all = gather(mine, "labels of the step");
  LLMC_RETURN_IF_ERROR(all);
  Contribution total;
  for (const Contribution &one : *all) {
    total.microBatches += one.microBatches;
    total.tokens += one.tokens;
    total.labels += one.labels;
    total.microBatchesWithoutLabels += one.microBatchesWithoutLabels;
  }
  return total;
}

Result<double> RankExchange::sum(double mine, std::string_view label) {
  Result<std::vector<double>> all = gather(mine, label);
  LLMC_RETURN_IF_ERROR(all);
  double total = 0;
  for (double one : *all)
    total += one;
  return total;
}

Status RankExchange::sum(std::span<std::byte> buffer, std::string_view label) {
  if (!comm)
    return {};
  Result<uint64_t> ticket = comm->startAllReduce(buffer, ElementType::f32, label);
  LLMC_RETURN_IF_ERROR(ticket);
  return comm->wait(*ticket);
}

Status RankExchange::requireSame(uint64_t hash, std::string_view what) {
  Result<std::vector<uint64_t>> all = gather(hash, what);
  LLMC_RETURN_IF_ERROR(all);
  for (size_t rank = 1; rank < all->size(); ++rank)
    if ((*all)[rank] != all->front())
      return Error{fmt::format("rank {} has other {} than rank 0", rank, what)};
  return {};
}

CommTimes RankExchange::takeTimes() { return comm ? comm->takeTimes() : CommTimes(); }

} // namespace llmc
