// A matrix brought into the layout of the matmul that reads it: to bf16 by our own kernels, else by oneDNN's reorder
// (which took three times as long for bf16).
#include "backend/cpu/Dnnl.h"
#include "backend/cpu/PackBf16.h"
#include "backend/cpu/Parallel.h"

namespace llmc {

class Bf16PackKernel : public CpuKernel {
public:
  Bf16PackKernel(const Bf16Packing &packing, int threads) : packing(packing), threads(threads) {}
  Status run(std::byte *) override {
    forShares(numPieces(packing), threads, 1, [&](int64_t begin, int64_t end) { packBf16(packing, begin, end); });
    return {};
  }

private:
  Bf16Packing packing;
  int threads;
};

class DnnlPackKernel : public CpuKernel {
public:
  explicit DnnlPackKernel(DnnlCall call) : call(std::move(call)) {}
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
  Bf16Packing packing{k,
                      n,
                      args.flag("transpose"),
                      srcType == ElementType::f32,
                      target.isa >= IsaLevel::v4Bf16,
                      layout == RhsLayout::blocked16x64x2,
                      args.operand("src").data,
                      args.operand("dst").data};
  if (target.isa >= IsaLevel::v4 && dstType == ElementType::bf16 && canPackBf16(packing))
    return std::unique_ptr<CpuKernel>(std::make_unique<Bf16PackKernel>(packing, target.threads));
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
  return std::unique_ptr<CpuKernel>(std::make_unique<DnnlPackKernel>(std::move(*call)));
}

} // namespace llmc
