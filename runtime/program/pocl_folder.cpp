#include "runtime/program/pocl_folder.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "runtime/program/cache_folder.h"

namespace oclc::runtime {
namespace {

// Of a network's plan PoCL keeps 0.5 to 1 MB a compilation, and as much again while it works.
constexpr std::uint64_t kRoom = std::uint64_t{16} << 20;

std::string& note() {
  static std::string text;
  return text;
}

// Of the file system of the folder, or of the first folder above it that exists. Nothing where it counts no bytes, as /proc.
std::optional<std::uint64_t> bytes_left(std::string folder) {
  struct statvfs status {};
  while (::statvfs(folder.c_str(), &status) != 0) {
    const std::size_t slash = folder.find_last_of('/');
    if (slash == folder.npos || folder == "/") return std::nullopt;
    folder.resize(slash == 0 ? 1 : slash);
  }
  if (status.f_blocks == 0) return std::nullopt;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// Nobody else can write into it.
bool make_own_folder(const std::string& folder) {
  struct stat status {};
  ::mkdir(folder.c_str(), 0700);
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::getuid() &&
         (status.st_mode & 0077) == 0;
}

}  // namespace

void make_room_for_pocl() {
  const std::string own = pocl_cache_folder();
  const std::optional<std::uint64_t> left = bytes_left(own);
  if (!left || *left >= kRoom) return;
  note() = "PoCL's cache folder '" + own + "' has no room (" + std::to_string(*left) + " bytes left)";
  const char* wish = std::getenv("TMPDIR");
  for (const std::string& place : {std::string(wish ? wish : ""), std::string("/tmp"), std::string("/dev/shm")}) {
    const std::string folder = place + "/oclc-pocl-" + std::to_string(::getuid());
    if (place.empty() || bytes_left(place).value_or(0) < kRoom || !make_own_folder(folder)) continue;
    if (::setenv("POCL_CACHE_DIR", folder.c_str(), 1) != 0) continue;
    note() += "; what it compiles is kept in '" + folder + "'";
    return;
  }
  note() += "; make some, or name another folder by POCL_CACHE_DIR: PoCL ends the process when it cannot write";
}

const std::string& note_of_pocl_folder() { return note(); }

}  // namespace oclc::runtime
