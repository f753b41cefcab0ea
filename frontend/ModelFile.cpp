// Opening a model, in the order in which things can be wrong with it: the file, its bytes, its versions, its graph.
#include "frontend/ModelFile.h"

#include "frontend/OnnxError.h"
#include "frontend/OnnxTensor.h"
#include "runtime/WireFormat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/checker.h>
#include <onnx/inliner/inliner.h>

using namespace mlir;

namespace llmc {

static constexpr uint64_t kLargestModel = uint64_t(2) << 30; // Protobuf's own limit
static constexpr int kDeepestNesting = 100;
static constexpr int64_t kFirstIrVersion = 3;
// onnx.proto's field numbers.
static constexpr uint32_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;

std::string foreignFileHint(StringRef bytes) {
  if (bytes.starts_with("version https://git-lfs"))
    return "is a Git LFS pointer, not the model itself: fetch it with 'git lfs pull'";
  if (bytes.ltrim().starts_with_insensitive("<!doctype") || bytes.ltrim().starts_with_insensitive("<html"))
    return "is an HTML page, not a model: was the link to a page about the file?";
  if (bytes.starts_with("PK\x03\x04"))
    return "is a zip archive (a PyTorch checkpoint is one), not an ONNX model";
  return "";
}

/// Copies a message's field into the skeleton, but the raw_data of initializers, whose places it notes.
static bool copyTensor(StringRef message, InitializerBytes &initializer, std::vector<uint8_t> &skeleton) {
  WireReader reader(message);
  WireField field;
  initializer.message = message;
  while (reader.next(field)) {
    if (field.number == kTensorRawData && field.isLengthDelimited) {
      initializer.rawData = field.payload;
      initializer.hasRawData = true;
    } else {
      appendBytes(skeleton, field.whole);
    }
  }
  return !reader.isDamaged();
}

static bool copyGraph(StringRef message, std::vector<InitializerBytes> &initializers, std::vector<uint8_t> &skeleton) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) {
    if (field.number != kGraphInitializer || !field.isLengthDelimited) {
      appendBytes(skeleton, field.whole);
      continue;
    }
    std::vector<uint8_t> tensor;
    if (!copyTensor(field.payload, initializers.emplace_back(), tensor))
      return false;
    appendHeader(skeleton, kGraphInitializer, tensor.size());
    skeleton.insert(skeleton.end(), tensor.begin(), tensor.end());
  }
  return !reader.isDamaged();
}

/// The model's bytes without the payloads of its initializers.
static LogicalResult copySkeleton(MLIRContext *context, ModelFile &file, std::vector<uint8_t> &skeleton) {
  StringRef bytes = file.bytes->getBuffer();
  WireReader reader(bytes);
  WireField field;
  unsigned numGraphs = 0;
  auto damaged = [&](const char *where) {
    return fileError(context, file.path) << "is no ONNX model, or cut short: its bytes make no sense from byte "
                                         << (where - bytes.data()) << " of " << bytes.size();
  };
  while (reader.next(field)) {
    if (field.number != kModelGraph || !field.isLengthDelimited) {
      appendBytes(skeleton, field.whole);
      continue;
    }
    if (++numGraphs > 1)
      return fileError(context, file.path) << "holds two graphs";
    std::vector<uint8_t> graph;
    if (!copyGraph(field.payload, file.initializers, graph))
      return damaged(field.payload.data());
    appendHeader(skeleton, kModelGraph, graph.size());
    skeleton.insert(skeleton.end(), graph.begin(), graph.end());
  }
  if (reader.isDamaged())
    return damaged(reader.position());
  if (numGraphs == 0)
    return fileError(context, file.path) << "is no ONNX model: it holds no graph";
  return success();
}

