// cuDNN's fused attention through NVIDIA's header-only frontend, alone in this file: it is large, throws, and keeps the
// library's handle in a variable of its own, which must have this name.
#include "backend/cuda/Attention.h"
#include "runtime/KernelArguments.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unordered_map>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include <cudnn_frontend.h>
#pragma GCC diagnostic pop

namespace cudnn_frontend {
void *cudnn_dlhandle = nullptr;
}

namespace llmc::cuda {

namespace fe = cudnn_frontend;

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// What a call gave, where it throws or returns an error.
template <typename Call> Status guarded(Call call) {
  try {
    fe::error_t error = call();
    return error.is_good() ? Status() : Error{error.get_message()};
  } catch (const std::exception &thrown) {
    return Error{thrown.what()};
  }
}

class CudnnPlan : public AttentionPlan {
public:
  CudnnPlan(const Launch &launch, cudnnHandle_t handle) : launch(launch), handle(handle) {}

  /// Describes the launch as a graph; its tensors are named by the operands' places.
  void describe() {
    auto integer = [&](const char *name) { return integerArgument(launch, name); };
    const int64_t batch = integer("batch"), queries = integer("queries"), keys = integer("keys"),
                  heads = integer("heads"), kvHeads = integer("kvHeads"), size = integer("headSize");
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    // (B, H, T, D) in the memory of (B, T, H, D).
    auto properties = [&](const char *name, int64_t numHeads, int64_t tokens, int64_t stride) {
      return fe::graph::Tensor_attributes()
          .set_name(name)
          .set_uid(placeOf(name))
          .set_dim({batch, numHeads, tokens, size})
          .set_stride({tokens * stride, size, stride, 1});
    };
    Tensor q = graph.tensor(properties("q", heads, queries, integer("qRowStride")));
    Tensor k = graph.tensor(properties("k", kvHeads, keys, integer("kRowStride")));
    Tensor v = graph.tensor(properties("v", kvHeads, keys, integer("vRowStride")));
    auto result = [&](const Tensor &tensor, const fe::graph::Tensor_attributes &like) {
      tensor->set_output(true)
          .set_name(like.get_name())
          .set_uid(like.get_uid())
          .set_dim(like.get_dim())
          .set_stride(like.get_stride());
    };
    auto outProperties = [&](const char *name) { return properties(name, heads, queries, heads * size); };
    auto lseProperties = fe::graph::Tensor_attributes()
                             .set_name("lse")
                             .set_uid(placeOf("lse"))
                             .set_dim({batch, heads, queries, 1})
                             .set_stride({heads * queries, queries, 1, 1})
                             .set_data_type(fe::DataType_t::FLOAT);
    if (launch.kind == KernelKind::Attention) {
      auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
      setOptions(options);
      auto [out, lse] = graph.sdpa(q, k, v, options);
      result(out, outProperties("out"));
      result(lse, lseProperties);
      lse->set_data_type(fe::DataType_t::FLOAT);
    } else {
      Tensor out = graph.tensor(outProperties("out")), dOut = graph.tensor(outProperties("dOut"));
      Tensor lse = graph.tensor(lseProperties);
      auto options = fe::graph::SDPA_backward_attributes().set_name("attention_grad").set_deterministic_algorithm(true);
      setOptions(options);
      auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dOut, lse, options);
      result(dq, properties("dq", heads, queries, integer("dqRowStride")));
      result(dk, properties("dk", kvHeads, keys, integer("dkRowStride")));
      result(dv, properties("dv", kvHeads, keys, integer("dvRowStride")));
    }
  }

  Status build(std::shared_ptr<const fe::DeviceProperties> device, int computeCapability) {
    return guarded([&]() -> fe::error_t {
      graph.set_sm_version(computeCapability); // else it asks the CUDA runtime, which need not be there
      if (device)
        graph.set_device_properties(device);
      describe();
      fe::error_t error = graph.validate();
      if (error.is_good())
        error = device ? graph.build_operation_graph() : graph.build_operation_graph(handle);
      if (error.is_good())
        error = graph.create_execution_plans({fe::HeurMode_t::A});
      if (error.is_good())
        error = graph.check_support();
      if (error.is_good())
        error = graph.build_plans();
      int64_t bytes = 0;
      if (error.is_good())
        error = graph.get_workspace_size(bytes);
      workspace = static_cast<uint64_t>(bytes);
      return error;
    });
  }

  uint64_t workspaceBytes() const override { return workspace; }

  Status submit(CUstream stream, std::span<const CUdeviceptr> operands, CUdeviceptr workspace) override {
    std::unordered_map<int64_t, void *> pointers;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i])
        pointers[static_cast<int64_t>(i) + 1] = reinterpret_cast<void *>(operands[i] + offsetOf(i));
    return guarded([&]() -> fe::error_t {
      if (fe::detail::set_stream(handle, stream) != CUDNN_STATUS_SUCCESS)
        return {fe::error_code_t::HANDLE_ERROR, "cuDNN does not take the stream"};
      return graph.execute(handle, pointers, reinterpret_cast<void *>(workspace));
    });
  }

