// The folder of the program cache as people see it: where it is, what lies in it, what is removed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace oclc::runtime {

// `wanted`, else OCLC_CACHE_DIR, else $XDG_CACHE_HOME/oclc, else $HOME/.cache/oclc; "" if none of them names a folder.
std::string cache_folder(const std::string& wanted);

// Where PoCL keeps what it compiled, by its own rule.
std::string pocl_cache_folder();

// A file of the cache: a binary, or what was kept of a build that failed. Told by its name from others in the folder.
struct CacheFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  // nanoseconds since 1970: when it was last written or read
};
// That used last first. None where the folder cannot be read.
std::vector<CacheFile> cache_files(const std::string& folder);

struct Pruned {
  std::uint32_t files = 0;
  std::uint64_t bytes = 0;
};
// Removes the files used before `oldest` (nanoseconds since 1970), then those used longest ago until the rest takes at most
// `max_bytes`. Other processes may do the same at once.
Pruned prune_cache(const std::string& folder, std::uint64_t max_bytes, std::int64_t oldest = INT64_MIN);

}  // namespace oclc::runtime
