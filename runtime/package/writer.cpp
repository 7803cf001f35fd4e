#include "runtime/package/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/package/compressed.h"
#include "runtime/package/container.h"
#include "runtime/package/output_file.h"
#include "runtime/package/package.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {

namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
// Integers and filters as they are have to save one byte in this many of the constants' size.
constexpr std::uint64_t kLeastSaved = 5;
// Compression of metadata has to save one byte in this many of the file's.
constexpr std::uint64_t kLeastCompressed = 8;

using Steps = flatbuffers::Vector<flatbuffers::Offset<plan::Step>>;

// Whether a launch tells the kernels that it does together apart by rows.
bool has_rows(const Steps* steps) {
  const auto groups = [](const auto* it) { return it->instances() > 0; };
  return steps && std::any_of(steps->begin(), steps->end(), [&](const plan::Step* step) {
           if (const plan::Loop* loop = step->body_as_Loop()) return has_rows(loop->body());
           const plan::Launch* launch = step->body_as_Launch();
           return launch && (groups(launch) ||
                             (launch->parts() && std::any_of(launch->parts()->begin(), launch->parts()->end(), groups)));
         });
}

// The version that a runtime must know for the plan's steps and programs.
std::uint32_t version_of(std::span<const std::byte> metadata) {
  const auto* programs = plan::GetPlan(metadata.data())->programs();
  const auto own_kernels = [](const plan::Program* program) { return program->own_kernels(); };
  if (programs && std::any_of(programs->begin(), programs->end(), own_kernels)) return kOwnKernelsVersion;
  const auto* entries = plan::GetPlan(metadata.data())->entries();
  const bool rows = entries && std::any_of(entries->begin(), entries->end(),
                                           [](const plan::Entry* entry) { return has_rows(entry->steps()); });
  return rows ? kRowsVersion : kOldestVersion;
}

