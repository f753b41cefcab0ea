// What our kernels need of oneDNN, written for versions 2.6 and 3.x: exceptions become Status here and go no further.
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/Layouts.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <vector>

namespace llmc {

/// Keeps oneDNN from using instructions above a level, so that a level's results do not depend on the CPU. oneDNN takes
/// this once per process, before its first use: fails when the process already runs at another level.
Status capDnnl(IsaLevel level);

/// oneDNN's name of a type; f32, bf16 only.
Result<dnnl::memory::data_type> dnnlType(ElementType type);
/// oneDNN's tag of a packed layout.
dnnl::memory::format_tag dnnlTag(RhsLayout layout);

/// One primitive with its buffers bound, run without allocation of ours.
class DnnlCall {
public:
  /// primitive's arguments by DNNL_ARG_ number; a null scratchpad binds to the one given to run().
  struct Argument {
    int number;
    dnnl::memory::desc layout;
    void *data;
  };
  DnnlCall(const dnnl::primitive &primitive, const std::vector<Argument> &arguments,
           const dnnl::memory::desc &scratchpad);
  uint64_t scratchBytes() const { return scratchpadBytes; }
  Status run(std::byte *scratch);
  /// Moves an argument (by its place in the constructor's list) to another buffer.
  void bind(size_t argument, void *data) { dnnl_memory_set_data_handle(memories[argument].get(), data); }

private:
  dnnl::primitive primitive;
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
  uint64_t scratchpadBytes = 0;
};

/// The CPU as oneDNN's engine.
const dnnl::engine &dnnlEngine();

/// Turns an exception of oneDNN's into an Error while calling make(), which returns a T.
template <typename Make> auto catchDnnl(const char *what, Make &&make) -> Result<decltype(make())> {
  try {
    return make();
  } catch (const dnnl::error &error) {
    return Error{std::string("oneDNN cannot make ") + what + ": " + error.what()};
  }
}

} // namespace llmc
