#include "runtime/package/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/package/container.h"
#include "runtime/package/package.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {

// Where bytes go. `put` appends; `rewrite` replaces bytes written before (the header, whose checksums are known last).
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void put(std::span<const std::byte> bytes) = 0;
  virtual void rewrite(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
};

namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::uint64_t kLeastSaved = 4;  // one of so many bytes

[[noreturn]] void throw_io(const std::string& path, const std::string& action, int error) {
  throw Error(ErrorKind::io, path + ": " + action + ": " + std::generic_category().message(error));
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

void write_all(int descriptor, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_io(path, "cannot write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// A file that nobody sees under its final name before it is complete, or a spool for a destination that cannot seek.
class TemporaryFile : public Sink {
 public:
  // `final_path` empty: an anonymous spool in the folder for temporary files.
  TemporaryFile(const std::string& reported, const std::string& final_path) : reported_(reported), final_(final_path) {
    if (!final_.empty() && ::access("/proc/self/fd", X_OK) == 0)
      descriptor_ = ::open(folder_of(final_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ >= 0) return;  // without a name nothing stays behind when the process is killed
    const char* folder = ::getenv("TMPDIR");
    std::string pattern =
        final_.empty() ? std::string(folder && *folder ? folder : "/tmp") + "/oclc-XXXXXX" : final_ + ".tmp-XXXXXX";
    descriptor_ = ::mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw_io(reported_, "cannot create " + pattern, errno);
    if (final_.empty())
      ::unlink(pattern.c_str());
    else
      temporary_ = pattern;
  }
  ~TemporaryFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  void put(std::span<const std::byte> bytes) override { write_all(descriptor_, reported_, bytes); }
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes.size()))
      throw_io(reported_, "cannot write", errno);
  }
  // The file's bytes are on the medium before its name appears, and it has the permissions that open() would have given.
  void publish() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    struct stat old {};
    const mode_t mode = ::stat(final_.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
    ::fchmod(descriptor_, mode);
    if (::fsync(descriptor_) != 0) throw_io(reported_, "cannot write", errno);
    if (temporary_.empty()) give_name();
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_io(reported_, "cannot write", errno);
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) throw_io(reported_, "cannot replace", errno);
    temporary_.clear();
    // The new name too is on the medium, where the file system can do that for a folder.
    const int folder = ::open(folder_of(final_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    const bool failed = ::fsync(folder) != 0 && errno == EIO;
    ::close(folder);
    if (failed) throw_io(reported_, "cannot write its folder", EIO);
  }
  // A name that rename can replace the final one with; link() never replaces.
  void give_name() {
    const std::string source = "/proc/self/fd/" + std::to_string(descriptor_);
    for (unsigned attempt = 0; attempt < 1000; ++attempt) {
      const std::string name = final_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
      if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = name;
        return;
      }
      if (errno != EEXIST) break;
    }
    throw_io(reported_, "cannot name the file", errno);
  }
  void copy_to(int descriptor) {
    std::vector<std::byte> chunk(kChunkBytes);
    if (::lseek(descriptor_, 0, SEEK_SET) != 0) throw_io(reported_, "cannot seek", errno);
    for (;;) {
      const ssize_t got = ::read(descriptor_, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw_io(reported_, "cannot read the spooled plan", errno);
      if (got == 0) return;
      write_all(descriptor, reported_, {chunk.data(), static_cast<std::size_t>(got)});
    }
  }

 private:
  std::string reported_;
  std::string final_;
  std::string temporary_;
  int descriptor_ = -1;
};

class DirectFile {
 public:
  explicit DirectFile(const std::string& path) : descriptor_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw_io(path, "cannot open", errno);
  }
  ~DirectFile() { ::close(descriptor_); }
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

enum class DestinationKind {
  file,     // written beside `path` and renamed to it
  special,  // a pipe or device, which is written to and stays
  standard_output
};

struct Destination {
  DestinationKind kind;
  std::string path;
};

// Where a name leads to. Links stay: they are followed, also to a file that is not there yet.
Destination destination_of(const std::string& path) {
  if (path == "-") return {DestinationKind::standard_output, path};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw_io(path, "cannot write", EISDIR);
    if (!S_ISREG(status.st_mode)) return {DestinationKind::special, path};
  }
  constexpr int kMostLinks = 40;
  std::string at = path;
  for (int i = 0; ::lstat(at.c_str(), &status) == 0 && S_ISLNK(status.st_mode); ++i) {
    if (i == kMostLinks) throw_io(path, "cannot write", ELOOP);
    std::string target(4096, '\0');
    const ssize_t bytes = ::readlink(at.c_str(), target.data(), target.size());
    if (bytes < 0) throw_io(path, "cannot read the link", errno);
    target.resize(static_cast<std::size_t>(bytes));
    at = target.starts_with('/') ? target : folder_of(at) + "/" + target;
  }
  return {DestinationKind::file, at};
}

}  // namespace

