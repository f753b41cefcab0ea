// Steps in order, each timed under its name as passes are.
#include "tools/llmc-compile/CompileModel.h"

#include "backend/PlanEmitter.h"
#include "passes/Passes.h"
#include "runtime/Say.h"
#include "tools/Outputs.h"
#include "tools/Threads.h"
#include "tools/llmc-compile/CheckNumerics.h"
#include "tools/llmc-compile/CompileReport.h"
#include "tools/llmc-compile/GraphSnapshot.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ThreadPool.h"

#include <filesystem>
#include <fmt/format.h>

using namespace mlir;

namespace llmc {

namespace {

class Compiler {
  template <typename Step> auto timed(StringRef name, Step step) {
    auto start = std::chrono::steady_clock::now();
    record.current = name.str();
    auto result = step();
    record.seconds[name] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

public:
  explicit Compiler(const CompileOptions &options)
      : options(options), pool(llvm::hardware_concurrency(defaultThreads())), context(MLIRContext::Threading::DISABLED),
        diagnostics(context, record.current) {
    if (defaultThreads() > 1)
      context.setThreadPool(pool);
    context.loadDialect<LlmcDialect>();
  }

  Status run() {
    LLMC_RETURN_IF_ERROR(checkOutputPlaces(outputsOf(options)));
    if (!options.dumpFolder.empty())
      LLMC_RETURN_IF_ERROR(checkOutputFolder(options.dumpFolder));
    FailureOr<ImportedModel> model = timed("import", [&] { return importOnnx(context, options.import); });
    if (failed(model))
      return diagnostics.error(options.import.path + ": the import failed");
    LLMC_RETURN_IF_ERROR(checkOutputs(model->externalFiles));
    if (!options.report.empty())
      addGraph(extras.graphs, *model->module, "graph", /*isKernels=*/false, "model",
               "The model's graph as it was imported.");
    OwningOpRef<ModuleOp> imported; // the weights are shared
    if (!options.checkNumerics.empty())
      imported = cast<ModuleOp>((*model->module)->clone());
    OwningOpRef<ModuleOp> second; // for the GPU beside a CPU
    if (options.hasCpu && options.hasCuda)
      second = cast<ModuleOp>((*model->module)->clone());
    Status passed = runPasses(*model->module, !options.hasCpu);
    if (passed && second)
      passed = runPasses(*second, /*isGpu=*/true);
    if (!options.remarks.empty()) // also where a pass failed: they say why
      LLMC_RETURN_IF_ERROR(diagnostics.write(options.remarks));
    LLMC_RETURN_IF_ERROR(passed);
    FailureOr<EmittedPlan> emitted =
        timed("code", [&] { return emit(*model->module, second ? *second : *model->module); });
    if (failed(emitted))
      return diagnostics.error("the code could not be generated");
    addSource(*model, *emitted);
    std::string numerics; // a plan that computes something else is not written
    if (imported)
      LLMC_RETURN_IF_ERROR(timed("check-numerics", [&] { return check(*imported, *model, *emitted, numerics); }));
    Status written = timed("write", [&] { return writePlan(options.output, emitted->plan, emitted->payload); });
    LLMC_RETURN_IF_ERROR(written);
    if (!options.report.empty())
      LLMC_RETURN_IF_ERROR(writeReport(*model, emitted->plan));
    report(*model, emitted->plan);
    if (!numerics.empty())
      say("{}\n", numerics);
    return {};
  }

  /// Also of a compilation that failed: they may say why.
  void showWarnings() const { printWarnings(diagnostics.getWarnings()); }

private:
  /// What the flags alone don't show: the model's weights may lie in other files.
  Status checkOutputs(const std::vector<std::string> &externalFiles) const {
    std::vector<NamedFile> inputs;
    for (const std::string &path : externalFiles)
      inputs.push_back({"the model's external data", path});
    std::string conflict = outputConflict(outputsOf(options), inputs);
    return conflict.empty() ? Status() : Error{conflict};
  }

  FailureOr<EmittedPlan> emit(ModuleOp module, ModuleOp gpuModule) {
    FailureOr<EmittedPlan> emitted = emitPlan(module, chosenIsas());
    if (succeeded(emitted) && options.hasCuda)
      for (const GpuIsa &isa : gpuIsas())
        if (failed(addGpuTarget(*emitted, gpuModule, isa)))
          return failure();
    return emitted;
  }

  /// A plan for both has the IR for GPUs in a folder of its own.
  Status runPasses(ModuleOp module, bool isGpu) {
    bool isSecond = isGpu && options.hasCpu;
    PassManager manager(&context, ModuleOp::getOperationName());
    PipelineOptions pipeline;
    pipeline.optimizer = options.optimizer;
    pipeline.isBf16 = options.precision == "bf16";
    pipeline.isGpu = isGpu;
    pipeline.bucketBytes = int64_t(options.bucketMib * (1 << 20));
    llvm::append_range(pipeline.disabled, options.disabled);
    buildPipeline(manager, pipeline);
    std::string folder = options.dumpFolder.empty() || !isSecond ? options.dumpFolder : options.dumpFolder + "/cuda";
    if (!folder.empty())
      LLMC_RETURN_IF_ERROR(checkOutputFolder(folder));
    auto watch = std::make_unique<PassWatch>(record, DumpOptions{folder, options.dumpAfter});
    watch->dump("import", module);
    manager.addInstrumentation(std::move(watch));
    if (!options.report.empty() && !isSecond)
      manager.addInstrumentation(std::make_unique<GraphWatch>(extras.graphs));
    if (failed(manager.run(module)))
      return diagnostics.error("pass " + record.current + " failed");
    return record.dumpStatus;
  }

  /// Fails where the step departs from the model; else `text` says how near it is.
  Status check(ModuleOp imported, ImportedModel &model, const EmittedPlan &emitted, std::string &text) {
    ScopedDiagnosticHandler remarks(&context, [](Diagnostic &diagnostic) { // the reference's are of no interest
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    Result<NumericsReport> found = checkNumerics({.optimized = *model.module,
                                                  .emitted = emitted,
                                                  .imported = imported,
                                                  .isBf16 = options.precision == "bf16",
                                                  .optimizer = options.optimizer,
                                                  .batch = options.checkNumerics,
                                                  .temporary = options.output + ".unchecked"});
    if (!found)
      return inContext("--check-numerics", found.error());
    text = found->text();
    return found->departure ? Status(Error{options.output + ": not written: " + text}) : Status();
  }

  SmallVector<CpuIsa> chosenIsas() const {
    SmallVector<CpuIsa> chosen;
    for (const CpuIsa &isa : cpuIsas())
      if (options.hasCpu && (options.isas.empty() || llvm::is_contained(options.isas, isa.name)))
        chosen.push_back(isa);
    return chosen;
  }

  /// What the plan says of where it comes from, and the way back there.
  void addSource(const ImportedModel &model, EmittedPlan &emitted) const {
    emitted.plan.producer = "llmc " LLMC_VERSION;
    emitted.plan.modelName = std::filesystem::path(options.import.path).filename().string();
    emitted.plan.precision = options.precision;
    emitted.plan.optimizer = options.optimizer;
    for (const Splice &splice : model.splice)
      emitted.plan.splice.push_back({splice.parameter, static_cast<ElementType>(elementTypeNumber(splice.type)),
                                     splice.transform, splice.modelOffset, splice.bytes});
    emitted.payload.model = std::as_bytes(std::span(model.strippedModel));
  }

  void report(const ImportedModel &model, const Plan &plan) {
    printLedger(model.ledger, options.isVerbose);
    if (!options.import.keepDropout)
      say("dropout is off\n");
    if (options.precision == "tf32" && options.hasCpu)
      say("--tf32: a CPU computes in f32\n");
    if (options.isVerbose)
      printRemarks(diagnostics.getRemarks());
    printKernels(*model.module, plan, diagnostics.getRemarks());
    printMemory(plan);
    printTimes(record);
    std::error_code error;
    say("{}: {:.1f} MB\n", options.output, double(std::filesystem::file_size(options.output, error)) / 1e6);
  }

  Status writeReport(const ImportedModel &model, const Plan &plan) {
    addGraph(extras.graphs, *model.module, programKindName(ProgramKind::stepFused), /*isKernels=*/true,
             "step after fusion", "The same step as it runs: every node is one launch.");
    addCompilation(extras, model.ledger, record, diagnostics.getRemarks());
    Result<PlanFile> file = PlanFile::open(options.output);
    LLMC_RETURN_IF_ERROR(file);
    Result<DeviceRates> device = findDevice("this", defaultThreads());
    LLMC_RETURN_IF_ERROR(device);
    PlanView view;
    view.plan = &plan;
    view.hash = file->hash();
    view.sections = sectionsOf(*file);
    view.targets = {&plan.targets.back()};
    view.device = *device;
    return writeReportPage(options.report, view, extras);
  }

  const CompileOptions &options;
  PageExtras extras;
  llvm::DefaultThreadPool pool;
  MLIRContext context;
  PassRecord record;
  DiagnosticRecord diagnostics;
};

} // namespace

std::vector<NamedFile> outputsOf(const CompileOptions &options) {
  return {{"--output", options.output}, {"--remarks", options.remarks}, {"--report", options.report}};
}

Status compileModel(const CompileOptions &options) {
  Compiler compiler(options);
  Status status = compiler.run();
  compiler.showWarnings();
  return status;
}

} // namespace llmc
