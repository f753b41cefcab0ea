#include "tools/llmc-gpt/ModelFile.h"

#include "runtime/AtomicFile.h"
#include "tools/Progress.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace llmc {

static constexpr uint64_t kPageBytes = 4096;
static constexpr uint64_t kExternalTensorBytes =
    64 << 10; ///< smaller ones stay in the model, where they are easy to look at
static constexpr uint64_t kPieceBytes = 4 << 20;

static uint64_t totalBytes(const std::vector<GptTensor> &tensors) {
  uint64_t total = 0;
  for (const GptTensor &tensor : tensors)
    total += tensor.numBytes();
  return total;
}

static onnx::TensorProto &declare(onnx::GraphProto &graph, const GptTensor &tensor) {
  onnx::TensorProto &proto = *graph.add_initializer();
  proto.set_name(tensor.name);
  proto.set_data_type(tensor.rule == TensorRule::causalMask ? onnx::TensorProto::BOOL : onnx::TensorProto::FLOAT);
  for (int64_t dim : tensor.shape)
    proto.add_dims(dim);
  return proto;
}

static void fillInline(onnx::TensorProto &proto, const GptTensor &tensor, uint64_t seed) {
  std::string &bytes = *proto.mutable_raw_data();
  bytes.resize(tensor.numBytes());
  fillTensor(tensor, seed, 0, std::as_writable_bytes(std::span(bytes)));
}

static void setExternal(onnx::TensorProto &proto, const char *key, const std::string &value) {
  onnx::StringStringEntryProto &entry = *proto.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

/// Appends the tensor's values to the data file at the next page and says in the model where they are.
static Status fillExternal(onnx::TensorProto &proto, const GptTensor &tensor, uint64_t seed, AtomicFile &data,
                           Progress &progress) {
  uint64_t offset = (data.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
  LLMC_RETURN_IF_ERROR(data.resize(offset));
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  setExternal(proto, "location", data.path().substr(data.path().rfind('/') + 1)); // npos + 1 is 0: the whole name
  setExternal(proto, "offset", std::to_string(offset));
  setExternal(proto, "length", std::to_string(tensor.numBytes()));

  std::vector<std::byte> piece(std::min(kPieceBytes, tensor.numBytes()));
  for (uint64_t begin = 0; begin < tensor.numBytes(); begin += piece.size()) {
    piece.resize(std::min(kPieceBytes, tensor.numBytes() - begin));
    fillTensor(tensor, seed, begin / tensor.elementBytes(), piece);
    LLMC_RETURN_IF_ERROR(data.append(piece));
    progress.update(data.size());
  }
  return {};
}

static Status writeProto(const onnx::ModelProto &proto, AtomicFile &file) {
  if (proto.ByteSizeLong() > std::numeric_limits<int32_t>::max())
    return Error{file.path() + ": the graph alone is over 2 GB, which an ONNX file can't hold"};
  if (!proto.SerializeToFileDescriptor(file.descriptor()))
    return Error{file.path() + ": cannot write: " + std::strerror(errno)};
  return {};
}

Result<ModelFileReport> writeModel(GptModel model, const ModelFileOptions &options) {
  ModelFileReport report;
  report.tensorBytes = totalBytes(model.tensors);
  Result<AtomicFile> file = AtomicFile::create(options.path);
  if (!file)
    return file.error();
  std::optional<AtomicFile> data;
  if (report.tensorBytes > options.inlineBytes) {
    report.dataPath = options.path + ".data";
    Result<AtomicFile> created = AtomicFile::create(report.dataPath);
    if (!created)
      return created.error();
    data.emplace(std::move(*created));
  }

  Progress progress("writing weights", report.tensorBytes);
  for (const GptTensor &tensor : model.tensors) {
    onnx::TensorProto &proto = declare(*model.proto.mutable_graph(), tensor);
    if (data && tensor.numBytes() >= kExternalTensorBytes)
      LLMC_RETURN_IF_ERROR(fillExternal(proto, tensor, options.seed, *data, progress));
    else
      fillInline(proto, tensor, options.seed);
  }
  LLMC_RETURN_IF_ERROR(writeProto(model.proto, *file));
  if (data)
    LLMC_RETURN_IF_ERROR(data->commit());
  LLMC_RETURN_IF_ERROR(file->commit());
  return report;
}

} // namespace llmc
