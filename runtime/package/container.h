// The frame of plan.bin: a header, a section table, the sections.
//
//   Header | SectionRow[section_count] | zeros to 64 | metadata | zeros to 4096 | constants [| zeros to 64 | binaries]
//
// All integers in the writer's byte order, which `byte_order` states. Sections are sorted, do not overlap, and with their zero
// padding cover the file exactly. Every byte is covered: the header and the table by `header_hash` (computed with that field
// zero), each section by its row's hash, padding by the rule that it is zero.
#pragma once
#include <cstdint>

namespace oclc::package {

// Like PNG's: a text-mode transfer damages it visibly.
inline constexpr unsigned char kMagic[8] = {'O', 'C', 'L', 'C', '\r', '\n', 0x1a, '\n'};
inline constexpr std::uint32_t kByteOrder = 0x01020304;
// The least that a file needs is written.
inline constexpr std::uint32_t kOldestVersion = 1, kQuantizedVersion = 2, kBinariesVersion = 3, kRowsVersion = 4,
                               kCompressedVersion = 5, kFiltersVersion = 6, kOwnKernelsVersion = 7;
inline constexpr std::uint32_t kFormatVersion = kOwnKernelsVersion;  // the newest
inline constexpr std::uint64_t kMetadataAlignment = 64;
inline constexpr std::uint64_t kBinariesAlignment = 64;
inline constexpr std::uint64_t kConstantsAlignment = 4096;  // a page, so that the mapping can become a device buffer

// The second section is one of the two kinds of constants; quantized_constants.h has the form of the latter. A third one, the
// FlatBuffer oclc::plan::Binaries, may be missing. Whoever trusts no binaries needs none, so its damage is no damage of the
// plan.
// The first section is metadata or, as compressed.h has it, what it is compressed to.
enum class SectionKind : std::uint32_t {
  metadata = 1,
  constants = 2,
  quantized_constants = 3,
  binaries = 4,
  compressed_metadata = 5
};

struct Header {
  unsigned char magic[8];
  std::uint32_t byte_order;
  std::uint32_t version;
  std::uint32_t section_count;
  std::uint32_t header_bytes;  // header and table
  std::uint64_t file_bytes;
  std::uint64_t header_hash;  // XXH3-64
};
static_assert(sizeof(Header) == 40);

struct SectionRow {
  std::uint32_t kind;
  std::uint32_t alignment;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t hash;  // XXH3-64
};
static_assert(sizeof(SectionRow) == 32);

inline constexpr std::uint32_t kLeastSections = 2, kMostSections = 3;

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace oclc::package
