// llmc-compile: flags in, a plan out.
#include "backend/codegen/Codegen.h"
#include "passes/Passes.h"
#include "tools/Flags.h"
#include "tools/Outputs.h"
#include "tools/llmc-compile/CompileModel.h"

#include <fmt/ranges.h>
#include <limits>

using namespace mlir;

namespace {

constexpr const char *kFooter =
    R"(Prints the parameters, the kernels, the memory at its peak and the time each pass took. The same model, flags and build give the
same bytes.

Example:
  llmc-compile gpt.onnx -o gpt.plan
  llmc-compile gpt2.onnx --batch 4 --seq 256 --isa x86-64-v4 --remarks remarks.jsonl -o gpt2.plan)";

/// Words of the command line that later versions take.
constexpr const char *kReserved[] = {"--cubin", "--recompute", "--memory", "--mesh", "--zero"};

struct Flags {
  llmc::CompileOptions compile;
  bool isFp32 = false, isTf32 = false, isBf16 = false;
  std::vector<std::string> dims, targets = {"cpu"};
  std::string dropout = "keep";
};

std::vector<std::string> isaNames() {
  std::vector<std::string> names;
  for (const llmc::CpuIsa &isa : llmc::cpuIsas())
    names.push_back(isa.name);
  return names;
}

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  for (llvm::StringRef name : llmc::passNames())
    names.push_back(name.str());
  return names;
}

CLI::Validator oneOf(std::vector<std::string> names) { return CLI::IsMember(std::move(names)).description(""); }

void addModelFlags(CLI::App &app, Flags &flags) {
  llmc::ImportOptions &import = flags.compile.import;
  auto size = CLI::Range(int64_t{1}, std::numeric_limits<int32_t>::max() + int64_t{0}).description("");
  app.add_option("MODEL", import.path, "the model, an ONNX file")->required()->type_name("");
  app.add_option("-o,--output", flags.compile.output, "the plan to write")->required()->type_name("FILE");
  app.add_option("--batch", import.batch, "rows of the inputs, where the model leaves them open")
      ->type_name("N")
      ->check(size);
  app.add_option("--seq", import.seq, "tokens in a row, where the model leaves them open")->type_name("N")->check(size);
  app.add_option("--dim", flags.dims, "another open dimension by its name")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  app.add_option("--loss", import.lossOutput,
                 "the output that is the loss; default: a scalar output, else cross-entropy of the logits with a new "
                 "input 'targets'")
      ->type_name("OUTPUT");
  app.add_option("--optimizer", flags.compile.optimizer, "adamw or sgd")
      ->type_name("WORD")
      ->check(oneOf({"adamw", "sgd"}))
      ->capture_default_str();
  app.add_option("--decay-rule", import.decayRule, "what decays: matrices, all, or a regular expression on names")
      ->type_name("RULE")
      ->capture_default_str();
  app.add_option("--dropout", flags.dropout, "keep: the graph's own rates; 0: none")
      ->type_name("WORD")
      ->check(oneOf({"keep", "0"}))
      ->capture_default_str();
  app.add_flag("--as-exported", import.asExported,
               "take parameters as the file stores them, though the export looks damaged");
}

