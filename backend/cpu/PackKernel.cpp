// A matrix brought into the layout of the matmul that reads it, by oneDNN's reorder.
#include "backend/cpu/Dnnl.h"

namespace llmc {

class PackKernel : public CpuKernel {
public:
  explicit PackKernel(DnnlCall call) : call(std::move(call)) {}
  uint64_t scratchBytes() const override { return call.scratchBytes(); }
  Status run(std::byte *scratch) override { return call.run(scratch); }

private:
  DnnlCall call;
};

Result<std::unique_ptr<CpuKernel>> makePackKernel(const KernelArgs &args, const CpuTarget &target) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(1, {"k", "n"}));
  int64_t k = args.integer("k"), n = args.integer("n"), number = args.integer("layout");
  ElementType srcType = args.type("srcType"), dstType = args.type("dstType");
  auto planned = static_cast<RhsLayout>(number);
  if (planned < RhsLayout::plain || planned > RhsLayout::blocked16x64x2 ||
      (planned != RhsLayout::plain && dstType != packedType(planned)))
    return Error{"no such layout: " + std::to_string(number)};
  Result<dnnl::memory::data_type> from = dnnlType(srcType), to = dnnlType(dstType);
  LLMC_RETURN_IF_ERROR(from);
  LLMC_RETURN_IF_ERROR(to);
  LLMC_RETURN_IF_ERROR(requireElements(args, "src", __int128(k) * n - 1, srcType));
  LLMC_RETURN_IF_ERROR(requireElements(args, "dst", packedElements(planned, k, n) - 1, dstType));

  RhsLayout layout = layoutAt(target.isa, planned);
  auto call = catchDnnl("the packing", [&] {
    dnnl::memory::dims strides = args.flag("transpose") ? dnnl::memory::dims{1, k} : dnnl::memory::dims{n, 1};
    dnnl::memory::desc src({k, n}, *from, strides);
    dnnl::memory::desc dst = layout == RhsLayout::plain ? dnnl::memory::desc({k, n}, *to, dnnl::memory::dims{n, 1})
                                                        : dnnl::memory::desc({k, n}, *to, dnnlTag(layout));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::reorder::primitive_desc desc(dnnlEngine(), src, dnnlEngine(), dst, attributes);
    return DnnlCall(dnnl::reorder(desc),
                    {{DNNL_ARG_FROM, src, args.operand("src").data}, {DNNL_ARG_TO, dst, args.operand("dst").data}},
                    desc.scratchpad_desc());
  });
  LLMC_RETURN_IF_ERROR(call);
  return std::unique_ptr<CpuKernel>(std::make_unique<PackKernel>(std::move(*call)));
}

} // namespace llmc
