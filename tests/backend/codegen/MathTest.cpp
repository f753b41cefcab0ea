// The functions that generated code computes by polynomials, in units in the last place against libm's f64, over the
// whole of f32.
#include "tests/backend/codegen/ExecutableCode.h"
#include "tests/backend/codegen/FusionCase.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace llmc {
namespace {

struct Function {
  const char *op;
  double (*exact)(double);
  double largestUlp;
  float limit = std::numeric_limits<float>::infinity(); ///< of |x|
};

/// Every 1013th float, so all exponents, both signs, subnormals and NaNs; and the special ones.
std::vector<float> sampleFloats(float limit) {
  std::vector<float> samples{0.0f,   -0.0f,  INFINITY, -INFINITY, NAN,    88.7228f,
                             88.73f, -87.4f, -103.9f,  -104.1f,   1e-45f, -1e-45f};
  for (uint64_t bits = 0; bits < 0x100000000ull; bits += 1013)
    samples.push_back(std::bit_cast<float>(uint32_t(bits)));
  std::erase_if(samples, [&](float x) { return std::fabs(x) > limit; });
  return samples;
}

/// The distance from the true value, in the spacing of f32 there.
double ulpsBetween(float got, double exact) {
  float nearest = float(exact);
  if (std::isnan(nearest) || std::isnan(got))
    return std::isnan(nearest) == std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(got))
    return got == nearest ? 0 : INFINITY;
  float magnitude = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  return std::fabs(got - exact) / (double(std::nextafter(magnitude, INFINITY)) - magnitude);
}

class MathTest : public testing::TestWithParam<Function> {};

TEST_P(MathTest, IsExactToUlps) {
  const Function &function = GetParam();
  std::vector<float> x = sampleFloats(function.limit), y(x.size() + 16);
  std::string type = "tensor<" + std::to_string(x.size()) + "xf32>", element = std::to_string(x.size()) + "xf32";
  FusionSpec spec{.space = {int64_t(x.size())},
                  .inputs = {element},
                  .body = "%0 = llmc." + std::string(function.op) + " %a0 : " + type + "\nllmc.yield %0 : " + type,
                  .outputs = {element}};
  mlir::OwningOpRef<mlir::ModuleOp> module = parseFusion(spec);
  forEachIsa(fusionIn(*module), [&](const CpuIsa &isa, GeneratedKernel kernel) {
    void *operands[] = {x.data(), y.data()};
    kernel(operands, 0, 1, 0, int64_t(x.size()));
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (double ulps = ulpsBetween(y[i], function.exact(x[i])); ulps > worst)
        worst = ulps, where = x[i];
    EXPECT_LE(worst, function.largestUlp) << function.op << "(" << where << ")";
    RecordProperty(isa.name + "-ulp", std::to_string(worst));
  });
}

double exactExp(double x) { return std::exp(x); }
double exactLog(double x) { return std::log(x); }
double exactTanh(double x) { return std::tanh(x); }
double exactErf(double x) { return std::erf(x); }
double exactSin(double x) { return std::sin(x); }
double exactCos(double x) { return std::cos(x); }
double exactSqrt(double x) { return std::sqrt(x); }

INSTANTIATE_TEST_SUITE_P(Functions, MathTest,
                         testing::Values(Function{"exp", exactExp, 1.5}, Function{"log", exactLog, 1.5},
                                         Function{"tanh", exactTanh, 3}, Function{"erf", exactErf, 2},
                                         Function{"sin", exactSin, 1.5, 1e9f}, Function{"cos", exactCos, 1.5, 1e9f},
                                         Function{"sqrt", exactSqrt, 0.5}),
                         [](const auto &info) { return std::string(info.param.op); });

} // namespace
} // namespace llmc
