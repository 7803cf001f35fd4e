#include "runtime/program/build_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>

#include "runtime/program/cache_folder.h"

namespace oclc::runtime {
namespace {

constexpr std::chrono::seconds kLongestWait(60);
constexpr std::chrono::milliseconds kLook(2);

// All builders are of one build of this library: its hash is the same in each.
std::string lock_file(std::string_view options, std::string_view source) {
  const std::hash<std::string_view> hash;
  char name[48];
  std::snprintf(name, sizeof name, "/oclc-%016zx%016zx.lock", hash(options), hash(source));
  return pocl_cache_folder() + name;
}

}  // namespace

BuildLock::BuildLock(std::string_view options, std::string_view source)
    : file_(::open(lock_file(options, source).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(kLook);
  }
}

BuildLock::BuildLock(BuildLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

BuildLock::~BuildLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace oclc::runtime
