// llmc-data: text to token files. Flags in, one job, a line for each file made.
#include "runtime/Say.h"
#include "tools/Flags.h"
#include "tools/Outputs.h"
#include "tools/llmc-data/TextToTokens.h"

static constexpr const char *kFooter =
    R"(Output: llm.c's format, 256 int32 (magic 20240520, version 1, number of tokens), then uint16 tokens. With
--val-fraction F the last F of the tokens goes into a second file beside it: train.bin, train.val.bin.

Example:
  llmc-data book.txt -o train.bin --val-fraction 0.1
  bible -f "Gen1:1-Rev22:21" | llmc-data - -o train.bin)";

int main(int argc, char **argv) {
  llmc::guardOutputs();
  llmc::TextToTokensOptions options;
  std::string tokenizer = "bytes";
  CLI::App app("Turns text into a token file for llmc-run, in one pass, streaming.", "llmc-data");
  app.footer(kFooter);
  app.add_option("TEXT", options.texts, "text files, one after another; - is standard input")->required();
  app.add_option("-o,--output", options.output, "the token file to write")->required();
  app.add_option("--val-fraction", options.valFraction, "share of the tokens, at the end, for validation; 0 is none")
      ->capture_default_str();
  app.add_option("--tokenizer", tokenizer, "bytes: one token a byte, vocabulary 256")->capture_default_str();
  if (std::optional<int> status = llmc::parseFlags(app, argc, argv))
    return *status;

  if (tokenizer.ends_with(".json"))
    return llmc::wrongFlags(app,
                            fmt::format("--tokenizer {}: tokenizer files are not built yet, only bytes is", tokenizer));
  if (tokenizer != "bytes")
    return llmc::wrongFlags(app, fmt::format("--tokenizer {}: expected bytes", tokenizer));
  if (!(options.valFraction >= 0 && options.valFraction < 1))
    return llmc::wrongFlags(app, fmt::format("--val-fraction {}: expected 0 or more and below 1", options.valFraction));

  llmc::Result<llmc::TextToTokensReport> report = llmc::textToTokens(options);
  if (!report)
    return llmc::failed(app, report.error());
  llmc::say("{}: {} tokens, vocabulary 256\n", options.output, report->numTrain);
  if (report->numVal > 0)
    llmc::say("{}: {} tokens, the last part of the text\n", llmc::validationPath(options.output), report->numVal);
  return llmc::finish(app, 0);
}
