// The engine, the level cap and the call: oneDNN's C call takes an array of arguments that is built once.
#include "backend/cpu/Dnnl.h"

namespace llmc {

static dnnl::cpu_isa dnnlIsa(IsaLevel level) {
  constexpr std::array kLevels = {dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core, dnnl::cpu_isa::avx512_core_bf16};
  return kLevels[static_cast<size_t>(level)];
}

Status capDnnl(IsaLevel level) {
  // Refused after the first use of oneDNN: then only what is in force counts.
  (void)dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(dnnlIsa(level)));
  if (dnnl::get_effective_cpu_isa() == dnnlIsa(level))
    return {};
  return Error{std::string("this process's oneDNN does not run at the level ") + isaLevelName(level) +
               ": it was used at another, or capped by its environment"};
}

Result<dnnl::memory::data_type> dnnlType(ElementType type) {
  if (type == ElementType::f32)
    return dnnl::memory::data_type::f32;
  if (type == ElementType::bf16)
    return dnnl::memory::data_type::bf16;
  return Error{"elements must be f32 or bf16"};
}

dnnl::memory::format_tag dnnlTag(RhsLayout layout) {
  return layout == RhsLayout::blocked16x64 ? dnnl::memory::format_tag::BA16a64b : dnnl::memory::format_tag::BA16a64b2a;
}

const dnnl::engine &dnnlEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

DnnlCall::DnnlCall(const dnnl::primitive &primitive, const std::vector<Argument> &bound,
                   const dnnl::memory::desc &scratchpad)
    : primitive(primitive), stream(dnnlEngine()), scratchpadBytes(scratchpad.get_size()) {
  for (const Argument &argument : bound) {
    memories.emplace_back(argument.layout, dnnlEngine(), argument.data);
    arguments.push_back({argument.number, memories.back().get()});
  }
  memories.emplace_back(scratchpad, dnnlEngine(), nullptr);
  arguments.push_back({DNNL_ARG_SCRATCHPAD, memories.back().get()});
}

Status DnnlCall::run(std::byte *scratch) {
  dnnl_memory_set_data_handle(memories.back().get(), scratchpadBytes ? scratch : nullptr);
  dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
  if (status == dnnl_success)
    status = dnnl_stream_wait(stream.get());
  if (status != dnnl_success)
    return Error{"oneDNN failed with status " + std::to_string(static_cast<int>(status))};
  return {};
}

} // namespace llmc