static LogicalResult parse(MLIRContext *context, ModelFile &file) {
  std::vector<uint8_t> skeleton;
  if (failed(copySkeleton(context, file, skeleton)))
    return failure();
  google::protobuf::io::CodedInputStream stream(skeleton.data(), int(skeleton.size()));
  stream.SetRecursionLimit(kDeepestNesting);
  if (!file.model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return fileError(context, file.path) << "is no ONNX model, damaged, or nested deeper than " << kDeepestNesting
                                         << " levels";
  if (size_t(file.model.graph().initializer_size()) != file.initializers.size())
    return fileError(context, file.path) << "is damaged: its initializers cannot be told apart";
  return success();
}

static LogicalResult checkVersions(MLIRContext *context, ModelFile &file) {
  int64_t newest = onnx::Version::IR_VERSION;
  if (file.model.ir_version() < kFirstIrVersion || file.model.ir_version() > newest)
    return fileError(context, file.path) << "IR version " << file.model.ir_version() << " is not known; expected "
                                         << kFirstIrVersion << " to " << newest;
  for (const onnx::OperatorSetIdProto &opset : file.model.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      file.opset = opset.version();
  if (file.opset < kOldestOpset || file.opset > kNewestOpset)
    return fileError(context, file.path) << "opset " << file.opset << " of ai.onnx is not known; expected "
                                         << kOldestOpset << " to " << kNewestOpset;
  return success();
}

/// Checks what the checker does not name or is not shown: types of inputs, and initializers, whose payloads are checked
/// when they are read.
static LogicalResult checkGraph(MLIRContext *context, const ModelFile &file) {
  const onnx::GraphProto &graph = file.model.graph();
  for (bool isInput : {true, false})
    for (const onnx::ValueInfoProto &value : isInput ? graph.input() : graph.output())
      if (!value.has_type() || (value.type().has_tensor_type() && !value.type().tensor_type().has_shape()))
        return fileError(context, file.path) << (isInput ? "input " : "output ") << inQuotes(value.name()) << " has no "
                                             << (value.has_type() ? "shape" : "type");
  if (graph.sparse_initializer_size() > 0)
    return fileError(context, file.path) << "sparse initializer "
                                         << inQuotes(graph.sparse_initializer(0).values().name())
                                         << " is not supported; store it dense";
  llvm::StringSet<> names;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return fileError(context, file.path) << "an initializer has no name";
    if (!names.insert(tensor.name()).second)
      return fileError(context, file.path) << "initializer " << inQuotes(tensor.name()) << " appears twice";
    if (std::string reason = describeTensorDamage(tensor); !reason.empty())
      return fileError(context, file.path) << "initializer " << inQuotes(tensor.name()) << ": " << reason;
  }
  return success();
}

/// The model as the checker shall see it: initializers are inputs, so that it neither reads weights nor opens files.
static onnx::ModelProto withoutInitializers(const onnx::ModelProto &model) {
  onnx::ModelProto copy = model;
  onnx::GraphProto &graph = *copy.mutable_graph();
  llvm::StringSet<> inputs;
  for (const onnx::ValueInfoProto &input : graph.input())
    inputs.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (!inputs.insert(tensor.name()).second)
      continue;
    onnx::ValueInfoProto &input = *graph.add_input();
    input.set_name(tensor.name());
    onnx::TypeProto_Tensor &type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(tensor.data_type());
    type.mutable_shape();
    for (int64_t size : tensor.dims())
      type.mutable_shape()->add_dim()->set_dim_value(size);
  }
  graph.clear_initializer();
  // Training information is another program than the one llmc derives: it is carried along, not read.
  copy.clear_training_info();
  return copy;
}

/// One line of what ONNX's library says in several.
static std::string oneLine(std::string text) {
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string joined = llvm::join(lines, " ");
  return StringRef(joined).rtrim().str();
}

/// The only place where ONNX's exceptions can arise; they end here.
static LogicalResult checkAndInline(MLIRContext *context, ModelFile &file) {
  try {
    onnx::checker::check_model(withoutInitializers(file.model));
    onnx::inliner::InlineLocalFunctions(file.model);
  } catch (const std::exception &error) {
    return fileError(context, file.path) << "is no valid model: " << oneLine(error.what());
  }
  return success();
}

FailureOr<ModelFile> openModel(MLIRContext *context, const std::string &path) {
  // A pipe may never end, and /dev/zero doesn't.
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) && status.type() != llvm::sys::fs::file_type::regular_file)
    return LogicalResult(fileError(context, path) << "not a regular file");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return LogicalResult(fileError(context, path) << "cannot be read: " << buffer.getError().message());
  ModelFile file;
  file.path = path;
  file.bytes = std::move(*buffer);
  StringRef bytes = file.bytes->getBuffer();
  if (bytes.empty())
    return LogicalResult(fileError(context, path) << "is empty");
  if (std::string hint = foreignFileHint(bytes); !hint.empty())
    return LogicalResult(fileError(context, path) << hint);
  if (bytes.size() >= kLargestModel)
    return LogicalResult(fileError(context, path)
                         << "has " << bytes.size()
                         << " bytes; Protobuf ends at 2 GiB: store the weights as external data");
  if (failed(parse(context, file)) || failed(checkVersions(context, file)) || failed(checkGraph(context, file)) ||
      failed(checkAndInline(context, file)))
    return failure();
  return file;
}

} // namespace llmc
