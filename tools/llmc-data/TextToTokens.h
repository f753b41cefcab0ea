// From text files to token files, streaming: the texts one after another through the tokenizer into one token file, its
// tail into a second one for validation.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct TextToTokensOptions {
  std::vector<std::string> texts; ///< paths, read in this order; "-" is standard input
  std::string output;
  double valFraction = 0; ///< in [0, 1): the share of the tokens, at the end, that goes into validationPath(output)
};

struct TextToTokensReport {
  uint64_t numTrain = 0;
  uint64_t numVal = 0;
};

/// Where the validation part goes: "train.bin" gives "train.val.bin", "train" gives "train.val".
std::string validationPath(const std::string &output);

/// One token a byte, vocabulary 256. Fails, and leaves no output, where a text can't be read, all are empty, a part
/// would be empty, or an output is one of the texts. Progress goes to standard error.
Result<TextToTokensReport> textToTokens(const TextToTokensOptions &options);

} // namespace llmc
