// SIGINT and SIGTERM, received by a thread of their own and by no handler. Handlers are no choice here: oneDNN's GEMM
// kernels that do not copy their operands point the stack register into a heap block (2.6.3: `mov rsp, ws` in
// jit_avx512_common_gemm_f32 and jit_avx_gemm_f32), and the frame of a handler that interrupts one overwrites the heap.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace llmc {

class StopSignals {
public:
  /// From now on this thread, and every one started later, leaves both signals to the thread started here: to be made
  /// before there is any other. A signal that the process was started to ignore stays ignored.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;
  StopSignals &operator=(const StopSignals &) = delete;

  /// The first signal, which asks to stop; 0 until then. The second ends the process at once, as if nobody waited.
  const std::atomic<int> &asked() const { return first; }

private:
  void receive();

  std::atomic<int> first{0};
  std::atomic<bool> isEnding{false};
  sigset_t signals, before;
  std::thread thread; ///< last: starts when everything else is ready
};

} // namespace llmc
