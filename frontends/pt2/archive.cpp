// Formats: PKWARE's APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to 4.3.16 (its end, with zip64).
#include "frontends/pt2/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler/support/error.h"
#include "frontends/pt2/program.h"

namespace oclc::pt2 {
namespace {

constexpr std::size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50, kEntryMark = 0x02014b50,
                        kLocalMark = 0x04034b50;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;
constexpr std::size_t kMostMembers = 1'000'000;

template <class T>
T number(std::span<const std::byte> bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) fail("a whole zip", "one that is cut off");
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string text_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  if (at > bytes.size() || bytes.size() - at < size) fail("a whole zip", "one that is cut off");
  return {reinterpret_cast<const char*>(bytes.data()) + at, size};
}

[[noreturn]] void io_failure(const std::filesystem::path& file, int code) {
  throw CompileError({.stage = "import",
                      .wanted = fmt::format("{}: a readable file", file.string()),
                      .found = std::strerror(code),
                      .exit_code = ExitCode::io});
}

// Zip64 keeps sizes and places that do not fit in a field of their own, in this order.
struct Wide {
  std::uint64_t size, packed, header;
};

Wide widened(std::span<const std::byte> file, std::size_t extra, std::size_t extra_size, Wide w) {
  for (std::size_t at = extra; at + 4 <= extra + extra_size;) {
    const auto id = number<std::uint16_t>(file, at), bytes = number<std::uint16_t>(file, at + 2);
    if (id == 1) {
      std::size_t next = at + 4;
      for (std::uint64_t* value : {&w.size, &w.packed, &w.header}) {
        if (*value != kIn64) continue;
        *value = number<std::uint64_t>(file, next);
        next += 8;
      }
      return w;
    }
    at += 4 + std::size_t{bytes};
  }
  return w;
}

}  // namespace

Archive::Archive(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) io_failure(path, errno);
  struct stat facts {};
  const bool known = ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  void* memory = known && facts.st_size > 0
                     ? ::mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0)
                     : MAP_FAILED;
  const int code = known ? errno : EINVAL;
  ::close(descriptor);
  if (memory == MAP_FAILED) io_failure(path, code);
  file_ = {static_cast<const std::byte*>(memory), static_cast<std::size_t>(facts.st_size)};
  try {
    read_directory();
  } catch (...) {
    ::munmap(memory, file_.size());
    throw;
  }
}

Archive::~Archive() { ::munmap(const_cast<std::byte*>(file_.data()), file_.size()); }

void Archive::read_directory() {
  constexpr std::size_t kLongestComment = 0xFFFF;
  if (file_.size() < kEndBytes) fail("a zip of torch.export.save", "a file of a few bytes");
  std::size_t end = file_.size() - kEndBytes;
  const std::size_t lowest = end > kLongestComment ? end - kLongestComment : 0;
  while (number<std::uint32_t>(file_, end) != kEndMark) {
    if (end == lowest) fail("a zip of torch.export.save", "a file without a directory of members");
    --end;
  }
  std::uint64_t count = number<std::uint16_t>(file_, end + 10), at = number<std::uint32_t>(file_, end + 16);
  if (end >= kLocatorBytes && number<std::uint32_t>(file_, end - kLocatorBytes) == kLocatorMark) {
    const auto wide = number<std::uint64_t>(file_, end - kLocatorBytes + 8);
    if (wide > file_.size() - kEnd64Bytes || number<std::uint32_t>(file_, wide) != kEnd64Mark)
      fail("a whole zip", "a damaged directory");
    count = number<std::uint64_t>(file_, wide + 32);
    at = number<std::uint64_t>(file_, wide + 48);
  }
  if (count > kMostMembers) fail(fmt::format("at most {} members", kMostMembers), std::to_string(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at > file_.size() || number<std::uint32_t>(file_, at) != kEntryMark) fail("a whole zip", "a damaged directory");
    const auto method = number<std::uint16_t>(file_, at + 10), flags = number<std::uint16_t>(file_, at + 8);
    const std::size_t name = number<std::uint16_t>(file_, at + 28), extra = number<std::uint16_t>(file_, at + 30),
                      comment = number<std::uint16_t>(file_, at + 32);
    const Wide w = widened(
        file_, at + kEntryBytes + name, extra,
        {number<std::uint32_t>(file_, at + 24), number<std::uint32_t>(file_, at + 20), number<std::uint32_t>(file_, at + 42)});
    add_member(w.header, text_at(file_, at + kEntryBytes, name), w.size,
               method == 0 && (flags & 1U) == 0 && w.size == w.packed);
    at += kEntryBytes + name + extra + comment;
  }
}

void Archive::add_member(std::size_t header, std::string name, std::uint64_t size, bool stored) {
  const std::size_t folder = name.find('/');
  if (folder == name.npos || folder + 1 == name.size()) return;
  name.erase(0, folder + 1);
  if (!stored) {
    if (name.starts_with("data/sample_inputs")) return;  // pickles are not read
    fail("members without compression", fmt::format("'{}'", name), "save the program with torch.export.save");
  }
  if (header > file_.size() || number<std::uint32_t>(file_, header) != kLocalMark) fail("a whole zip", "a damaged member");
  const std::size_t begin =
      header + kLocalBytes + number<std::uint16_t>(file_, header + 26) + number<std::uint16_t>(file_, header + 28);
  if (begin > file_.size() || size > file_.size() - begin) fail("a whole zip", fmt::format("'{}' cut off", name));
  members_[name] = file_.subspan(begin, size);
}

std::span<const std::byte> Archive::bytes(std::string_view member) const {
  const auto found = members_.find(member);
  if (found == members_.end())
    fail(fmt::format("a program of torch.export.save with the member '{}'", member), "a zip without it",
         "files of torch.save and of TorchScript are others: export the model with torch.export");
  return found->second;
}

std::string_view Archive::text(std::string_view member) const {
  const auto found = bytes(member);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

}  // namespace oclc::pt2