private:
  /// Tensors are numbered from 1.
  int64_t placeOf(const char *operand) const {
    return static_cast<int64_t>(argumentPlace(operand, kernelInfo(launch.kind).operands)) + 1;
  }

  /// Bytes from an operand's start to its first row: some share a buffer.
  uint64_t offsetOf(size_t place) const {
    std::vector<const char *> names{"q", "k", "v"};
    if (launch.kind == KernelKind::AttentionGrad)
      names.insert(names.end(), {"dq", "dk", "dv"});
    for (const char *name : names)
      if (placeOf(name) == static_cast<int64_t>(place) + 1)
        return 2 * static_cast<uint64_t>(integerArgument(launch, std::string(name) + "Offset"));
    return 0;
  }

  template <typename Options> void setOptions(Options &options) const {
    options.set_attn_scale(static_cast<float>(numberArgument(launch, "scale")));
    if (integerArgument(launch, "causal")) {
      // Query t sees keys up to t + S - T.
      bool isSquare = integerArgument(launch, "queries") == integerArgument(launch, "keys");
      options.set_diagonal_alignment(isSquare ? fe::DiagonalAlignment_t::TOP_LEFT
                                              : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
      options.set_diagonal_band_right_bound(0);
    }
    if (int64_t window = integerArgument(launch, "window"))
      options.set_diagonal_band_left_bound(static_cast<int>(window));
  }

  const Launch launch;
  cudnnHandle_t handle;
  fe::graph::Graph graph;
  uint64_t workspace = 0;
};

/// What needs no library to know.
std::string declinedBecause(const Launch &launch) {
  auto integer = [&](const char *name) { return integerArgument(launch, name); };
  if (typeArgument(launch, "type") != ElementType::bf16)
    return "cuDNN's attention takes bf16, not f32";
  if (operandArgument(launch, "mask").space != Space::none)
    return "cuDNN's attention takes no mask operand";
  if (integer("window") && !integer("causal"))
    return "cuDNN's attention takes a window only with a causal mask";
  if (integer("causal") && integer("queries") > integer("keys"))
    return "cuDNN's attention takes no causal mask over more queries than keys";
  return "";
}

class Cudnn : public AttentionLibrary {
public:
  explicit Cudnn(int computeCapability) : computeCapability(computeCapability) {}
  ~Cudnn() override {
    if (handle)
      (void)fe::detail::destroy_handle(handle);
  }

  Status open(const std::string &path) {
    if (!fe::cudnn_dlhandle)
      fe::cudnn_dlhandle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    return fe::cudnn_dlhandle ? Status() : Error{std::string("cannot load cuDNN: ") + dlerror()};
  }
  Status useCurrentDevice() {
    return guarded([&]() -> fe::error_t {
      if (cudnnStatus_t status = fe::detail::create_handle(&handle); status != CUDNN_STATUS_SUCCESS)
        return {fe::error_code_t::HANDLE_ERROR, std::string("cuDNN: ") + fe::detail::get_error_string(status)};
      return {};
    });
  }
  Status useDevice(const std::string &json) {
    auto described = std::make_shared<fe::DeviceProperties>();
    std::vector<uint8_t> bytes(json.begin(), json.end());
    Status status = guarded([&] { return described->deserialize(bytes); });
    device = described;
    return status;
  }

  Result<std::unique_ptr<AttentionPlan>> take(const Launch &launch) override {
    if (std::string why = declinedBecause(launch); !why.empty())
      return Error{why};
    auto plan = std::make_unique<CudnnPlan>(launch, handle);
    if (Status status = plan->build(device, computeCapability); !status)
      return Error{"cuDNN declines: " + status.error().message};
    return std::unique_ptr<AttentionPlan>(std::move(plan));
  }

private:
  const int computeCapability;
  cudnnHandle_t handle = nullptr;
  std::shared_ptr<const fe::DeviceProperties> device;
};

} // namespace

Result<std::unique_ptr<AttentionLibrary>> openCudnn(int computeCapability, const std::string &path) {
  auto library = std::make_unique<Cudnn>(computeCapability);
  LLMC_RETURN_IF_ERROR(library->open(path));
  LLMC_RETURN_IF_ERROR(library->useCurrentDevice());
  return std::unique_ptr<AttentionLibrary>(std::move(library));
}

Result<std::unique_ptr<AttentionLibrary>> openCudnnFor(const std::string &deviceJson, int computeCapability,
                                                       const std::string &path) {
  auto library = std::make_unique<Cudnn>(computeCapability);
  LLMC_RETURN_IF_ERROR(library->open(path));
  LLMC_RETURN_IF_ERROR(library->useDevice(deviceJson));
  return std::unique_ptr<AttentionLibrary>(std::move(library));
}

} // namespace llmc::cuda
