#include "runtime/program/cache_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace oclc::runtime {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Names begin with the hash of a key: whatever else lies in the folder is not the cache's.
bool is_ours(const std::string& name) {
  constexpr std::size_t kDigits = 16;
  const std::size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  if (digits != kDigits) return false;
  const std::string rest = name.substr(kDigits);
  return rest == ".bin" || rest == ".log" || rest == ".cl" || rest.find(".tmp-") != std::string::npos;
}

}  // namespace

std::string cache_folder(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const std::string own = variable("OCLC_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/') return xdg + "/oclc";
  if (const std::string home = variable("HOME"); !home.empty() && home[0] == '/') return home + "/.cache/oclc";
  return "";
}

std::string pocl_cache_folder() {
  if (const std::string own = variable("POCL_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/pocl/kcache";
  const std::string home = variable("HOME");
  return home.empty() ? "/tmp/pocl/kcache" : home + "/.cache/pocl/kcache";
}

std::vector<CacheFile> cache_files(const std::string& folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_ours(it->path().filename().string())) continue;
    struct stat status {};
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    files.push_back({it->path().string(), static_cast<std::uint64_t>(status.st_size),
                     std::int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec});
  }
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.used != b.used ? a.used > b.used : a.path < b.path; });
  return files;
}

Pruned prune_cache(const std::string& folder, std::uint64_t max_bytes, std::int64_t oldest) {
  std::vector<CacheFile> files = cache_files(folder);
  std::uint64_t total = 0;
  for (const CacheFile& file : files) total += file.bytes;
  Pruned pruned;
  for (; !files.empty() && (total > max_bytes || files.back().used < oldest); files.pop_back()) {
    std::error_code error;
    total -= files.back().bytes;
    if (!fs::remove(files.back().path, error)) continue;
    ++pruned.files;
    pruned.bytes += files.back().bytes;
  }
  return pruned;
}

}  // namespace oclc::runtime
