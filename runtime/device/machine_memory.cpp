#include "runtime/device/machine_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>

namespace oclc::runtime {
namespace {

// Reading what is left costs more than less memory is worth.
constexpr std::uint64_t kLeastCounted = std::uint64_t{64} << 20;

// Of a file with a number; nothing for "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// Of a line "NAME NUMBER ...".
std::optional<std::uint64_t> number_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t value = 0;
    if (word == name && file >> value) return value;
  }
  return std::nullopt;
}

// Of the machine; nothing where the system does not say.
std::optional<std::uint64_t> machine_has_left() {
  const std::string path = "/proc/meminfo";
  const auto available = number_of(path, "MemAvailable:"), swap = number_of(path, "SwapFree:");
  if (!available) return std::nullopt;
  return (*available + swap.value_or(0)) << 10;
}

// Of the process's control group (version 2) as it sees itself. Pages of files that are not in use are given back for others.
std::optional<std::uint64_t> group_has_left() {
  const std::string folder = "/sys/fs/cgroup/";
  const auto limit = number_in(folder + "memory.max"), used = number_in(folder + "memory.current");
  if (!limit || !used) return std::nullopt;
  const std::uint64_t kept = *used - std::min(*used, number_of(folder + "memory.stat", "inactive_file").value_or(0));
  return *limit - std::min(*limit, kept);
}

}  // namespace

std::string problem_of_memory(std::uint64_t bytes) {
  if (bytes == 0) return {};
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return "which the system refuses: " + std::generic_category().message(errno);
  ::munmap(begin, bytes);
  if (bytes < kLeastCounted) return {};
  if (const auto left = machine_has_left(); left && *left < bytes) return "the machine has " + std::to_string(*left) + " left";
  if (const auto left = group_has_left(); left && *left < bytes)
    return "the process's control group has " + std::to_string(*left) + " left";
  return {};
}

}  // namespace oclc::runtime
