// Safetensors files (huggingface/safetensors): u64 header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the tensors' bytes. The reader maps the file and trusts nothing in it; the writer streams and appears whole or
// not at all.
#pragma once

#include "runtime/AtomicFile.h"
#include "runtime/Plan.h"

#include <map>

namespace llmc {

/// A tensor in a mapped file.
struct SafetensorsView {
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes; ///< dense; not necessarily aligned
};

/// An opened file. Views live as long as it.
class SafetensorsFile {
public:
  /// Opens and checks: header size, JSON, types, shapes, offsets in range, no overlap, no bytes left over. Errors name
  /// the path. Tensors of types that ElementType does not have (8-bit floats, unsigned integers beyond u8) are refused
  /// by name.
  static Result<SafetensorsFile> open(const std::string &path);

  SafetensorsFile(SafetensorsFile &&other) noexcept;
  SafetensorsFile &operator=(SafetensorsFile &&other) noexcept;
  ~SafetensorsFile();

  const std::string &path() const { return filePath; }
  const std::map<std::string, SafetensorsView> &tensors() const { return views; }
  /// A tensor, or an error that names what the file has.
  Result<SafetensorsView> find(const std::string &name) const;

private:
  SafetensorsFile() = default;
  Status map();
  Status parse();

  std::string filePath;
  void *mapping = nullptr;
  size_t mappedBytes = 0;
  std::map<std::string, SafetensorsView> views;
};

/// A tensor to be written.
struct SafetensorsInfo {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
};

/// Writes the header first, then takes the tensors' bytes in the same order, in pieces of any size.
class SafetensorsWriter {
public:
  static Result<SafetensorsWriter> create(const std::string &path, std::span<const SafetensorsInfo> tensors);
  Status append(std::span<const std::byte> bytes);
  /// Fails when fewer or more bytes came than the tensors have; else the file appears.
  Status commit();

private:
  SafetensorsWriter(AtomicFile file, uint64_t expectedEnd) : file(std::move(file)), expectedEnd(expectedEnd) {}
  AtomicFile file;
  uint64_t expectedEnd;
};

/// "F32", "I64", ...: the format's name of a type.
const char *safetensorsTypeName(ElementType type);

} // namespace llmc
