// The contraction on the host, summed in f64 and rounded once: what the real library is measured against.
#include "tests/cudasim/Float16.h"
#include "tests/cudasim/blas/Problem.h"

#include <cmath>
#include <cstring>

namespace llmc::cudasim {

namespace {

/// A matrix in device memory, looked at before it is touched.
class MatrixView {
public:
  MatrixView(Simulator &sim, uint64_t address, const MatrixLayout &layout)
      : sim(sim), address(address), layout(layout) {}

  /// Notes an access to all elements, line by line: what lies between them is somebody else's.
  std::optional<Fault> note(bool isWrite, const LaunchOrder &order, const LiveRanges *live, const char *name) const {
    uint64_t lines = layout.isColumnMajor() ? layout.cols : layout.rows;
    uint64_t length = layout.isColumnMajor() ? layout.rows : layout.cols;
    for (int32_t batch = 0; batch < layout.batchCount; ++batch)
      for (uint64_t line = 0; line < lines; ++line) {
        uint64_t first = layout.isColumnMajor() ? layout.offset(0, line, batch) : layout.offset(line, 0, batch);
        uint64_t at = address + first * layout.elementBytes();
        if (auto denial = sim.memory.noteRange(at, length * layout.elementBytes(), isWrite, order, live))
          return Fault{.kind = denial->kind,
                       .kernel = std::string("cublasLtMatmul, ") + name,
                       .address = at,
                       .detail = denial->detail};
      }
    return std::nullopt;
  }

  /// Rows x columns of one batch as f64, row by row.
  std::vector<double> read(int32_t batch, bool transposed, bool asTf32) const {
    std::vector<double> values(layout.rows * layout.cols);
    const std::byte *data = sim.memory.pointer(address);
    for (uint64_t row = 0; row < layout.rows; ++row)
      for (uint64_t col = 0; col < layout.cols; ++col) {
        float value = readElement(data + layout.offset(row, col, batch) * layout.elementBytes());
        if (asTf32)
          value = std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & 0xffffe000);
        values[transposed ? col * layout.rows + row : row * layout.cols + col] = value;
      }
    return values;
  }

  void write(uint64_t row, uint64_t col, int32_t batch, double value) const {
    std::byte *place = sim.memory.pointer(address) + layout.offset(row, col, batch) * layout.elementBytes();
    auto single = static_cast<float>(value);
    Bfloat half = toBfloat(single);
    if (layout.type == CUDA_R_32F)
      std::memcpy(place, &single, 4);
    else
      std::memcpy(place, &half, 2);
  }

private:
  float readElement(const std::byte *place) const {
    float single;
    Bfloat half;
    if (layout.type == CUDA_R_32F)
      return std::memcpy(&single, place, 4), single;
    return std::memcpy(&half, place, 2), toFloat(half);
  }

