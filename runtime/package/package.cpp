#include "runtime/package/package.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/package/compressed.h"
#include "runtime/package/container.h"
#include "runtime/package/quantized_constants.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {
namespace {

[[noreturn]] void throw_io(const std::string& name, const std::string& action, int error) {
  throw Error(ErrorKind::io, name + ": " + action + ": " + std::generic_category().message(error));
}

class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw_io(path, "cannot open", errno);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

std::byte* allocate(const std::string& name, std::size_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw_io(name, "cannot allocate " + std::to_string(bytes) + " bytes", errno);
  ::madvise(base, bytes, MADV_HUGEPAGE);  // fewer page faults; refusal costs speed alone
  return static_cast<std::byte*>(base);
}

void read_all(const File& file, const std::string& name, std::byte* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.descriptor(), to + done, bytes - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io(name, "cannot read", errno);
    if (got == 0) throw Error(ErrorKind::io, name + ": the file became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
}

constexpr std::size_t kStep = std::size_t{4} << 20;  // a multiple of all page sizes

// Pages of a mapped file that lie in `part` are no longer resident; they come back when they are read. A refusal costs memory
// alone.
void give_back(std::span<const std::byte> part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// hash64 of a section of a mapped file. What was read is given back page by page: resident are then the constants that are
// used, of tables the rows, and not also those that were only checked.
std::uint64_t hash64_passing(std::span<const std::byte> bytes) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (std::size_t at = 0; at < bytes.size(); at += kStep) {
    const auto part = bytes.subspan(at, std::min(kStep, bytes.size() - at));
    XXH3_64bits_update(&state, part.data(), part.size());
    give_back(part);
  }
  return XXH3_64bits_digest(&state);
}

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string describe_foreign(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 64));
  if (text.starts_with("version https://git-lfs")) return "it looks like a Git-LFS pointer; fetch the file itself";
  if (text.starts_with("OCLC")) return "it looks like a plan damaged by a text-mode transfer";
  if (text.find("pytorch") != text.npos || text.find("onnx") != text.npos || text.starts_with("\x08"))
    return "it looks like an ONNX model; compile it first: oclc MODEL.onnx -o plan.bin";
  return "write one with: oclc MODEL.onnx -o plan.bin";
}

}  // namespace

std::uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::shared_ptr<const Package> Package::open(const std::string& path, Residence residence, const std::string& noun) {
  const File file(path);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_io(path, "cannot stat", errno);
  if (S_ISDIR(status.st_mode)) throw_io(path, "cannot read", EISDIR);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::io, path + ": wanted a regular file, found a device, pipe or socket");
  if (status.st_size == 0) throw Error(ErrorKind::corrupt, path + ": not a " + noun + ": the file is empty");
  if (static_cast<std::uintmax_t>(status.st_size) > SIZE_MAX / 2)
    throw Error(ErrorKind::io, path + ": the plan is larger than this machine's address space");

  std::shared_ptr<Package> package(new Package);
  package->name_ = path;
  package->noun_ = noun;
  package->bytes_ = static_cast<std::size_t>(status.st_size);
  package->mapped_ = residence == Residence::mapped;
  if (residence == Residence::mapped) {
    void* base = ::mmap(nullptr, package->bytes_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (base == MAP_FAILED) throw_io(path, "cannot map", errno);
    package->base_ = static_cast<const std::byte*>(base);
    ::madvise(base, package->bytes_, MADV_WILLNEED);
  } else {
    std::byte* to = allocate(path, package->bytes_);
    package->base_ = to;
    read_all(file, path, to, package->bytes_);
  }
  package->check(residence);
  return package;
}

std::shared_ptr<const Package> Package::from_memory(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) throw Error(ErrorKind::corrupt, name + ": not a plan: it is empty");
  std::shared_ptr<Package> package(new Package);
  package->name_ = name;
  package->bytes_ = bytes.size();
  std::byte* to = allocate(name, bytes.size());
  package->base_ = to;
  std::memcpy(to, bytes.data(), bytes.size());
  package->check(Residence::copied);
  return package;
}

std::shared_ptr<const Package> Package::borrow(std::span<const std::byte> bytes, std::shared_ptr<Lender> lender,
                                               const std::string& name) {
  if (bytes.empty()) throw Error(ErrorKind::corrupt, name + ": not a plan: it is empty");
  std::shared_ptr<Package> package(new Package);
  package->name_ = name;
  package->bytes_ = bytes.size();
  package->base_ = bytes.data();
  package->lender_ = std::move(lender);
  package->check(Residence::copied);
  return package;
}

void Package::copy_constants(std::size_t offset, std::span<std::byte> to) const {
  for (std::size_t at = 0; at < to.size(); at += kStep) {
    const auto part = constants_.subspan(offset + at, std::min(kStep, to.size() - at));
    std::memcpy(to.data() + at, part.data(), part.size());
    if (is_mapped()) give_back(part);
  }
}

Package::~Package() {
  if (base_ && !lender_) ::munmap(const_cast<std::byte*>(base_), bytes_);
  if (widened_) ::munmap(widened_, widened_bytes_);
}

void Package::decompress_metadata() {
  try {
    decompressed_ = decompressed(metadata_);
  } catch (const Error& error) {
    throw Error(error.kind(), name_ + ": damaged " + noun_ + ": " + error.what());
  }
  metadata_ = decompressed_;
}

void Package::widen_constants() {
  std::uint64_t bytes = 0;
  try {
    bytes = package::widened_bytes(constants_);
  } catch (const Error& error) {
    throw Error(error.kind(), name_ + ": damaged " + noun_ + ": " + error.what());
  }
  const std::span<const std::byte> stored = constants_;
  widened_bytes_ = std::max<std::size_t>(1, bytes);
  widened_ = allocate(name_, widened_bytes_);
  widen(stored, widened_);
  if (mapped_) give_back(stored);
  constants_ = {widened_, static_cast<std::size_t>(bytes)};
}

