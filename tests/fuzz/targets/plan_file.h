// Plan files with right checksums, whatever they hold: the writer takes no plan that the reader refuses.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/package/container.h"
#include "tests/runtime/original_plans.h"
#include "tests/runtime/plan_mutator.h"

namespace oclc::fuzz {

namespace fb = oclc::plan;

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Puts the checksums right of a file whose header and table lie within it.
inline void correct_checksums(std::span<std::byte> file) {
  package::Header header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  for (std::size_t i = 0, at = sizeof header; i < std::min(header.section_count, package::kMostSections); ++i) {
    package::SectionRow row;
    if (file.size() - at < sizeof row) return;
    std::memcpy(&row, file.data() + at, sizeof row);
    if (row.offset <= file.size() && row.bytes <= file.size() - row.offset)
      row.hash = package::hash64(file.subspan(row.offset, row.bytes));
    std::memcpy(file.data() + at, &row, sizeof row);
    at += sizeof row;
  }
  header.header_hash = 0;
  std::memcpy(file.data(), &header, sizeof header);
  header.header_hash = package::hash64(file.first(std::min<std::size_t>(header.header_bytes, file.size())));
  std::memcpy(file.data(), &header, sizeof header);
}

inline std::vector<std::byte> plan_file(const fb::PlanT& plan, std::span<const std::byte> constants) {
  const std::vector<std::byte> metadata = test::metadata(plan);
  package::Header header{};
  std::copy(std::begin(package::kMagic), std::end(package::kMagic), header.magic);
  header.byte_order = package::kByteOrder;
  header.version = package::kFormatVersion;
  header.section_count = 2;
  header.header_bytes = sizeof header + 2 * sizeof(package::SectionRow);
  package::SectionRow rows[2]{};
  rows[0].kind = static_cast<std::uint32_t>(package::SectionKind::metadata);
  rows[0].alignment = package::kMetadataAlignment;
  rows[0].offset = package::align_up(header.header_bytes, package::kMetadataAlignment);
  rows[0].bytes = metadata.size();
  rows[1].kind = static_cast<std::uint32_t>(package::SectionKind::constants);
  rows[1].alignment = package::kConstantsAlignment;
  rows[1].offset = package::align_up(rows[0].offset + rows[0].bytes, package::kConstantsAlignment);
  rows[1].bytes = constants.size();
  header.file_bytes = rows[1].offset + rows[1].bytes;
  std::vector<std::byte> file(header.file_bytes);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, rows, sizeof rows);
  std::copy(metadata.begin(), metadata.end(), file.begin() + static_cast<std::ptrdiff_t>(rows[0].offset));
  std::copy(constants.begin(), constants.end(), file.begin() + static_cast<std::ptrdiff_t>(rows[1].offset));
  correct_checksums(file);
  return file;
}

// The package in a file; null where the reader refuses it.
inline std::shared_ptr<const package::Package> package_of(std::span<const std::byte> file) {
  try {
    return package::Package::from_memory(file);
  } catch (const package::Error&) {
    return nullptr;
  }
}

// What libFuzzer calls instead of changing bytes blindly. `originals` is where files begin that hold no plan.
inline std::size_t mutate_plan_file(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed,
                                    const std::vector<fb::PlanT>& originals) {
  test::PlanMutator random(seed);
  const auto package = package_of(std::as_bytes(std::span(data, size)));
  if (package && random.below(8) == 0) {
    size = LLVMFuzzerMutate(data, size, room);
    correct_checksums(std::as_writable_bytes(std::span(data, size)));
    return size;
  }
  constexpr float kConstants[] = {1, 2, 3, 4};
  fb::PlanT plan;
  std::span<const std::byte> constants = std::as_bytes(std::span(kConstants));
  if (package && random.below(100) != 0) {
    package->plan().UnPackTo(&plan);
    constants = package->constants();
  } else {
    plan = originals[static_cast<std::size_t>(random.below(originals.size()))];
  }
  random.mutate(plan);
  return put(plan_file(plan, constants), data, size, room);
}

}  // namespace oclc::fuzz