class MemorySink : public Sink {
 public:
  void put(std::span<const std::byte> bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

class Writer {
 public:
  Writer(Sink& sink, std::span<const std::byte> metadata, const ConstantSection& constants,
         MetadataAs metadata_as = MetadataAs::it_is)
      : sink_(sink), metadata_(metadata), constants_(constants), metadata_as_(metadata_as) {}

  std::uint64_t run() {
    verify_metadata(metadata_, constants_.bytes());
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.byte_order = kByteOrder;
    const bool quantized = gains_by_quantizing();
    const std::vector<std::byte> table = quantized ? table_of_runs() : std::vector<std::byte>();
    const std::uint64_t constant_bytes = quantized ? stored_bytes_ : constants_.bytes();
    const std::vector<std::byte> shorter = shorter_metadata(constant_bytes);
    header.version = std::max(quantized ? kQuantizedVersion : kOldestVersion, version_of(metadata_));
    if (!shorter.empty()) header.version = std::max(header.version, kCompressedVersion);
    if (quantized && has_filters()) header.version = std::max(header.version, kFiltersVersion);
    header.section_count = kLeastSections;
    header.header_bytes = sizeof(Header) + kLeastSections * sizeof(SectionRow);
    SectionRow rows[kLeastSections] = {};
    std::vector<std::byte> head(header.header_bytes);
    put(head);

    const std::span<const std::byte> first = shorter.empty() ? metadata_ : std::span<const std::byte>(shorter);
    rows[0] =
        begin(shorter.empty() ? SectionKind::metadata : SectionKind::compressed_metadata, kMetadataAlignment, first.size());
    rows[0].hash = hash64(first);
    put(first);
    rows[1] = begin(quantized ? SectionKind::quantized_constants : SectionKind::constants, kConstantsAlignment, constant_bytes);
    rows[1].hash = put_constants(table);

    return finish(header, rows, std::move(head));
  }

  // Sections that are there already.
  std::uint64_t copy(const Package& plan, std::span<const std::byte> binaries) {
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.byte_order = kByteOrder;
    header.version = std::max(kBinariesVersion, version_of(plan.metadata()));
    if (plan.is_quantized() && stores_filters(plan.stored_constants()))
      header.version = std::max(header.version, kFiltersVersion);
    header.section_count = kMostSections;
    header.header_bytes = sizeof(Header) + kMostSections * sizeof(SectionRow);
    std::vector<std::byte> head(header.header_bytes);
    put(head);
    const SectionKind constants = plan.is_quantized() ? SectionKind::quantized_constants : SectionKind::constants;
    const SectionRow rows[kMostSections] = {copy_section(SectionKind::metadata, kMetadataAlignment, plan.metadata()),
                                            copy_section(constants, kConstantsAlignment, plan.stored_constants()),
                                            copy_section(SectionKind::binaries, kBinariesAlignment, binaries)};
    return finish(header, rows, std::move(head));
  }

 private:
  SectionRow copy_section(SectionKind kind, std::uint64_t alignment, std::span<const std::byte> bytes) {
    SectionRow row = begin(kind, alignment, bytes.size());
    row.hash = hash64(bytes);
    put(bytes);
    return row;
  }

  std::uint64_t finish(Header& header, std::span<const SectionRow> rows, std::vector<std::byte> head) {
    header.file_bytes = at_;
    std::memcpy(head.data(), &header, sizeof header);
    std::memcpy(head.data() + sizeof header, rows.data(), rows.size_bytes());
    header.header_hash = hash64(head);
    std::memcpy(head.data(), &header, sizeof header);
    sink_.rewrite(0, head);
    return at_;
  }

  void put(std::span<const std::byte> bytes) {
    sink_.put(bytes);
    at_ += bytes.size();
  }

  SectionRow begin(SectionKind kind, std::uint64_t alignment, std::uint64_t bytes) {
    const std::vector<std::byte> padding(align_up(at_, alignment) - at_);
    put(padding);
    SectionRow row{};
    row.kind = static_cast<std::uint32_t>(kind);
    row.alignment = static_cast<std::uint32_t>(alignment);
    row.offset = at_;
    row.bytes = bytes;
    return row;
  }

  // Empty where they stay as they are: the gain has to be worth a version that fewer runtimes read.
  std::vector<std::byte> shorter_metadata(std::uint64_t constant_bytes) const {
    if (metadata_as_ == MetadataAs::it_is) return {};
    std::vector<std::byte> shorter = compressed(metadata_);
    const bool gains = shorter.size() < metadata_.size() &&
                       metadata_.size() - shorter.size() >= (metadata_.size() + constant_bytes) / kLeastCompressed;
    return gains ? std::move(shorter) : std::vector<std::byte>();
  }

  // A section of quantized constants is copied when it is opened, not mapped: it has to be so much smaller.
  bool gains_by_quantizing() const {
    std::uint64_t saved = 0;
    for (const auto& piece : constants_.pieces_) {
      for (const QuantizedPart& part : piece.parts) saved += part.run.bytes - std::min(part.run.bytes, part.run.stored_bytes());
    }
    return saved > 0 && saved >= constants_.bytes() / kLeastSaved;
  }

  bool has_filters() const {
    const auto is_panel = [](const QuantizedPart& part) { return part.run.stored == StoredAs::filters; };
    return std::any_of(constants_.pieces_.begin(), constants_.pieces_.end(),
                       [&](const auto& piece) { return std::any_of(piece.parts.begin(), piece.parts.end(), is_panel); });
  }

  // Head and runs of quantized constants; counts what is stored.
  std::vector<std::byte> table_of_runs() {
    std::vector<QuantizedRun> runs;
    const auto add_raw = [&](std::uint64_t bytes) {
      if (bytes == 0) return;
      QuantizedRun run;
      run.bytes = bytes;
      runs.push_back(run);
    };
    std::uint64_t end = 0;
    for (const auto& piece : constants_.pieces_) {
      add_raw(piece.offset - end);
      end = piece.offset + piece.bytes;
      for (const QuantizedPart& part : piece.parts) runs.push_back(part.run);
      if (piece.parts.empty()) add_raw(piece.bytes);
    }
    const QuantizedHead head{constants_.bytes(), runs.size()};
    std::vector<std::byte> table(sizeof head + runs.size() * sizeof(QuantizedRun));
    std::memcpy(table.data(), &head, sizeof head);
    std::memcpy(table.data() + sizeof head, runs.data(), runs.size() * sizeof(QuantizedRun));
    stored_bytes_ = table.size();
    for (const QuantizedRun& run : runs) stored_bytes_ += run.stored_bytes();
    return table;
  }

  // `table`: of quantized constants, before what they store.
  std::uint64_t put_constants(std::span<const std::byte> table) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    const auto hashed = [&](std::span<const std::byte> bytes) {
      XXH3_64bits_update(&state, bytes.data(), bytes.size());
      put(bytes);
    };
    hashed(table);
    static constexpr std::byte kZeros[ConstantSection::kAlignment] = {};
    std::uint64_t end = 0;
    std::vector<std::byte> chunk;
    for (const auto& piece : constants_.pieces_) {
      hashed({kZeros, piece.offset - end});
      end = piece.offset + piece.bytes;
      if (!table.empty() && !piece.parts.empty()) {
        const std::byte* at = piece.data;
        for (const QuantizedPart& part : piece.parts) {
          hashed(part.run.stored == StoredAs::raw ? std::span(at, part.run.bytes) : std::span<const std::byte>(part.stored));
          at += part.run.bytes;
        }
        continue;
      }
      if (piece.data) {
        hashed({piece.data, piece.bytes});
        continue;
      }
      chunk.resize(kChunkBytes);
      for (std::uint64_t begin = 0; begin < piece.bytes; begin += kChunkBytes) {
        const std::span<std::byte> out(chunk.data(), std::min<std::uint64_t>(kChunkBytes, piece.bytes - begin));
        piece.fill(begin, out);
        hashed(out);
      }
    }
    return XXH3_64bits_digest(&state);
  }

  Sink& sink_;
  std::span<const std::byte> metadata_;
  const ConstantSection& constants_;
  const MetadataAs metadata_as_ = MetadataAs::it_is;
  std::uint64_t at_ = 0, stored_bytes_ = 0;
};

std::uint64_t ConstantSection::place(std::uint64_t bytes, const std::byte* data, FillConstant fill) {
  const std::uint64_t offset = align_up(bytes_, kAlignment);
  if (bytes > (std::uint64_t{1} << 62) - offset) throw Error(ErrorKind::invalid, "the constants of a plan exceed 4 EiB");
  pieces_.push_back({offset, bytes, data, std::move(fill)});
  bytes_ = offset + bytes;
  return offset;
}

std::uint64_t ConstantSection::add(std::span<const std::byte> bytes) {
  static constexpr std::byte kNone{};
  return place(bytes.size(), bytes.empty() ? &kNone : bytes.data(), nullptr);
}

std::uint64_t ConstantSection::add(std::span<const std::byte> bytes, std::vector<QuantizedPart> parts) {
  const std::uint64_t offset = add(bytes);
  pieces_.back().parts = std::move(parts);
  return offset;
}

std::uint64_t ConstantSection::add(std::uint64_t bytes, FillConstant fill) { return place(bytes, nullptr, std::move(fill)); }

std::uint64_t write_package(const std::string& path, std::span<const std::byte> metadata, const ConstantSection& constants,
                            MetadataAs metadata_as) {
  return write_to(path, [&](Sink& sink) { return Writer(sink, metadata, constants, metadata_as).run(); });
}

std::uint64_t write_with_binaries(const std::string& path, const Package& plan, std::span<const std::byte> binaries) {
  const ConstantSection none;
  return write_to(path, [&](Sink& sink) { return Writer(sink, plan.metadata(), none).copy(plan, binaries); });
}

std::vector<std::byte> package_to_memory(std::span<const std::byte> metadata, const ConstantSection& constants) {
  MemorySink sink;
  Writer(sink, metadata, constants).run();
  return sink.take();
}

}  // namespace oclc::package
