// Loops over the device's threads. A split depends on the sizes and the thread count alone, never on timing, except
// where tasks are independent of each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <omp.h>

namespace llmc {

/// Calls body(thread) once for each of `threads` threads, whatever the number the system grants.
template <typename Body> void onThreads(int threads, Body &&body) {
  if (threads <= 1)
    return body(0);
#pragma omp parallel num_threads(threads)
  for (int thread = omp_get_thread_num(); thread < threads; thread += omp_get_num_threads())
    body(thread);
}

/// Thread `thread`'s share of [0, count), in whole multiples of `grain`: first and one past the last.
struct Share {
  int64_t begin, end;
};
inline Share shareOf(int64_t count, int thread, int threads, int64_t grain = 1) {
  int64_t pieces = (count + grain - 1) / grain;
  int64_t begin = pieces * thread / threads, end = pieces * (thread + 1) / threads;
  return {std::min(count, begin * grain), std::min(count, end * grain)};
}

/// Calls body(begin, end) with contiguous shares of [0, count) on as many threads as there are grains, at most
/// `threads`. Threads without a share take part all the same: a smaller team would end threads that the next launch
/// starts again.
template <typename Body> void forShares(int64_t count, int threads, int64_t grain, Body &&body) {
  if (count <= 0)
    return;
  if (count <= grain || threads <= 1)
    return body(int64_t(0), count);
  int used = static_cast<int>(std::min<int64_t>(threads, (count + grain - 1) / grain));
  onThreads(threads, [&](int thread) {
    if (thread >= used)
      return;
    Share share = shareOf(count, thread, used, grain);
    if (share.begin < share.end)
      body(share.begin, share.end);
  });
}

/// Calls body(task, thread) for each task, taken in turn by whoever is free: for tasks that share nothing they write.
template <typename Body> void forTasks(int64_t tasks, int threads, Body &&body) {
  if (threads <= 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task)
      body(task, 0);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int64_t task = 0; task < tasks; ++task)
    body(task, omp_get_thread_num());
}

} // namespace llmc