class Writer {
 public:
  Writer(Sink& sink, std::span<const std::byte> metadata, const ConstantSection& constants)
      : sink_(sink), metadata_(metadata), constants_(constants) {}

  std::uint64_t run() {
    verify_metadata(metadata_, constants_.bytes());
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.byte_order = kByteOrder;
    const bool quantized = gains_by_quantizing();
    header.version = quantized ? kFormatVersion : kOldestVersion;
    header.section_count = kSectionCount;
    header.header_bytes = sizeof(Header) + kSectionCount * sizeof(SectionRow);
    SectionRow rows[kSectionCount] = {};
    std::vector<std::byte> head(header.header_bytes);
    put(head);

    rows[0] = begin(SectionKind::metadata, kMetadataAlignment, metadata_.size());
    rows[0].hash = hash64(metadata_);
    put(metadata_);
    const std::vector<std::byte> table = quantized ? table_of_runs() : std::vector<std::byte>();
    rows[1] = begin(quantized ? SectionKind::quantized_constants : SectionKind::constants, kConstantsAlignment,
                    quantized ? stored_bytes_ : constants_.bytes());
    rows[1].hash = put_constants(table);

    header.file_bytes = at_;
    std::memcpy(head.data(), &header, sizeof header);
    std::memcpy(head.data() + sizeof header, rows, sizeof rows);
    header.header_hash = hash64(head);
    std::memcpy(head.data(), &header, sizeof header);
    sink_.rewrite(0, head);
    return at_;
  }

 private:
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

  // A section of quantized constants is copied when it is opened, not mapped: it has to be so much smaller.
  bool gains_by_quantizing() const {
    std::uint64_t saved = 0;
    for (const auto& piece : constants_.pieces_) {
      for (const QuantizedPart& part : piece.parts) saved += part.run.bytes - std::min(part.run.bytes, part.run.stored_bytes());
    }
    return saved > 0 && saved >= constants_.bytes() / kLeastSaved;
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

std::uint64_t write_package(const std::string& path, std::span<const std::byte> metadata, const ConstantSection& constants) {
  const Destination to = destination_of(path);
  if (to.kind == DestinationKind::file) {
    TemporaryFile file(path, to.path);
    const std::uint64_t bytes = Writer(file, metadata, constants).run();
    file.publish();
    return bytes;
  }
  std::optional<DirectFile> special;
  if (to.kind == DestinationKind::special) special.emplace(path);
  TemporaryFile spool(special ? path : "standard output", "");
  const std::uint64_t bytes = Writer(spool, metadata, constants).run();
  spool.copy_to(special ? special->descriptor() : STDOUT_FILENO);
  return bytes;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  const Destination to = destination_of(path);
  if (to.kind == DestinationKind::standard_output) return write_all(STDOUT_FILENO, "standard output", bytes);
  if (to.kind == DestinationKind::special) return write_all(DirectFile(path).descriptor(), path, bytes);
  TemporaryFile file(path, to.path);
  file.put(bytes);
  file.publish();
}

std::vector<std::byte> package_to_memory(std::span<const std::byte> metadata, const ConstantSection& constants) {
  MemorySink sink;
  Writer(sink, metadata, constants).run();
  return sink.take();
}

}  // namespace oclc::package
