// A model must not make us read a file that is not its own: locations are relative, without "..", and no link on the
// way leads elsewhere.
#include "frontend/ExternalData.h"

#include "frontend/OnnxError.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace path = llvm::sys::path;
namespace fs = llvm::sys::fs;

namespace llmc {

static bool parseNumber(llvm::StringRef text, uint64_t &value) {
  return !text.empty() && !text.getAsInteger(10, value);
}

std::optional<ExternalData> parseExternalData(const onnx::TensorProto &tensor, std::string &error) {
  ExternalData data;
  bool hasLocation = false;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    uint64_t number = 0;
    if (entry.key() == "location") {
      data.location = entry.value();
      hasLocation = true;
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (!parseNumber(entry.value(), number)) {
        error = "the " + entry.key() + " of its external data is no number: " + inQuotes(entry.value());
        return std::nullopt;
      }
      if (entry.key() == "offset")
        data.offset = number;
      else
        data.length = number;
    }
  }
  if (!hasLocation || data.location.empty()) {
    error = hasLocation ? "the location of its external data is empty" : "its external data has no location";
    return std::nullopt;
  }
  return data;
}

std::optional<std::string> resolveExternalFile(llvm::StringRef modelPath, llvm::StringRef location,
                                               std::string &error) {
  auto refuse = [&](const std::string &why) {
    error = "its external data " + inQuotes(location) + " " + why;
    return std::nullopt;
  };
  if (location.contains('\0') || path::is_absolute(location) || location.starts_with("~"))
    return refuse("is not a path relative to the model's folder");
  llvm::SmallString<256> file = path::parent_path(modelPath);
  if (file.empty())
    file = ".";
  for (llvm::StringRef part : llvm::make_range(path::begin(location), path::end(location))) {
    if (part == "..")
      return refuse("lies outside the model's folder");
    path::append(file, part);
    fs::file_status status;
    if (fs::status(file, status, /*follow=*/false) || status.type() == fs::file_type::file_not_found)
      return refuse("does not exist");
    if (status.type() == fs::file_type::symlink_file)
      return refuse("is a symbolic link; put the file itself into the model's folder");
  }
  if (!fs::is_regular_file(file))
    return refuse("is not a regular file");
  return std::string(file);
}

} // namespace llmc