  Simulator &sim;
  uint64_t address;
  const MatrixLayout &layout;
};

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

double geluGradient(double x) {
  double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/// The epilogue's vector as a matrix of one column, and its auxiliary matrix.
MatrixLayout biasLayout(const MatmulProblem &p) {
  cudaDataType_t type = p.operation.biasType == -1 ? p.d.type : static_cast<cudaDataType_t>(p.operation.biasType);
  uint64_t length = p.operation.epilogue == CUBLASLT_EPILOGUE_BGRADB ? p.n() : p.m();
  return {.type = type, .rows = length, .cols = 1, .ld = static_cast<int64_t>(length)};
}

MatrixLayout auxLayout(const MatmulProblem &p) {
  cudaDataType_t type = p.operation.auxType == -1 ? p.d.type : static_cast<cudaDataType_t>(p.operation.auxType);
  return {.type = type, .rows = p.m(), .cols = p.n(), .ld = p.operation.auxLd};
}

/// op(A) op(B), (m, n) row by row.
std::vector<double> product(const MatmulProblem &p, const std::vector<double> &a, const std::vector<double> &b) {
  std::vector<double> result(p.m() * p.n());
  for (uint64_t i = 0; i < p.m(); ++i)
    for (uint64_t l = 0; l < p.k(); ++l) {
      double left = a[i * p.k() + l];
      for (uint64_t j = 0; j < p.n(); ++j)
        result[i * p.n() + j] += left * b[l * p.n() + j];
    }
  return result;
}

/// Sums over k of op(A)'s rows or op(B)'s columns.
void writeOperandSums(const MatmulProblem &p, const std::vector<double> &a, const std::vector<double> &b,
                      const MatrixView &bias) {
  bool ofA = p.operation.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  for (uint64_t i = 0; i < (ofA ? p.m() : p.n()); ++i) {
    double sum = 0;
    for (uint64_t l = 0; l < p.k(); ++l)
      sum += ofA ? a[i * p.k() + l] : b[l * p.n() + i];
    bias.write(i, 0, 0, sum);
  }
}

void applyEpilogue(const MatmulProblem &p, std::vector<double> &result, const MatrixView &bias, const MatrixView &aux) {
  const MatmulOperation &operation = p.operation;
  std::vector<double> added = operation.addsBias() ? bias.read(0, false, false) : std::vector<double>(p.m());
  std::vector<double> before = operation.isGeluGradient() ? aux.read(0, false, false) : std::vector<double>();
  for (uint64_t i = 0; i < p.m(); ++i) {
    double sum = 0;
    for (uint64_t j = 0; j < p.n(); ++j) {
      double &value = result[i * p.n() + j];
      value += added[i];
      if (operation.isGelu() && operation.usesAux())
        aux.write(i, j, 0, value);
      if (operation.isGelu())
        value = gelu(value);
      if (operation.isGeluGradient())
        value *= geluGradient(before[i * p.n() + j]);
      sum += value;
    }
    if (operation.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)
      bias.write(i, 0, 0, sum);
  }
}

} // namespace

std::optional<Fault> runMatmul(Simulator &sim, const MatmulProblem &p, const MatmulPointers &pointers,
                               uint64_t workspace, uint64_t workspaceBytes, const LaunchOrder &order,
                               const LiveRanges *live) {
  const MatmulOperation &operation = p.operation;
  MatrixLayout biasOf = biasLayout(p), auxOf = auxLayout(p);
  MatrixView a(sim, pointers.a, p.a), b(sim, pointers.b, p.b), c(sim, pointers.c, p.c), d(sim, pointers.d, p.d);
  MatrixView bias(sim, operation.bias, biasOf), aux(sim, operation.aux, auxOf);
  struct Use {
    const char *name;
    const MatrixView *view;
    bool isUsed;
    bool isWrite;
  };
  // The real kernels read all operands before the last tile is written, so in-place use of A or B is a race there.
  const Use uses[] = {{"A", &a, true, false},
                      {"B", &b, true, false},
                      {"C", &c, pointers.beta != 0, false},
                      {"bias", &bias, operation.addsBias(), false},
                      {"aux", &aux, operation.isGeluGradient(), false},
                      {"D", &d, true, true},
                      {"aux", &aux, operation.isGelu() && operation.usesAux(), true},
                      {"bias gradient", &bias, operation.writesBiasGradient(), true}};
  for (const Use &use : uses)
    if (use.isUsed)
      if (std::optional<Fault> fault = use.view->note(use.isWrite, order, live, use.name))
        return fault;
  if (workspaceBytes > 0)
    if (auto denial = sim.memory.noteRange(workspace, workspaceBytes, true, order, live))
      return Fault{
          .kind = denial->kind, .kernel = "cublasLtMatmul, workspace", .address = workspace, .detail = denial->detail};

  bool fast = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  for (int32_t batch = 0; batch < p.d.batchCount; ++batch) {
    std::vector<double> left = a.read(batch, operation.transA != CUBLAS_OP_N, fast);
    std::vector<double> right = b.read(batch, operation.transB != CUBLAS_OP_N, fast);
    std::vector<double> result = product(p, left, right);
    std::vector<double> old = pointers.beta != 0 ? c.read(batch, false, false) : std::vector<double>(result.size());
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = pointers.alpha * result[i] + pointers.beta * old[i];
    if (operation.epilogue == CUBLASLT_EPILOGUE_BGRADA || operation.epilogue == CUBLASLT_EPILOGUE_BGRADB)
      writeOperandSums(p, left, right, bias);
    else if (operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
      applyEpilogue(p, result, bias, aux);
    for (uint64_t i = 0; i < p.m(); ++i)
      for (uint64_t j = 0; j < p.n(); ++j)
        d.write(i, j, batch, result[i * p.n() + j]);
  }
  return std::nullopt;
}

} // namespace llmc::cudasim
