// What a compilation made, in words for the terminal.
#pragma once

#include "frontend/ParameterLedger.h"
#include "runtime/Plan.h"
#include "tools/llmc-compile/PassWatch.h"
#include "tools/llmc-compile/Remarks.h"
#include "tools/report/ReportPage.h"

namespace llmc {

/// Parameters, constants and inputs; the middle of a long list is left out unless `isWhole`.
void printLedger(const Ledger &ledger, bool isWhole);
/// On standard error, a line each.
void printWarnings(const std::vector<std::string> &warnings);
/// Every remark, a line each.
void printRemarks(const std::vector<Remark> &remarks);
/// Kernels of a training step by kind, and how many remarks tell of what was declined.
void printKernels(mlir::ModuleOp module, const Plan &plan, const std::vector<Remark> &remarks);
/// Each program's memory at its peak, by category, against the lower bound.
void printMemory(const Plan &plan);
/// What only the compilation knows, for the page: the ledger, the time of each pass, the remarks.
void addCompilation(PageExtras &extras, const Ledger &ledger, const PassRecord &record,
                    const std::vector<Remark> &remarks);
/// Seconds by pass, longest first.
void printTimes(const PassRecord &record);

} // namespace llmc
