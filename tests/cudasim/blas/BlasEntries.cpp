// cublasLt's entry points. Descriptors take any value, as the real ones do; the heuristic and the call itself then
// check everything, and say what is wrong by cudasimBlasProblem.
#include "tests/cudasim/blas/Problem.h"

#include <cstring>

using namespace llmc::cudasim;

namespace {

constexpr uint64_t kMagic = 0x6375646173696d21;
constexpr uint64_t kWorkspaceBytes = 4096;

/// What an algorithm remembers of the problem it was chosen for.
struct AlgoContent {
  uint64_t magic;
  uint64_t index;
  uint64_t workspaceBytes;
};
static_assert(sizeof(AlgoContent) <= sizeof(cublasLtMatmulAlgo_t));

struct Chosen {
  MatmulProblem problem;
  std::array<uint32_t, 4> alignments;
};

/// The library's own state, beside the driver's and under its lock.
struct BlasState {
  Simulator::Handles<int> handles;
  Simulator::Handles<MatmulOperation> operations;
  Simulator::Handles<MatrixLayout> layouts;
  Simulator::Handles<MatmulPreference> preferences;
  std::vector<Chosen> chosen;
  std::string problem;
};

BlasState &state() {
  static BlasState instance;
  return instance;
}

cublasStatus_t refuse(std::string why) {
  state().problem = std::move(why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <typename T> cublasStatus_t set(T &field, const void *value, size_t bytes) {
  if (bytes != sizeof(T))
    return refuse("an attribute of another size");
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// The descriptors as one problem; nothing where a handle is not ours.
std::optional<MatmulProblem> problemFrom(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  BlasState &s = state();
  MatmulOperation *op = s.operations.find(operation);
  MatrixLayout *layouts[] = {s.layouts.find(a), s.layouts.find(b), s.layouts.find(c), s.layouts.find(d)};
  if (!op || !layouts[0] || !layouts[1] || !layouts[2] || !layouts[3])
    return std::nullopt;
  return MatmulProblem{*op, *layouts[0], *layouts[1], *layouts[2], *layouts[3]};
}

bool sameKind(const MatmulProblem &one, const MatmulProblem &two) {
  return one.operation.sameKind(two.operation) && one.a == two.a && one.b == two.b && one.c == two.c && one.d == two.d;
}

/// The algorithm's workspace and alignments; the library's defaults without one.
std::string checkAlgo(const cublasLtMatmulAlgo_t *algo, const MatmulProblem &problem, size_t workspaceBytes,
                      std::array<uint32_t, 4> &alignments, uint64_t &needed) {
  alignments = {16, 16, 16, 16};
  needed = 0;
  if (!algo)
    return "";
  AlgoContent content;
  std::memcpy(&content, algo, sizeof content);
  if (content.magic != kMagic || content.index >= state().chosen.size())
    return "an algorithm that no heuristic gave";
  const Chosen &chosen = state().chosen[content.index];
  if (!sameKind(chosen.problem, problem))
    return "an algorithm that was chosen for another problem";
  if (content.workspaceBytes > workspaceBytes)
    return "the workspace is smaller than the algorithm's";
  alignments = chosen.alignments;
  needed = content.workspaceBytes;
  return "";
}

} // namespace

/// The last reason for a refusal, or "".
extern "C" const char *cudasimBlasProblem() {
  std::lock_guard guard(simulatorLock());
  return state().problem.c_str();
}

extern "C" {

size_t cublasLtGetVersion() { return 130100; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS           ? "CUBLAS_STATUS_SUCCESS"
         : status == CUBLAS_STATUS_INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
                                                   : "CUBLAS_STATUS_NOT_SUPPORTED";
}

/// Says why, where the real library has general words only.
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? cudasimBlasProblem() : "";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  std::lock_guard guard(simulatorLock());
  if (currentContext() == nullptr)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(state().handles.add(std::make_unique<int>()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  std::lock_guard guard(simulatorLock());
  return state().handles.remove(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  std::lock_guard guard(simulatorLock());
  auto made = std::make_unique<MatmulOperation>();
  made->compute = compute;
  made->scale = scale;
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(state().operations.add(std::move(made)));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  std::lock_guard guard(simulatorLock());
  return state().operations.remove(handle) ? CUBLAS_STATUS_SUCCESS : refuse("no such operation");
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  std::lock_guard guard(simulatorLock());
  MatmulOperation *operation = state().operations.find(handle);
  if (!operation)
    return refuse("no such operation");
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(operation->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(operation->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(operation->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(operation->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(operation->biasType, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return set(operation->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return set(operation->auxLd, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
    return set(operation->auxType, value, bytes);
  case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
    return set(operation->smCountTarget, value, bytes);
  default:
    return refuse("an attribute that the simulator does not know");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *handle, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  std::lock_guard guard(simulatorLock());
  auto made = std::make_unique<MatrixLayout>();
  *made = {.type = type, .rows = rows, .cols = cols, .ld = ld};
  *handle = reinterpret_cast<cublasLtMatrixLayout_t>(state().layouts.add(std::move(made)));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  std::lock_guard guard(simulatorLock());
  return state().layouts.remove(handle) ? CUBLAS_STATUS_SUCCESS : refuse("no such layout");
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes) {
  std::lock_guard guard(simulatorLock());
  MatrixLayout *layout = state().layouts.find(handle);
  if (!layout)
    return refuse("no such layout");
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return set(layout->order, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return set(layout->ld, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(layout->batchCount, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(layout->batchStride, value, bytes);
  default:
    return refuse("an attribute that the simulator does not know");
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *handle) {
  std::lock_guard guard(simulatorLock());
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(state().preferences.add(std::make_unique<MatmulPreference>()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  std::lock_guard guard(simulatorLock());
  return state().preferences.remove(handle) ? CUBLAS_STATUS_SUCCESS : refuse("no such preference");
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes) {
  std::lock_guard guard(simulatorLock());
  MatmulPreference *preference = state().preferences.find(handle);
  if (!preference)
    return refuse("no such preference");
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(preference->maxWorkspaceBytes, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  default:
    return refuse("an attribute that the simulator does not know");
  }
}

/// Always one algorithm, which wants some workspace where it may have it.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preferenceHandle, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned) {
  std::lock_guard guard(simulatorLock());
  std::optional<MatmulProblem> problem = problemFrom(operation, a, b, c, d);
  MatmulPreference *preference = state().preferences.find(preferenceHandle);
  *returned = 0;
  if (!state().handles.find(handle) || !problem || !preference || requested < 1)
    return refuse("a handle that does not exist");
  if (std::string why = problemOf(*problem); !why.empty())
    return refuse(why);
  uint64_t workspace = preference->maxWorkspaceBytes >= kWorkspaceBytes ? kWorkspaceBytes : 0;
  AlgoContent content{kMagic, state().chosen.size(), workspace};
  state().chosen.push_back({*problem, preference->alignments});
  results[0] = {};
  std::memcpy(&results[0].algo, &content, sizeof content);
  results[0].workspaceSize = workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t aLayout, const void *b, cublasLtMatrixLayout_t bLayout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t cLayout, void *d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceBytes, cudaStream_t streamHandle) {
  std::lock_guard guard(simulatorLock());
  std::optional<MatmulProblem> problem = problemFrom(operation, aLayout, bLayout, cLayout, dLayout);
  SimStream *stream = simulator()->streamOf(reinterpret_cast<CUstream>(streamHandle));
  if (!state().handles.find(handle) || !problem || !stream || !alpha || !beta)
    return refuse("a handle or a scalar that does not exist");
  auto address = [](const void *pointer) { return reinterpret_cast<uint64_t>(pointer); };
  MatmulPointers pointers{address(a),
                          address(b),
                          address(c),
                          address(d),
                          *static_cast<const float *>(alpha),
                          *static_cast<const float *>(beta)};
  std::array<uint32_t, 4> alignments;
  uint64_t needed = 0;
  for (const std::string &why : {problemOf(*problem), checkAlgo(algo, *problem, workspaceBytes, alignments, needed),
                                 problemOf(*problem, pointers, alignments)})
    if (!why.empty())
      return refuse(why);
  simulator()->enqueue(*stream, "cublasLtMatmul", [=, problem = *problem](Simulator &sim) -> Work {
    uint64_t number = sim.numSubmitted++;
    return [=, &sim](const LaunchOrder &order) {
      Simulator::Liveness live = sim.livenessOf("cublasLtMatmul", number, {});
      ++sim.counts.numLaunches;
      return runMatmul(sim, problem, pointers, address(workspace), needed, order, live.get());
    };
  });
  return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
