// Tensors are copied from the device in pieces: an export needs no second copy of the weights.
#include "runtime/Exports.h"

#include "runtime/OnnxSplice.h"
#include "runtime/Safetensors.h"

#include <algorithm>

namespace llmc {

namespace {
struct Tensor {
  const StateEntry *entry;
  BufferRef buffer;
  ElementType type;
};
constexpr uint64_t kPieceBytes = 4ull << 20;
} // namespace

static Status writeTensors(const Session &session, const std::string &path, std::span<const Tensor> tensors) {
  std::vector<SafetensorsInfo> infos;
  for (const Tensor &tensor : tensors)
    infos.push_back({tensor.entry->name, tensor.type, tensor.entry->shape});
  Result<SafetensorsWriter> writer = SafetensorsWriter::create(path, infos);
  LLMC_RETURN_IF_ERROR(writer);
  std::vector<std::byte> piece;
  for (const Tensor &tensor : tensors)
    for (uint64_t offset = 0; offset < tensor.buffer.bytes; offset += piece.size()) {
      piece.resize(std::min(kPieceBytes, tensor.buffer.bytes - offset));
      LLMC_RETURN_IF_ERROR(session.read(tensor.buffer, offset, piece));
      LLMC_RETURN_IF_ERROR(writer->append(piece));
    }
  return writer->commit();
}

Status exportWeights(const Session &session, const std::string &path) {
  std::vector<Tensor> tensors;
  for (const StateEntry &entry : session.plan().state)
    if (entry.kind == StateKind::parameter)
      tensors.push_back({&entry, entry.buffer, entry.type});
  return writeTensors(session, path, tensors);
}

Status exportGradients(const Session &session, const std::string &path) {
  std::vector<Tensor> tensors;
  for (const StateEntry &entry : session.plan().state)
    if (entry.kind == StateKind::parameter && entry.gradient.space == Space::gradients)
      tensors.push_back({&entry, entry.gradient, ElementType::f32});
  return writeTensors(session, path, tensors);
}

Status exportOutputs(const Session &session, const std::string &path) {
  std::vector<Tensor> tensors;
  for (const StateEntry *entry : session.outputs())
    tensors.push_back({entry, entry->buffer, entry->type});
  return writeTensors(session, path, tensors);
}

Status exportModel(const Session &session, std::span<const std::byte> model, const std::string &path) {
  return writeTrainedModel(path, session.plan(), model,
                           [&](const StateEntry &entry, uint64_t offset, std::span<std::byte> dst) {
                             return session.read(entry.buffer, offset, dst);
                           });
}

} // namespace llmc
