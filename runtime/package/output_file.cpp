#include "runtime/package/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/package/error.h"
#include "runtime/package/writer.h"

namespace oclc::package {
namespace {

constexpr std::size_t kCopiedBytes = 1 << 20;

[[noreturn]] void throw_system(const std::string& path, const std::string& action, int error) {
  throw Error(ErrorKind::io, path + ": " + action + ": " + std::generic_category().message(error));
}

void write_all(int descriptor, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_system(path, "cannot write", errno);
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
    if (descriptor_ < 0) throw_system(reported_, "cannot create " + pattern, errno);
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
      throw_system(reported_, "cannot write", errno);
  }
  // The file's bytes are on the medium before its name appears, and it has the permissions that open() would have given.
  void publish() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    struct stat old {};
    const mode_t mode = ::stat(final_.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
    ::fchmod(descriptor_, mode);
    if (::fsync(descriptor_) != 0) throw_system(reported_, "cannot write", errno);
    if (temporary_.empty()) give_name();
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_system(reported_, "cannot write", errno);
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) throw_system(reported_, "cannot replace", errno);
    temporary_.clear();
    // The new name too is on the medium, where the file system can do that for a folder.
    const int folder = ::open(folder_of(final_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    const bool failed = ::fsync(folder) != 0 && errno == EIO;
    ::close(folder);
    if (failed) throw_system(reported_, "cannot write its folder", EIO);
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
    throw_system(reported_, "cannot name the file", errno);
  }
  void copy_to(int descriptor) {
    std::vector<std::byte> chunk(kCopiedBytes);
    if (::lseek(descriptor_, 0, SEEK_SET) != 0) throw_system(reported_, "cannot seek", errno);
    for (;;) {
      const ssize_t got = ::read(descriptor_, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw_system(reported_, "cannot read the spooled plan", errno);
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
    if (descriptor_ < 0) throw_system(path, "cannot open", errno);
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
    if (S_ISDIR(status.st_mode)) throw_system(path, "cannot write", EISDIR);
    if (!S_ISREG(status.st_mode)) return {DestinationKind::special, path};
  }
  constexpr int kMostLinks = 40;
  std::string at = path;
  for (int i = 0; ::lstat(at.c_str(), &status) == 0 && S_ISLNK(status.st_mode); ++i) {
    if (i == kMostLinks) throw_system(path, "cannot write", ELOOP);
    std::string target(4096, '\0');
    const ssize_t bytes = ::readlink(at.c_str(), target.data(), target.size());
    if (bytes < 0) throw_system(path, "cannot read the link", errno);
    target.resize(static_cast<std::size_t>(bytes));
    at = target.starts_with('/') ? target : folder_of(at) + "/" + target;
  }
  return {DestinationKind::file, at};
}

}  // namespace

std::uint64_t write_to(const std::string& path, const std::function<std::uint64_t(Sink&)>& write) {
  const Destination to = destination_of(path);
  if (to.kind == DestinationKind::file) {
    TemporaryFile file(path, to.path);
    const std::uint64_t bytes = write(file);
    file.publish();
    return bytes;
  }
  std::optional<DirectFile> special;
  if (to.kind == DestinationKind::special) special.emplace(path);
  TemporaryFile spool(special ? path : "standard output", "");
  const std::uint64_t bytes = write(spool);
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

}  // namespace oclc::package
