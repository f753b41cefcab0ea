// Weights brought into a packed layout by oneDNN's reorder.
#include "backend/cpu/Dnnl.h"

namespace llmc {

class PackWeightsKernel : public CpuKernel {
public:
  explicit PackWeightsKernel(DnnlCall call) : call(std::move(call)) {}
  uint64_t scratchBytes() const override { return call.scratchBytes(); }
  Status run(std::byte *scratch) override { return call.run(scratch); }

private:
  DnnlCall call;
};

Result<std::unique_ptr<CpuKernel>> makePackWeightsKernel(const KernelArgs &args, const CpuTarget &) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(1, {"k", "n"}));
  int64_t k = args.integer("k"), n = args.integer("n"), number = args.integer("layout");
  auto layout = static_cast<RhsLayout>(number);
  ElementType packedType = layout == RhsLayout::blocked16x64 ? ElementType::f32 : ElementType::bf16;
  if ((layout != RhsLayout::blocked16x64 && layout != RhsLayout::blocked16x64x2) || args.type("dstType") != packedType)
    return Error{"no such layout: " + std::to_string(number)};
  Result<dnnl::memory::data_type> srcType = dnnlType(args.type("srcType")), dstType = dnnlType(packedType);
  LLMC_RETURN_IF_ERROR(srcType);
  LLMC_RETURN_IF_ERROR(requireElements(args, "src", __int128(k) * n - 1, args.type("srcType")));
  LLMC_RETURN_IF_ERROR(requireElements(args, "dst", packedElements(layout, k, n) - 1, packedType));

  auto call = catchDnnl("the packing", [&] {
    dnnl::memory::dims strides = args.flag("transpose") ? dnnl::memory::dims{1, k} : dnnl::memory::dims{n, 1};
    dnnl::memory::desc src({k, n}, *srcType, strides), dst({k, n}, *dstType, dnnlTag(layout));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::reorder::primitive_desc desc(dnnlEngine(), src, dnnlEngine(), dst, attributes);
    return DnnlCall(dnnl::reorder(desc),
                    {{DNNL_ARG_FROM, src, args.operand("src").data}, {DNNL_ARG_TO, dst, args.operand("dst").data}},
                    desc.scratchpad_desc());
  });
  LLMC_RETURN_IF_ERROR(call);
  return std::unique_ptr<CpuKernel>(std::make_unique<PackWeightsKernel>(std::move(*call)));
}

} // namespace llmc
