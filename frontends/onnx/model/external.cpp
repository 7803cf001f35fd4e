#include "frontends/onnx/model/external.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <oclc_onnx.pb.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/import.h"

namespace oclc::onnx {
namespace {

constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Why a location is refused by its text alone, or empty.
std::string lexical_problem(const std::string& location) {
  if (location.empty()) return "an empty name";
  if (location.find('\0') != std::string::npos) return "a name with a NUL byte";
  if (location.front() == '/') return "an absolute path";
  if (location.front() == '~') return "a home folder";
  if (location.find('\\') != std::string::npos) return "a name with a backslash";
  if (location.find("://") != std::string::npos) return "an address";
  if (location.size() > 1 && location[1] == ':' && std::isalpha(static_cast<unsigned char>(location[0])))
    return "a drive letter";
  if (location.size() > 4096) return "a name of more than 4096 bytes";
  bool named = false;
  for (const auto& part : std::filesystem::path(location)) {
    if (part == "..") return "a path with '..'";
    named = named || (!part.empty() && part != ".");
  }
  return named && location.back() != '/' ? "" : "a folder";
}

// Follows the path from folder to folder, refusing links at each step.
int open_walking(int folder, const std::string& location) {
  FileHandle at(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(location)) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  for (std::size_t i = 0; i + 1 < parts.size() && at; ++i) {
    at = FileHandle(::openat(at.fd(), parts[i].c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return at ? ::openat(at.fd(), parts.back().c_str(), kOpenFlags | O_NOFOLLOW) : -1;
}

int open_below(int folder, const std::string& location, OpenWith with) {
  if (with != OpenWith::walk) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(kOpenFlags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const long fd = ::syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
    // Old kernels lack the call, and some sandboxes forbid it.
    if (fd >= 0 || with == OpenWith::openat2 || (errno != ENOSYS && errno != EPERM && errno != EACCES))
      return static_cast<int>(fd);
  }
  return open_walking(folder, location);
}

std::int64_t change_time(const struct stat& info) { return info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec; }

// "123" as a number of bytes.
std::int64_t size_value(const std::string& key, const std::string& text, const std::string& where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(fmt::format("{}: a number of bytes from 0 to 2^63-1 as external {}", where, key),
         fmt::format("'{}'", printable(text)));
  }
  return value;
}

}  // namespace

OpenedFile open_external(const std::filesystem::path& folder, const std::string& location, bool allow_links,
                         const std::string& where, OpenWith with) {
  const auto refuse = [&](const std::string& why, std::string advice = {}) {
    fail(fmt::format("{}: external data in a regular file below the model's folder", where),
         fmt::format("{}: '{}'", why, printable(location)), std::move(advice));
  };
  if (const std::string problem = lexical_problem(location); !problem.empty()) refuse(problem);
  const FileHandle base(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!base) {
    fail("a folder of external data", fmt::format("{}: '{}'", std::strerror(errno), printable(folder.string())), {},
         ExitCode::io);
  }
  const int fd = allow_links ? ::openat(base.fd(), location.c_str(), kOpenFlags) : open_below(base.fd(), location, with);
  const int error = errno;
  OpenedFile out;
  out.handle = FileHandle(fd);
  if (!out.handle) {
    if (error == ELOOP || error == EXDEV || (error == ENOTDIR && !allow_links))
      refuse("a symbolic link", "give --allow-symlinks if you trust it");
    if (error == ENOENT) {
      out.missing = true;
      return out;
    }
    fail(fmt::format("{}: readable external data", where), fmt::format("{}: '{}'", std::strerror(error), printable(location)),
         {}, ExitCode::io);
  }
  struct stat info {};
  if (::fstat(out.handle.fd(), &info) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) refuse("no regular file");
  if (info.st_nlink > 1 && !allow_links)
    refuse(fmt::format("a file with {} hard links", info.st_nlink), "give --allow-symlinks if you trust it");
  out.size = info.st_size;
  out.changed_ns = change_time(info);
  return out;
}

void ExternalFiles::declare(const oclc_onnx::TensorProto& tensor, const std::string& where, std::optional<std::int64_t> bytes) {
  std::map<std::string, std::string> values;
  for (const auto& entry : tensor.external_data()) {
    if (!values.emplace(entry.key(), entry.value()).second) {
      fail(fmt::format("{}: each external data key once", where), fmt::format("'{}' twice", printable(entry.key())));
    }
  }
  Reference reference{values["location"], where, 0, bytes.value_or(0), 0};
  if (const std::string problem = lexical_problem(reference.location); !problem.empty()) {
    fail(fmt::format("{}: external data in a regular file below the model's folder", where),
         fmt::format("{}: '{}'", problem, printable(reference.location)));
  }
  if (!folder_) {
    fail(fmt::format("{} inside the model, which has no folder on disk", where),
         fmt::format("external data '{}'", printable(reference.location)), "give a folder of external data");
  }
  if (!bytes) return;
  for (const auto& [key, value] : values) {
    if (key == "offset") {
      reference.offset = size_value(key, value, where);
    } else if (key == "length") {
      const std::int64_t length = size_value(key, value, where);
      if (length != *bytes) fail(fmt::format("{}: {} bytes of external data", where, *bytes), fmt::format("length {}", length));
    } else if (key != "location" && key != "checksum" && options_.warn) {
      options_.warn(fmt::format("{}: external data key '{}' is ignored", where, printable(key)));
    }
  }
  if (reference.offset > INT64_MAX - *bytes) {
    fail(fmt::format("{}: an end of external data below 2^63", where),
         fmt::format("offset {} and {} bytes", reference.offset, *bytes));
  }
  if (references_.emplace(&tensor, std::move(reference)).second) order_.push_back(&tensor);
}

void ExternalFiles::open_all() {
  std::vector<std::string> missing;
  for (const auto* tensor : order_) {
    const Reference& reference = references_.at(tensor);
    if (files_.count(reference.location)) continue;
    OpenedFile file = open_external(*folder_, reference.location, options_.allow_links, reference.where);
    if (file.missing) missing.push_back(fmt::format("'{}'", printable(reference.location)));
    files_.emplace(reference.location, std::move(file));
  }
  if (!missing.empty()) {
    fail(fmt::format("{} of external data in '{}'", missing.size() == 1 ? "a file" : fmt::format("{} files", missing.size()),
                     printable(folder_->string())),
         fmt::format("none named {}", fmt::join(missing, ", ")), "name their folder with --external-data-dir", ExitCode::io);
  }
  std::vector<Reference*> sorted;
  for (const auto* tensor : order_) {
    Reference& reference = references_.at(tensor);
    const std::int64_t size = files_.at(reference.location).size;
    if (reference.offset > size || reference.bytes > size - reference.offset) {
      fail(fmt::format("{}: {} bytes from offset {} of '{}'", reference.where, reference.bytes, reference.offset,
                       printable(reference.location)),
           fmt::format("a file of {} bytes", size), "the file may be cut short or belong to another model");
    }
    sorted.push_back(&reference);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Reference* a, const Reference* b) {
    return std::tie(a->location, a->offset, b->bytes) < std::tie(b->location, b->offset, a->bytes);
  });
  for (Reference* reference : sorted) {
    const std::int64_t end = reference->offset + reference->bytes;
    if (regions_.empty() || regions_.back().location != reference->location || reference->offset >= regions_.back().end) {
      regions_.push_back({reference->location, reference->offset, end, {}});
    } else {
      regions_.back().end = std::max(regions_.back().end, end);
    }
    reference->region = regions_.size() - 1;
  }
}

ExternalFiles::Block ExternalFiles::read(const oclc_onnx::TensorProto& tensor) {
  const Reference& reference = references_.at(&tensor);
  Region& region = regions_.at(reference.region);
  std::shared_ptr<const void> owner = region.bytes.lock();
  if (!owner) {
    const auto size = static_cast<std::size_t>(region.end - region.begin);
    const std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
    const OpenedFile& file = files_.at(region.location);
    std::string problem = file.handle.read({bytes.get(), size}, region.begin);
    struct stat info {};
    if (problem.empty() &&
        (::fstat(file.handle.fd(), &info) != 0 || info.st_size != file.size || change_time(info) != file.changed_ns)) {
      problem = "a file that changed while it was read";
    }
    if (!problem.empty()) {
      fail(fmt::format("{}: readable external data in '{}'", reference.where, printable(reference.location)), problem, {},
           ExitCode::io);
    }
    owner = bytes;
    region.bytes = owner;
  }
  return {static_cast<const std::byte*>(owner.get()) + (reference.offset - region.begin), owner};
}

}  // namespace oclc::onnx
