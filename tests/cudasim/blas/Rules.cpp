// cublasLt's documented rules, one after the other, each with words.
#include "tests/cudasim/blas/Problem.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

bool isStored(cudaDataType_t type) { return type == CUDA_R_32F || type == CUDA_R_16BF; }

std::string layoutProblem(const char *name, const MatrixLayout &layout) {
  if (!isStored(layout.type))
    return fmt::format("{} has element type {}, f32 and bf16 are known", name, static_cast<int>(layout.type));
  if (layout.rows == 0 || layout.cols == 0)
    return fmt::format("{} is empty", name);
  if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW)
    return fmt::format("{} has order {}", name, layout.order);
  uint64_t least = layout.isColumnMajor() ? layout.rows : layout.cols;
  if (layout.ld < 0 || static_cast<uint64_t>(layout.ld) < least)
    return fmt::format("{} has leading dimension {}, at least {} is needed", name, layout.ld, least);
  if (layout.batchCount < 1)
    return fmt::format("{} has {} batches", name, layout.batchCount);
  return "";
}

std::string shapeProblem(const MatmulProblem &p) {
  bool transA = p.operation.transA != CUBLAS_OP_N, transB = p.operation.transB != CUBLAS_OP_N;
  uint64_t aRows = transA ? p.a.cols : p.a.rows, bRows = transB ? p.b.cols : p.b.rows;
  uint64_t bCols = transB ? p.b.rows : p.b.cols;
  if (aRows != p.m() || bCols != p.n() || bRows != p.k())
    return fmt::format("op(A) is {}x{}, op(B) {}x{}, D {}x{}", aRows, p.k(), bRows, bCols, p.m(), p.n());
  if (p.c.rows != p.m() || p.c.cols != p.n() || p.c.type != p.d.type || p.c.order != p.d.order)
    return fmt::format("C is {}x{}, D {}x{}: shape, type and order must be the same", p.c.rows, p.c.cols, p.m(), p.n());
  if (p.a.batchCount != p.d.batchCount || p.b.batchCount != p.d.batchCount || p.c.batchCount != p.d.batchCount)
    return "A, B, C and D have different numbers of batches";
  uint64_t extent = p.d.offset(p.m() - 1, p.n() - 1) + 1;
  if (p.d.batchCount > 1 && static_cast<uint64_t>(std::abs(p.d.batchStride)) < extent)
    return fmt::format("the batches of D overlap: stride {}, {} elements each", p.d.batchStride, extent);
  return "";
}

std::string typeProblem(const MatmulProblem &p) {
  if (p.a.type != p.b.type)
    return "A and B have different types";
  bool fast = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!fast && p.operation.compute != CUBLAS_COMPUTE_32F)
    return fmt::format("compute type {}", static_cast<int>(p.operation.compute));
  if (fast && p.a.type != CUDA_R_32F)
    return "TF32 computes on f32 only";
  if (p.a.type == CUDA_R_32F && p.d.type != CUDA_R_32F)
    return "f32 operands give an f32 result";
  if (p.operation.scale != CUDA_R_32F)
    return "alpha and beta must be f32";
  return "";
}

std::string epilogueProblem(const MatmulProblem &p) {
  const MatmulOperation &operation = p.operation;
  switch (operation.epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
    return "";
  case CUBLASLT_EPILOGUE_BIAS:
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU_AUX:
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DGELU:
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
  case CUBLASLT_EPILOGUE_BGRADA:
  case CUBLASLT_EPILOGUE_BGRADB:
    break;
  default:
    return fmt::format("epilogue {}", operation.epilogue);
  }
  if (!p.d.isColumnMajor())
    return "an epilogue needs a column-major D";
  if (operation.usesAux() && (operation.auxLd < static_cast<int64_t>(p.m()) || operation.auxLd % 8 != 0))
    return fmt::format("the epilogue's auxiliary leading dimension is {}, a multiple of 8 of at least {} is needed",
                       operation.auxLd, p.m());
  auto isKnown = [](int32_t type) { return type == -1 || type == CUDA_R_32F || type == CUDA_R_16BF; };
  if (!isKnown(operation.biasType) || !isKnown(operation.auxType))
    return fmt::format("the epilogue's bias has type {}, its auxiliary matrix {}", operation.biasType,
                       operation.auxType);
  if (p.d.batchCount > 1)
    return "an epilogue with several batches";
  return "";
}

} // namespace

bool MatmulOperation::sameKind(const MatmulOperation &other) const {
  return compute == other.compute && transA == other.transA && transB == other.transB && epilogue == other.epilogue &&
         auxLd == other.auxLd && biasType == other.biasType && auxType == other.auxType;
}

std::string problemOf(const MatmulProblem &problem) {
  const std::pair<const char *, const MatrixLayout *> layouts[] = {
      {"A", &problem.a}, {"B", &problem.b}, {"C", &problem.c}, {"D", &problem.d}};
  for (const auto &[name, layout] : layouts)
    if (std::string found = layoutProblem(name, *layout); !found.empty())
      return found;
  for (auto rule : {shapeProblem, typeProblem, epilogueProblem})
    if (std::string found = rule(problem); !found.empty())
      return found;
  return "";
}

std::string problemOf(const MatmulProblem &problem, const MatmulPointers &pointers,
                      const std::array<uint32_t, 4> &alignments) {
  const uint64_t addresses[] = {pointers.a, pointers.b, pointers.c, pointers.d};
  const MatrixLayout *layouts[] = {&problem.a, &problem.b, &problem.c, &problem.d};
  for (int i = 0; i < 4; ++i) {
    char name = "ABCD"[i];
    if (i == 2 && pointers.beta == 0)
      continue; // C is not read
    if (addresses[i] == 0)
      return fmt::format("{} is null", name);
    uint64_t needed = std::max<uint64_t>(alignments[i], layouts[i]->elementBytes());
    if (addresses[i] % needed != 0)
      return fmt::format("{} is not aligned to {} bytes, as the algorithm was chosen for", name, needed);
  }
  if (problem.operation.usesBias() && problem.operation.bias == 0)
    return "the epilogue's bias pointer is missing";
  if (problem.operation.usesAux() && (problem.operation.aux == 0 || problem.operation.aux % 16 != 0))
    return "the epilogue's auxiliary pointer is missing or not aligned to 16 bytes";
  return "";
}

} // namespace llmc::cudasim
