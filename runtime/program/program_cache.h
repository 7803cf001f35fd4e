// Program binaries on disk. Drivers crash on damaged binaries, so an entry is used only if its checksum and its whole key
// agree.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace oclc::runtime {

// An entry is this, its key and the binary. The hash covers everything behind it.
struct CacheEntry {
  char magic[8] = {'O', 'C', 'L', 'C', 'B', 'I', 'N', '1'};
  std::uint64_t hash = 0, key_bytes = 0, binary_bytes = 0;
};

// What a file of the cache says of itself.
struct CacheHead {
  bool binary = false;   // else text that was kept of a build
  bool damaged = false;  // a binary that will not be used
  std::string producer, device, driver;
};

class ProgramCache {
 public:
  using Warn = std::function<void(const std::string&)>;

  // `folder` empty: OCLC_CACHE_DIR, else $XDG_CACHE_HOME/oclc, else $HOME/.cache/oclc. Never fails: without a usable folder the
  // cache is off and `warn` is called once. OCLC_CACHE_MAX_MB (default 512) bounds the folder; the entries used longest ago go
  // first.
  ProgramCache(const std::string& folder, Warn warn);

  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

  // The binary stored under `key`, if it is there undamaged. Thread-safe, also between processes.
  std::optional<std::vector<unsigned char>> load(const std::string& key);
  // Warns that the driver did not take the binary stored under `key`. Thread-safe.
  void refused(const std::string& key, const std::string& reason);
  // Thread-safe; atomic; failure switches writing off with one warning.
  void store(const std::string& key, const std::vector<unsigned char>& binary);
  // Writes text beside the entries and returns its path, or "" if that is impossible.
  std::string write_log(const std::string& key, const std::string& extension, const std::string& text);

  static CacheHead head_of(const std::string& path);

  // Where the entry of `key` lies.
  std::string path_of(const std::string& key) const;

 private:
  void warn_once(const std::string& text);

  std::string folder_;
  Warn warn_;
  std::mutex mutex_;
  bool warned_ = false;
  bool writable_ = true;
  std::uint64_t max_bytes_ = 0;
};

}  // namespace oclc::runtime