void addTargetFlags(CLI::App &app, Flags &flags) {
  auto *fp32 = app.add_flag("--fp32", flags.isFp32, "compute in f32 (the default)");
  auto *tf32 =
      app.add_flag("--tf32", flags.isTf32, "let a GPU multiply in tf32; a CPU computes in f32")->excludes(fp32);
  app.add_flag("--bf16", flags.isBf16,
               "contractions and attention in bf16, summed in f32; weights and optimizer in f32")
      ->excludes(fp32)
      ->excludes(tf32);
  app.add_option("--target", flags.targets, "what the plan runs on")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(oneOf({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--isa", flags.compile.isas,
                 fmt::format("CPU levels to generate code for, of {}; default: all", fmt::join(isaNames(), ", ")))
      ->type_name("LIST")
      ->delimiter(',')
      ->check(oneOf(isaNames()));
}

void addDebugFlags(CLI::App &app, Flags &flags) {
  std::vector<std::string> dumpable = passNames();
  dumpable.insert(dumpable.begin(), "import");
  app.add_option("--dump-ir", flags.compile.dumpFolder, "write the module after every pass to this folder")
      ->type_name("DIR");
  app.add_option("--bucket-mib", flags.compile.bucketMib,
                 "gradients that ranks sum in one message; one larger than the model overlaps with nothing")
      ->type_name("MIB")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--dump-ir-after", flags.compile.dumpAfter, "print the module after this pass on standard error")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->check(oneOf(dumpable));
  app.add_option("--disable-pass", flags.compile.disabled, "leave a pass out")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->check(oneOf(passNames()));
  app.add_option("--remarks", flags.compile.remarks, "what each pass did and declined, one JSON a line")
      ->type_name("FILE");
  app.add_option("--report", flags.compile.report,
                 "an HTML page: the graph before and after fusion, kernels, memory over time, parameters, remarks")
      ->type_name("FILE.html");
  app.add_option(
         "--check-numerics", flags.compile.checkNumerics,
         "run the step beside the unfused f32 one on this batch (safetensors, a tensor for each input) and name "
         "the first op that departs")
      ->type_name("FILE");
  app.add_flag("--verbose", flags.compile.isVerbose, "every parameter and remark on screen");
}

/// NAME=N into the import's options; what is wrong with it, or "".
std::string addDim(const std::string &text, llmc::ImportOptions &import) {
  size_t equals = text.rfind('=');
  int64_t size = 0;
  if (equals == std::string::npos || equals == 0 || !CLI::detail::lexical_cast(text.substr(equals + 1), size) ||
      size < 1)
    return fmt::format("--dim {}: expected NAME=N with N of 1 or more", text);
  import.dims[text.substr(0, equals)] = size;
  return "";
}

/// What the flags' own checks cannot see; "" when all is well.
std::string conflict(Flags &flags) {
  for (const std::string &dim : flags.dims)
    if (std::string message = addDim(dim, flags.compile.import); !message.empty())
      return message;
  for (const std::string &pass : flags.compile.disabled)
    if (llvm::StringRef reason = llmc::whyRequired(pass); !reason.empty())
      return fmt::format("--disable-pass {}: there is no plan without this pass: {}", pass, reason.str());
  if (!llvm::is_contained(flags.targets, "cpu")) {
    if (!flags.compile.checkNumerics.empty())
      return "--check-numerics runs the step on a CPU: --target cpu,cuda";
    if (!flags.compile.isas.empty())
      return "--isa names levels of CPUs, and --target has none";
  }
  return llmc::outputConflict(llmc::outputsOf(flags.compile), {{"MODEL", flags.compile.import.path},
                                                               {"--check-numerics", flags.compile.checkNumerics}});
}

} // namespace

int main(int argc, char **argv) {
  llmc::guardOutputs();
  Flags flags;
  CLI::App app(
      "Compiles an ONNX model into a plan: its whole training step as machine code, a schedule and a memory layout.",
      "llmc-compile");
  app.footer(kFooter);
  addModelFlags(app, flags);
  addTargetFlags(app, flags);
  addDebugFlags(app, flags);
  if (std::optional<int> status = llmc::parseFlags(app, argc, argv, kReserved))
    return *status;
  if (std::string message = conflict(flags); !message.empty())
    return llmc::wrongFlags(app, message);
  flags.compile.hasCpu = llvm::is_contained(flags.targets, "cpu");
  flags.compile.hasCuda = llvm::is_contained(flags.targets, "cuda");
  flags.compile.import.keepDropout = flags.dropout == "keep";
  // The pass is all that --bf16 asks for: without it the plan is an f32 one and says so.
  bool isBf16 = flags.isBf16 && !llvm::is_contained(flags.compile.disabled, "assign-precision");
  flags.compile.precision = isBf16 ? "bf16" : flags.isTf32 ? "tf32" : "fp32";
  if (llmc::Status status = llmc::compileModel(flags.compile); !status)
    return llmc::failed(app, status.error());
  return llmc::finish(app, 0);
}
