// What the reports of a plan share: which plan, which of its targets and programs, which device it is held against.
#pragma once

#include "runtime/PlanFile.h"
#include "tools/report/DeviceRates.h"
#include "tools/report/MeasuredTimes.h"

namespace llmc {

struct SectionBytes {
  std::string name;
  uint64_t bytes = 0;
};

struct PlanView {
  const Plan *plan = nullptr;
  uint64_t hash = 0;
  std::vector<SectionBytes> sections;          ///< of the file; empty for a plan that is no file yet
  std::vector<const TargetPrograms *> targets; ///< those that are shown, never empty
  DeviceRates device;
  MeasuredTimes times; ///< of targets.front(); may be empty
};

/// The sections of an opened plan file.
std::vector<SectionBytes> sectionsOf(const PlanFile &file);
/// The program that a report begins with: where times were measured the one that took most of them, else a training
/// step, else the first. There must be one.
const Program &mainProgram(const PlanView &view);
/// The time of a launch, or null where none was measured.
const LaunchTime *timeOf(const PlanView &view, ProgramKind kind, size_t launch);
/// "add+mul+reduce_sum": the ops of a generated kernel; else the kind of kernel.
std::string kernelText(const TargetPrograms &target, const Launch &launch);

} // namespace llmc