void Package::check_binaries(std::span<const std::byte> section) {
  constexpr std::uint32_t kMostTables = 1 << 16, kDepth = 4;
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(section.data()), section.size(), kDepth, kMostTables);
  if (!verifier.VerifyBuffer<oclc::plan::Binaries>(nullptr)) {
    problem_of_binaries_ = "their section is no table of binaries";
    return;
  }
  binaries_ = flatbuffers::GetRoot<oclc::plan::Binaries>(section.data());
}

void Package::check(Residence residence) {
  const std::span<const std::byte> file(base_, bytes_);
  const auto corrupt = [this](const std::string& what) {
    throw Error(ErrorKind::corrupt, name_ + ": damaged " + noun_ + ": " + what);
  };

  Header header{};
  if (file.size() < sizeof kMagic || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    throw Error(ErrorKind::corrupt,
                name_ + ": not a " + noun_ + " (wrong magic number)" + (noun_ == "plan" ? "; " + describe_foreign(file) : ""));
  if (file.size() < sizeof header) corrupt("truncated within the header");
  std::memcpy(&header, file.data(), sizeof header);
  if (header.byte_order == __builtin_bswap32(kByteOrder))
    throw Error(ErrorKind::version,
                name_ + ": the plan was written on a machine of the other byte order; compile it again for this one");
  if (header.byte_order != kByteOrder) corrupt("byte-order mark " + hex(header.byte_order) + ", wanted " + hex(kByteOrder));

  // The hash decides whether the version can be believed, so a flipped bit in it is damage and not a foreign version.
  constexpr std::uint32_t kMaxHeaderBytes = 65536;
  if (header.header_bytes < sizeof header || header.header_bytes > kMaxHeaderBytes) corrupt("header size out of range");
  if (header.header_bytes > file.size()) corrupt("truncated within the section table");
  std::string head(reinterpret_cast<const char*>(file.data()), header.header_bytes);
  std::memset(head.data() + offsetof(Header, header_hash), 0, sizeof header.header_hash);
  if (hash64(std::as_bytes(std::span(head))) != header.header_hash) corrupt("the header's checksum differs");
  if (header.version < kOldestVersion || header.version > kFormatVersion)
    throw Error(ErrorKind::version, name_ + ": plan format " + std::to_string(header.version) + ", this runtime reads " +
                                        std::to_string(kOldestVersion) + " to " + std::to_string(kFormatVersion) +
                                        "; compile the model again with the oclc of this runtime");
  if (header.file_bytes != file.size())
    corrupt("the file has " + std::to_string(file.size()) + " bytes, its header says " + std::to_string(header.file_bytes));
  if (header.section_count < kLeastSections || header.section_count > kMostSections)
    corrupt("wanted 2 or 3 sections, found " + std::to_string(header.section_count));
  if (header.header_bytes != sizeof header + header.section_count * sizeof(SectionRow))
    corrupt("header size does not fit the section table");

  constexpr const char* kNames[kMostSections] = {"metadata", "constants", "binaries"};
  constexpr std::uint64_t kAlignments[kMostSections] = {kMetadataAlignment, kConstantsAlignment, kBinariesAlignment};
  std::span<const std::byte> sections[kMostSections];
  std::uint64_t end = header.header_bytes;
  bool quantized = false, compressed = false;
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    const std::string which = kNames[i];
    SectionRow row{};
    std::memcpy(&row, file.data() + sizeof header + i * sizeof row, sizeof row);
    const std::uint64_t alignment = kAlignments[i];
    const auto is = [&](SectionKind kind) { return row.kind == static_cast<std::uint32_t>(kind); };
    if (i == 0) compressed = is(SectionKind::compressed_metadata);
    if (i == 1) quantized = is(SectionKind::quantized_constants);
    const bool fits = i == 0   ? is(SectionKind::metadata) || compressed
                      : i == 1 ? is(SectionKind::constants) || quantized
                               : is(SectionKind::binaries);
    if (!fits || row.alignment != alignment) corrupt("the table's row of the " + which + " section is wrong");
    if (row.offset != align_up(end, alignment)) corrupt("the " + which + " section is not where the one before it ends");
    if (row.bytes > file.size() || row.offset > file.size() - row.bytes)
      corrupt("the " + which + " section reaches past the end of the file");
    if (!all_zero(file.subspan(end, row.offset - end))) corrupt("the padding before the " + which + " section is not zero");
    sections[i] = file.subspan(row.offset, row.bytes);
    const bool passing = i == 1 && residence == Residence::mapped;
    if ((passing ? hash64_passing(sections[i]) : hash64(sections[i])) != row.hash) {
      if (i < kLeastSections) corrupt("the checksum of the " + which + " section differs");
      problem_of_binaries_ = "the checksum of their section differs";
    }
    end = row.offset + row.bytes;
  }
  if (end != file.size()) corrupt("bytes after the last section");

  metadata_ = stored_metadata_ = sections[0];
  if (compressed) decompress_metadata();
  constants_ = stored_constants_ = sections[1];
  quantized_ = quantized;
  if (quantized) widen_constants();
  if (header.section_count > kLeastSections && problem_of_binaries_.empty()) check_binaries(sections[2]);
  hash_ = header.header_hash;
  format_ = header.version;
  try {
    plan_ = &verify_metadata(metadata_, constants_.size());
  } catch (const Error& error) {
    throw Error(error.kind(), name_ + ": invalid " + noun_ + ": " + error.what());
  }
}

}  // namespace oclc::package
