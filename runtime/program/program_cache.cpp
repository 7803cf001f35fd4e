#include "runtime/program/program_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "runtime/program/cache_folder.h"

namespace oclc::runtime {
namespace {

constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;

std::span<const std::byte> bytes_of(const void* data, std::size_t size) { return {static_cast<const std::byte*>(data), size}; }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Why the folder cannot serve, or "".
std::string make_folder(const std::string& folder) {
  std::error_code error;
  for (std::size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    const std::string part = folder.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && slash == folder.npos)
      return std::generic_category().message(errno);
    if (slash == folder.npos) break;
  }
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return std::generic_category().message(errno);
  if (!S_ISDIR(status.st_mode)) return "it is not a folder";
  if ((status.st_mode & S_IWOTH) && status.st_uid != ::getuid()) return "it is writable by everyone and not ours";
  if (::access(folder.c_str(), R_OK | X_OK) != 0) return std::generic_category().message(errno);
  return "";
}

std::optional<std::string> read_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::optional<std::string> result;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) <= kMaxEntryBytes) {
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = ::read(descriptor, text.data() + done, text.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    if (done == text.size()) result = std::move(text);
  }
  ::close(descriptor);
  return result;
}

// Of an undamaged entry.
std::optional<CacheEntry> checked_head(const std::string& text) {
  CacheEntry head;
  const std::size_t behind_hash = offsetof(CacheEntry, key_bytes);
  if (text.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, text.data(), sizeof head);
  const std::uint64_t rest = text.size() - sizeof head;
  const bool good = std::memcmp(head.magic, CacheEntry{}.magic, sizeof head.magic) == 0 && head.key_bytes <= rest &&
                    head.binary_bytes == rest - head.key_bytes &&
                    head.hash == package::hash64(bytes_of(text.data() + behind_hash, text.size() - behind_hash));
  return good ? std::optional(head) : std::nullopt;
}

}  // namespace

ProgramCache::ProgramCache(const std::string& folder, Warn warn) : warn_(std::move(warn)) {
  const std::string wanted = cache_folder(folder);
  if (wanted.empty()) {
    warn_once("the program cache is off: neither OCLC_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder");
    return;
  }
  if (const std::string problem = make_folder(wanted); !problem.empty()) {
    warn_once("the program cache is off: cannot use folder '" + wanted + "': " + problem);
    return;
  }
  folder_ = wanted;
  const std::string limit = environment("OCLC_CACHE_MAX_MB");
  max_bytes_ = (limit.empty() ? 512 : std::strtoull(limit.c_str(), nullptr, 10)) << 20;
}

void ProgramCache::warn_once(const std::string& text) {
  if (std::exchange(warned_, true)) return;
  if (warn_) warn_(text);
}

std::string ProgramCache::path_of(const std::string& key) const {
  char name[40];
  std::snprintf(name, sizeof name, "%016llx.bin",
                static_cast<unsigned long long>(package::hash64(bytes_of(key.data(), key.size()))));
  return folder_ + "/" + name;
}

std::optional<std::vector<unsigned char>> ProgramCache::load(const std::string& key) {
  if (!enabled()) return std::nullopt;
  const std::string path = path_of(key);
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto head = checked_head(*text);
  if (!head) {
    const std::lock_guard lock(mutex_);
    warn_once("the program cache entry '" + path + "' is damaged; it is made anew");
    return std::nullopt;
  }
  if (std::string_view(text->data() + sizeof *head, head->key_bytes) != key) return std::nullopt;  // another key with this hash
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);                                                 // used now
  const auto* begin = reinterpret_cast<const unsigned char*>(text->data()) + sizeof *head + head->key_bytes;
  return std::vector<unsigned char>(begin, begin + head->binary_bytes);
}

void ProgramCache::refused(const std::string& key, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  warn_once("the driver refuses the program cache entry '" + path_of(key) + "': " + reason + "; it is made anew");
}

void ProgramCache::store(const std::string& key, const std::vector<unsigned char>& binary) {
  if (!enabled() || sizeof(CacheEntry) + key.size() + binary.size() > kMaxEntryBytes) return;
  {
    const std::lock_guard lock(mutex_);
    if (!writable_) return;
  }
  CacheEntry head;
  head.key_bytes = key.size();
  head.binary_bytes = binary.size();
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  text += key;
  text.append(reinterpret_cast<const char*>(binary.data()), binary.size());
  const std::size_t behind_hash = offsetof(CacheEntry, key_bytes);
  head.hash = package::hash64(bytes_of(text.data() + behind_hash, text.size() - behind_hash));
  std::memcpy(text.data(), &head, sizeof head);
  try {
    package::write_file(path_of(key), bytes_of(text.data(), text.size()));
  } catch (const package::Error& error) {
    const std::lock_guard lock(mutex_);
    writable_ = false;
    warn_once(std::string("the program cache is not written: ") + error.what());
    return;
  }
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const CacheFile& file : cache_files(folder_)) total += file.bytes;
  if (total > max_bytes_) prune_cache(folder_, max_bytes_ / 10 * 8);
}

std::string ProgramCache::write_log(const std::string& key, const std::string& extension, const std::string& text) {
  if (!enabled()) return "";
  std::string path = path_of(key);
  path.replace(path.size() - 3, 3, extension);
  try {
    package::write_file(path, bytes_of(text.data(), text.size()));
  } catch (const package::Error&) {
    return "";
  }
  return path;
}

// A key begins with lines about the device, see program_builder.cpp.
CacheHead ProgramCache::head_of(const std::string& path) {
  CacheHead result;
  result.binary = path.ends_with(".bin");
  if (!result.binary) return result;
  const auto text = read_file(path);
  const auto head = text ? checked_head(*text) : std::nullopt;
  result.damaged = !head;
  if (!head) return result;
  std::string_view key(text->data() + sizeof *head, head->key_bytes);
  std::string* const lines[] = {&result.producer, nullptr, nullptr, nullptr, &result.device, &result.driver};
  for (std::string* line : lines) {
    const std::size_t end = std::min(key.find('\n'), key.size());
    if (line) *line = key.substr(0, end);
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return result;
}

}  // namespace oclc::runtime
