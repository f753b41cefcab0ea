// Opening goes from the outside in: nothing is parsed before its bytes are known to be those that were written, nothing
// is used before its ranges are checked.
#include "runtime/PlanFile.h"

#include "runtime/PlanCheck.h"
#include "runtime/PlanFormat.h"
#include "runtime/PlanProto.h"
#include "runtime/plan.pb.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

struct PlanFile::State {
  ~State() {
    if (mapping)
      munmap(mapping, mappedBytes);
    if (descriptor >= 0)
      close(descriptor);
  }

  std::span<const std::byte> section(const PlanSection &section) const {
    return {static_cast<const std::byte *>(mapping) + section.offset, section.bytes};
  }

  std::string path;
  int descriptor = -1;
  void *mapping = nullptr;
  size_t mappedBytes = 0;
  PlanHeader header;
  Plan plan;
  std::vector<uint64_t> chunkHashes;

  Status map();
  Status checkHeader();
  Status checkPlaces() const;
  Status checkSections() const;
  Status parse();
};

Status PlanFile::State::map() {
  // Without O_NONBLOCK a pipe would wait for its writer; on a file it changes nothing.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return Error{std::string("cannot be opened: ") + std::strerror(errno)};
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return Error{"not a regular file"};
  if (static_cast<uint64_t>(info.st_size) < sizeof(PlanHeader))
    return Error{fmt::format("not a plan: {} bytes, a plan has at least {}", info.st_size, sizeof(PlanHeader))};
  mappedBytes = static_cast<size_t>(info.st_size);
  void *address = mmap(nullptr, mappedBytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED)
    return Error{std::string("cannot be mapped: ") + std::strerror(errno)};
  mapping = address;
  return {};
}

Status PlanFile::State::checkHeader() {
  std::memcpy(&header, mapping, sizeof(header));
  if (header.magic != kPlanMagic)
    return Error{"not a plan: made by llmc-compile it would start with LLMCPLAN"};
  if (header.version != kPlanVersion)
    return Error{fmt::format("plan version {}, this build reads version {}: compile the model again", header.version,
                             kPlanVersion)};
  if (header.headerHash != planHeaderHash(header))
    return Error{"damaged plan: the header's checksum differs"};
  if (header.fileBytes != mappedBytes)
    return Error{fmt::format("damaged plan: {} bytes, expected {}", mappedBytes, header.fileBytes)};
  return {};
}

/// Sections follow each other exactly as the writer lays them out.
Status PlanFile::State::checkPlaces() const {
  uint64_t end = sizeof(PlanHeader);
  bool isRight = header.headerBytes == sizeof(PlanHeader) && header.metadata.bytes <= kMaxMetadataBytes;
  for (const PlanSection *section : {&header.metadata, &header.weights, &header.code, &header.model}) {
    uint64_t begin = section == &header.metadata ? end : planPageAligned(end);
    isRight = isRight && section->offset == begin && begin <= mappedBytes && section->bytes <= mappedBytes - begin;
    if (!isRight)
      return Error{"damaged plan: a section lies outside of the file"};
    end = begin + section->bytes;
  }
  return end == mappedBytes ? Status() : Error{"damaged plan: bytes after the last section"};
}

Status PlanFile::State::checkSections() const {
  for (auto [section, name] :
       {std::pair(&header.metadata, "metadata"), std::pair(&header.code, "code"), std::pair(&header.model, "model")})
    if (planHash(this->section(*section)) != section->hash)
      return Error{fmt::format("damaged plan: the checksum of the {} section differs", name)};
  for (const PlanSection *before : {&header.metadata, &header.weights, &header.code}) {
    uint64_t begin = before->offset + before->bytes;
    std::span<const std::byte> padding = section({begin, planPageAligned(begin) - begin, 0});
    if (std::any_of(padding.begin(), padding.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      return Error{"damaged plan: bytes between sections are not zero"};
  }
  return {};
}

Status PlanFile::State::parse() {
  proto::PlanMetadata metadata;
  std::span<const std::byte> bytes = section(header.metadata);
  if (!metadata.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{"damaged plan: its metadata cannot be parsed"};
  chunkHashes.assign(metadata.weights_chunk_hashes().begin(), metadata.weights_chunk_hashes().end());
  if (chunkHashes.size() != (header.weights.bytes + kWeightsChunkBytes - 1) / kWeightsChunkBytes ||
      planHash(std::as_bytes(std::span(chunkHashes))) != header.weights.hash)
    return Error{"damaged plan: the weights' checksums differ"};
  Result<Plan> parsed = planFromProto(metadata.plan());
  LLMC_RETURN_IF_ERROR(parsed);
  plan = std::move(*parsed);
  if (Status status = checkPlan(plan, {header.weights.bytes, header.code.bytes, header.model.bytes}); !status)
    return inContext("damaged plan", status.error());
  return {};
}

Result<PlanFile> PlanFile::open(const std::string &path) {
  auto state = std::make_unique<State>();
  state->path = path;
  for (auto step : {&State::map, &State::checkHeader})
    if (Status status = (state.get()->*step)(); !status)
      return inContext(path, status.error());
  for (auto step : {&State::checkPlaces, &State::checkSections})
    if (Status status = (state.get()->*step)(); !status)
      return inContext(path, status.error());
  if (Status status = state->parse(); !status)
    return inContext(path, status.error());
  return PlanFile(std::move(state));
}

PlanFile::PlanFile(std::unique_ptr<State> state) : state(std::move(state)) {}
PlanFile::PlanFile(PlanFile &&) noexcept = default;
PlanFile &PlanFile::operator=(PlanFile &&) noexcept = default;
PlanFile::~PlanFile() = default;

const std::string &PlanFile::path() const { return state->path; }
const Plan &PlanFile::plan() const { return state->plan; }
uint64_t PlanFile::hash() const { return state->header.headerHash; }
uint64_t PlanFile::fileBytes() const { return state->header.fileBytes; }
uint64_t PlanFile::metadataBytes() const { return state->header.metadata.bytes; }
std::span<const std::byte> PlanFile::code() const { return state->section(state->header.code); }
std::span<const std::byte> PlanFile::code(const TargetPrograms &target) const {
  return code().subspan(target.codeOffset, target.codeBytes);
}
std::span<const std::byte> PlanFile::model() const { return state->section(state->header.model); }
uint64_t PlanFile::weightsBytes() const { return state->header.weights.bytes; }
size_t PlanFile::numWeightsChunks() const { return state->chunkHashes.size(); }

Result<std::span<const std::byte>> PlanFile::readWeightsChunk(size_t index, std::span<std::byte> buffer) const {
  uint64_t begin = index * kWeightsChunkBytes;
  assert(index < numWeightsChunks() && buffer.size() >= std::min(kWeightsChunkBytes, weightsBytes() - begin));
  std::span<std::byte> chunk = buffer.first(std::min(kWeightsChunkBytes, weightsBytes() - begin));
  for (size_t done = 0; done < chunk.size();) {
    ssize_t got = pread(state->descriptor, chunk.data() + done, chunk.size() - done,
                        static_cast<off_t>(state->header.weights.offset + begin + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return Error{
          fmt::format("{}: cannot read its weights: {}", path(), got < 0 ? std::strerror(errno) : "file ends")};
    done += static_cast<size_t>(got);
  }
  if (planHash(chunk) != state->chunkHashes[index])
    return Error{fmt::format("{}: damaged plan: the checksum of weights at byte {} differs", path(), begin)};
  return std::span<const std::byte>(chunk);
}

} // namespace llmc
