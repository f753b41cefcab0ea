// llmc-inspect: what is in a plan.
#include "tools/Flags.h"
#include "tools/Outputs.h"
#include "tools/llmc-inspect/InspectPlan.h"
#include "tools/report/DeviceRates.h"

namespace {

constexpr const char *kFooter =
    R"(Prints the plan's memory at the peak by category, and the kernels of a training step with their operations, their bytes and the
least time they can take on a device.

Example:
  llmc-inspect gpt.plan
  llmc-run gpt.plan --steps 5 --profile trace.json && llmc-inspect gpt.plan --profile trace.json
  llmc-inspect gpt.plan --device h200 --html gpt.html)";

void addFlags(CLI::App &app, llmc::InspectOptions &options) {
  app.add_option("PLAN", options.plan, "the plan, made by llmc-compile")->required()->type_name("");
  auto *json = app.add_flag("--json", options.isJson, "everything as JSON, on standard output");
  auto *html =
      app.add_option("--html", options.html, "a page to look at, in one file")->type_name("FILE")->excludes(json);
  app.add_option("--diff", options.diff, "what another plan does otherwise")
      ->type_name("OTHER")
      ->excludes(json)
      ->excludes(html);
  app.add_option("--profile", options.profile, "measured times, from llmc-run --profile")->type_name("TRACE.json");
  app.add_option("--device", options.device,
                 "the device that times are predicted for: this (measured now), or one by name")
      ->type_name("NAME")
      ->check(CLI::IsMember(llmc::deviceNames()))
      ->capture_default_str();
  app.add_option("--isa", options.isa, "the one target to show; default: all, the newest first")->type_name("NAME");
  app.add_option("--program", options.program, "the program whose kernels are listed; default: a training step")
      ->type_name("NAME");
  app.add_flag("--all", options.isWhole, "every launch and fusion, in order, not only the costliest");
}

} // namespace

int main(int argc, char **argv) {
  llmc::guardOutputs();
  llmc::InspectOptions options;
  CLI::App app("Says what is in a plan: kernels, fusions, memory, collectives, size by section.", "llmc-inspect");
  app.footer(kFooter);
  addFlags(app, options);
  if (std::optional<int> status = llmc::parseFlags(app, argc, argv))
    return *status;
  if (std::string message =
          llmc::outputConflict({{"--html", options.html}}, {{"PLAN", options.plan}, {"--profile", options.profile}});
      !message.empty())
    return llmc::wrongFlags(app, message);
  if (llmc::Status status = llmc::inspectPlan(options); !status)
    return llmc::failed(app, status.error());
  return llmc::finish(app, 0);
}
