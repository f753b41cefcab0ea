// Tensors are copied from the device in pieces: an export needs no second copy of the weights.
#include "runtime/Exports.h"

#include "runtime/OnnxSplice.h"
#include "runtime/Safetensors.h"

#include <algorithm>

namespace llmc {

namespace {
/// Session::read or readGradient.
using ReadTensor = Status (Session::*)(const StateEntry &, uint64_t, std::span<std::byte>) const;
constexpr uint64_t kPartBytes = 4ull << 20;
} // namespace

static Status writeTensors(const Session &session, const std::string &path, std::span<const StateEntry *const> tensors,
                           ReadTensor read) {
  bool areGradients = read == &Session::readGradient;
  std::vector<SafetensorsInfo> infos;
  for (const StateEntry *tensor : tensors)
    infos.push_back({tensor->name, areGradients ? ElementType::f32 : tensor->type, tensor->shape});
  Result<SafetensorsWriter> writer = SafetensorsWriter::create(path, infos);
  LLMC_RETURN_IF_ERROR(writer);
  std::vector<std::byte> part;
  for (const StateEntry *tensor : tensors) {
    uint64_t bytes = areGradients ? tensor->gradient.bytes : tensor->buffer.bytes;
    for (uint64_t offset = 0; offset < bytes; offset += part.size()) {
      part.resize(std::min(kPartBytes, bytes - offset));
      LLMC_RETURN_IF_ERROR((session.*read)(*tensor, offset, part));
      LLMC_RETURN_IF_ERROR(writer->append(part));
    }
  }
  return writer->commit();
}

Status exportWeights(const Session &session, const std::string &path) {
  std::vector<const StateEntry *> tensors;
  for (const StateEntry &entry : session.plan().state)
    if (entry.kind == StateKind::parameter)
      tensors.push_back(&entry);
  return writeTensors(session, path, tensors, &Session::read);
}

Status exportGradients(const Session &session, const std::string &path) {
  std::vector<const StateEntry *> tensors;
  for (const StateEntry &entry : session.plan().state)
    if (entry.kind == StateKind::parameter && entry.gradient.space == Space::gradients)
      tensors.push_back(&entry);
  return writeTensors(session, path, tensors, &Session::readGradient);
}

Status exportOutputs(const Session &session, const std::string &path) {
  return writeTensors(session, path, session.outputs(), &Session::read);
}

Status exportModel(const Session &session, std::span<const std::byte> model, const std::string &path) {
  return writeTrainedModel(path, session.plan(), model,
                           [&](const StateEntry &entry, uint64_t offset, std::span<std::byte> dst) {
                             return session.read(entry, offset, dst);
                           });
}

} // namespace llmc
