// A linker for one object without undefined symbols: sections in file order, PC-relative references patched.
#include "backend/codegen/FlattenObject.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace llmc {

static constexpr uint64_t kAlignment = 64;

namespace {
using Object = object::ELFObjectFile<object::ELF64LE>;

/// The object being laid out.
class Layout {
public:
  explicit Layout(Object &object) : object(object) {}
  Error place();
  Error relocate();
  Expected<uint64_t> addressOf(const object::ELFSymbolRef &symbol) const;
  std::vector<std::byte> bytes;

private:
  Error relocate(const object::SectionRef &table, uint64_t target);

  Object &object;
  std::map<uint64_t, uint64_t> offsets; ///< by section index
};
} // namespace

template <typename... Args> static Error failed(const char *format, const Args &...args) {
  return createStringError(inconvertibleErrorCode(), format, args...);
}

static std::string nameOf(const object::SectionRef &section) {
  Expected<StringRef> name = section.getName();
  return name ? name->str() : (consumeError(name.takeError()), std::string("?"));
}

Error Layout::place() {
  for (const object::ELFSectionRef section : object.sections()) {
    if (!(section.getFlags() & ELF::SHF_ALLOC) || section.getSize() == 0)
      continue;
    if ((section.getFlags() & ELF::SHF_WRITE) || section.getType() != ELF::SHT_PROGBITS)
      return failed("generated code has section %s, which is neither code nor constants", nameOf(section).c_str());
    Expected<StringRef> contents = section.getContents();
    if (!contents)
      return contents.takeError();
    bytes.resize(alignTo(bytes.size(), std::max<uint64_t>(kAlignment, section.getAlignment().value())));
    offsets[section.getIndex()] = bytes.size();
    auto data = reinterpret_cast<const std::byte *>(contents->data());
    bytes.insert(bytes.end(), data, data + contents->size());
  }
  bytes.resize(alignTo(bytes.size(), kAlignment));
  return Error::success();
}

Expected<uint64_t> Layout::addressOf(const object::ELFSymbolRef &symbol) const {
  Expected<StringRef> name = symbol.getName();
  if (!name)
    return name.takeError();
  Expected<object::section_iterator> section = symbol.getSection();
  if (!section)
    return section.takeError();
  auto offset = *section == object.section_end() ? offsets.end() : offsets.find((*section)->getIndex());
  if (offset == offsets.end())
    return failed("generated code refers to the undefined symbol '%s'", name->str().c_str());
  Expected<uint64_t> value = symbol.getValue();
  if (!value)
    return value.takeError();
  return offset->second + *value;
}

Error Layout::relocate(const object::SectionRef &table, uint64_t target) {
  for (const object::ELFRelocationRef relocation : table.relocations()) {
    Expected<uint64_t> symbol = addressOf(*relocation.getSymbol());
    if (!symbol)
      return symbol.takeError();
    Expected<int64_t> addend = relocation.getAddend();
    if (!addend)
      return addend.takeError();
    if (relocation.getType() != ELF::R_X86_64_PC32 && relocation.getType() != ELF::R_X86_64_PLT32) {
      SmallString<32> type;
      relocation.getTypeName(type);
      return failed("generated code has a relocation of type %s in %s", type.c_str(), nameOf(table).c_str());
    }
    uint64_t place = target + relocation.getOffset();
    int64_t distance = int64_t(*symbol) + *addend - int64_t(place);
    if (place + 4 > bytes.size() || !isInt<32>(distance))
      return failed("generated code has a relocation out of range in %s", nameOf(table).c_str());
    support::endian::write32le(&bytes[place], uint32_t(distance));
  }
  return Error::success();
}

Error Layout::relocate() {
  for (const object::SectionRef &table : object.sections()) {
    Expected<object::section_iterator> target = table.getRelocatedSection();
    if (!target)
      return target.takeError();
    if (*target == object.section_end())
      continue;
    if (auto offset = offsets.find((*target)->getIndex()); offset != offsets.end())
      if (Error error = relocate(table, offset->second))
        return error;
  }
  return Error::success();
}

Expected<FlatCode> flattenObject(ArrayRef<char> object, StringRef function) {
  auto file = Object::create(MemoryBufferRef(StringRef(object.data(), object.size()), "generated code"));
  if (!file)
    return file.takeError();
  Layout layout(*file);
  if (Error error = layout.place())
    return error;
  if (Error error = layout.relocate())
    return error;
  for (const object::ELFSymbolRef symbol : file->symbols()) {
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (*name != function || symbol.getELFType() != ELF::STT_FUNC)
      continue;
    Expected<uint64_t> address = layout.addressOf(symbol);
    if (!address)
      return address.takeError();
    return FlatCode{std::move(layout.bytes), *address};
  }
  return failed("generated code lacks the function '%s'", function.str().c_str());
}

} // namespace llmc
