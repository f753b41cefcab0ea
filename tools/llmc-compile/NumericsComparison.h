// Which results of the optimized step agree with those of the reference, an unfused f32 step of the same model:
// - A node's own result in the forward pass has one counterpart: the last that the reference computes for that node.
// - So have variables and outputs after the step: parameters, moments, loss, gradient norm.
// - Any other result (gradients of activations, intermediate ones) may have several counterparts or, after fusion,
//   none; that it agrees with one of them is evidence that all before it is right, that it agrees with none is not
//   enough to call it wrong.
#pragma once

#include "tools/llmc-compile/NumericsBound.h"
#include "tools/llmc-compile/StepRun.h"
#include "tools/llmc-compile/StepValues.h"

#include <string>
#include <vector>

namespace llmc {

enum class Outcome { unchecked, agrees, departs };

/// What is known of one result of the optimized program.
struct Verdict {
  std::vector<size_t> candidates; ///< values of the reference, in its order
  bool isExact = false;           ///< the only candidate is its counterpart
  Outcome outcome = Outcome::unchecked;
  Difference difference;
};

/// A result that must agree and does not.
struct Departing {
  mlir::Value value;
  Difference difference;
};

struct NumericsComparison {
  StepValues optimized;
  std::vector<Verdict> verdicts; ///< of optimized.values
  std::vector<Departing> departing;
  size_t numLeftBehind = 0; ///< variables and outputs compared after the step
  double largestShare = 0;  ///< of the bound, among what agrees
  std::string largestAt;    ///< the name of where
};

/// Runs both steps, launch by launch. Fails where a launch does.
Result<NumericsComparison> compareSteps(ProgramOp referenceStep, StepRun &referenceRun, ProgramOp optimizedStep,
                                        StepRun &optimizedRun, bool isBf16);

} // namespace llmc
