// Works on the wire, not on parsed messages: nothing is lost, and the same file gives the same bytes.
#include "frontend/StrippedModel.h"

#include "runtime/WireFormat.h"

namespace llmc {

// onnx.proto's field numbers.
static constexpr uint32_t kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;
static constexpr uint32_t kExternalFields[] = {13, 14};                       // external_data, data_location
static constexpr uint32_t kPayloadFields[] = {4, 5, 6, 7, 9, 10, 11, 13, 14}; // the typed fields, raw_data, and those

static std::vector<uint8_t> withoutFields(llvm::StringRef message, llvm::ArrayRef<uint32_t> dropped) {
  std::vector<uint8_t> bytes;
  WireReader reader(message);
  WireField field;
  while (reader.next(field))
    if (!llvm::is_contained(dropped, field.number))
      appendBytes(bytes, field.whole);
  return bytes;
}

StrippedModel stripModel(const ModelFile &file, llvm::ArrayRef<bool> strips,
                         llvm::function_ref<llvm::StringRef(int)> payload) {
  StrippedModel result;
  WireReader model(file.bytes->getBuffer());
  WireField field;
  int index = 0;
  while (model.next(field)) {
    if (field.number != kModelGraph || !field.isLengthDelimited) {
      appendBytes(result.bytes, field.whole);
      continue;
    }
    std::vector<uint8_t> graph;
    WireReader fields(field.payload);
    WireField inner;
    while (fields.next(inner)) {
      if (inner.number != kGraphInitializer || !inner.isLengthDelimited) {
        appendBytes(graph, inner.whole);
        continue;
      }
      std::vector<uint8_t> tensor;
      bool isExternal = file.model.graph().initializer(index).data_location() == onnx::TensorProto::EXTERNAL;
      if (strips[index]) {
        tensor = withoutFields(inner.payload, kPayloadFields);
      } else if (isExternal) {
        tensor = withoutFields(inner.payload, kExternalFields);
        llvm::StringRef bytes = payload(index);
        appendHeader(tensor, kTensorRawData, bytes.size());
        appendBytes(tensor, bytes);
      } else {
        appendBytes(tensor, inner.payload);
      }
      appendHeader(graph, kGraphInitializer, tensor.size());
      graph.insert(graph.end(), tensor.begin(), tensor.end());
      result.ends.push_back(graph.size());
      ++index;
    }
    appendHeader(result.bytes, kModelGraph, graph.size());
    for (uint64_t &end : result.ends)
      end += result.bytes.size();
    result.bytes.insert(result.bytes.end(), graph.begin(), graph.end());
  }
  return result;
}

} // namespace llmc
