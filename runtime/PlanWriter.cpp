// The sections go to the file first, then metadata and header, whose sizes are known beforehand because chunk hashes
// are of fixed width.
#include "runtime/PlanWriter.h"

#include "runtime/AtomicFile.h"
#include "runtime/PlanCheck.h"
#include "runtime/PlanFile.h"
#include "runtime/PlanFormat.h"
#include "runtime/PlanProto.h"
#include "runtime/plan.pb.h"

#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace llmc {

static Result<uint64_t> weightsSize(const PlanPayload &payload) {
  uint64_t end = 0;
  for (const WeightsPiece &piece : payload.weights) {
    if (piece.fileOffset < end || piece.bytes.size() > kMaxSpaceBytes || piece.fileOffset > kMaxSpaceBytes)
      return Error{"weights' pieces are not in rising order"};
    end = piece.fileOffset + piece.bytes.size();
  }
  return end;
}

static std::string serialize(const proto::PlanMetadata &metadata) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  metadata.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

namespace {
/// Deals the weights out in chunks: pieces and the zeros between them.
class ChunkReader {
public:
  explicit ChunkReader(std::span<const WeightsPiece> pieces) : pieces(pieces) {}

  /// Fills the chunk that follows the last one.
  void next(std::span<std::byte> chunk) {
    std::memset(chunk.data(), 0, chunk.size());
    uint64_t chunkEnd = position + chunk.size();
    for (; index < pieces.size() && pieces[index].fileOffset < chunkEnd; ++index) {
      const WeightsPiece &piece = pieces[index];
      uint64_t begin = std::max(position, piece.fileOffset);
      uint64_t end = std::min(chunkEnd, piece.fileOffset + piece.bytes.size());
      if (begin < end)
        std::memcpy(&chunk[begin - position], &piece.bytes[begin - piece.fileOffset], end - begin);
      if (piece.fileOffset + piece.bytes.size() > chunkEnd)
        break; // it goes on in the next chunk
    }
    position = chunkEnd;
  }

private:
  std::span<const WeightsPiece> pieces;
  size_t index = 0;
  uint64_t position = 0;
};
} // namespace

static Status writeWeights(AtomicFile &file, const PlanHeader &header, const PlanPayload &payload,
                           proto::PlanMetadata &metadata) {
  ChunkReader reader(payload.weights);
  std::vector<std::byte> buffer(std::min<uint64_t>(kWeightsChunkBytes, header.weights.bytes));
  for (int i = 0; i < metadata.weights_chunk_hashes_size(); ++i) {
    uint64_t begin = static_cast<uint64_t>(i) * kWeightsChunkBytes;
    std::span chunk(buffer.data(), std::min(kWeightsChunkBytes, header.weights.bytes - begin));
    reader.next(chunk);
    metadata.set_weights_chunk_hashes(i, planHash(chunk));
    LLMC_RETURN_IF_ERROR(file.writeAt(header.weights.offset + begin, chunk));
  }
  return {};
}

/// Places and sizes of all sections; the hashes come later.
static PlanHeader layOut(uint64_t metadataBytes, uint64_t weightsBytes, const PlanPayload &payload) {
  PlanHeader header;
  header.metadata = {sizeof(PlanHeader), metadataBytes, 0};
  header.weights = {planPageAligned(header.metadata.offset + metadataBytes), weightsBytes, 0};
  header.code = {planPageAligned(header.weights.offset + weightsBytes), payload.code.size(), planHash(payload.code)};
  header.model = {planPageAligned(header.code.offset + header.code.bytes), payload.model.size(),
                  planHash(payload.model)};
  header.fileBytes = header.model.offset + header.model.bytes;
  return header;
}

Status writePlan(const std::string &path, const Plan &plan, const PlanPayload &payload) {
  Result<uint64_t> weightsBytes = weightsSize(payload);
  LLMC_RETURN_IF_ERROR(weightsBytes);
  if (Status status = checkPlan(plan, {*weightsBytes, payload.code.size(), payload.model.size()}); !status)
    return inContext(path + ": the plan to write is not sound", status.error());

  proto::PlanMetadata metadata;
  planToProto(plan, *metadata.mutable_plan());
  metadata.mutable_weights_chunk_hashes()->Resize(
      static_cast<int>((*weightsBytes + kWeightsChunkBytes - 1) / kWeightsChunkBytes), 0);
  uint64_t metadataBytes = metadata.ByteSizeLong();
  if (metadataBytes > kMaxMetadataBytes)
    return Error{path + ": the plan's metadata exceeds " + std::to_string(kMaxMetadataBytes) + " bytes"};

  PlanHeader header = layOut(metadataBytes, *weightsBytes, payload);
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->resize(header.fileBytes));
  LLMC_RETURN_IF_ERROR(writeWeights(*file, header, payload, metadata));
  LLMC_RETURN_IF_ERROR(file->writeAt(header.code.offset, payload.code));
  LLMC_RETURN_IF_ERROR(file->writeAt(header.model.offset, payload.model));

  const auto &hashes = metadata.weights_chunk_hashes();
  header.weights.hash = planHash(std::as_bytes(std::span(hashes.data(), static_cast<size_t>(hashes.size()))));
  std::string bytes = serialize(metadata);
  assert(bytes.size() == metadataBytes);
  header.metadata.hash = planHash(std::as_bytes(std::span(bytes)));
  header.headerHash = planHeaderHash(header);
  LLMC_RETURN_IF_ERROR(file->writeAt(header.metadata.offset, std::as_bytes(std::span(bytes))));
  LLMC_RETURN_IF_ERROR(file->writeAt(0, std::as_bytes(std::span(&header, 1))));
  return file->commit();
}

} // namespace llmc
