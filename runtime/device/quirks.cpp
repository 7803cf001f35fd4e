#include "runtime/device/quirks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace oclc::runtime {
namespace {

constexpr std::uint32_t bit(Quirk quirk) { return static_cast<std::uint32_t>(quirk); }

struct Row {
  const char* platform;  // part of the name; "" fits all
  const char* device;
  const char* driver;
  std::uint32_t quirks;
};

constexpr Row kRows[] = {
    // A program costs 190 to 270 ms under one lock, however small; its binary holds every kernel compiled once more (about 150
    // ms
    // each); a warm start from its own cache takes 40 ms a program. 35 kernels in one program: 1.2 s to build, 0.05 s when
    // warm.
    {"Portable Computing Language", "", "",
     bit(Quirk::own_cache) | bit(Quirk::serial_compiler) | bit(Quirk::host_memory_is_seen) | bit(Quirk::workers_sleep) |
         bit(Quirk::compiles_on_one_core) | bit(Quirk::links_by_program)},
    // Simulators interpret the program: there is nothing worth caching. Fills: tests/platforms/oclgrind/fill.c.
    {"Oclgrind", "", "", bit(Quirk::own_cache) | bit(Quirk::serial_compiler) | bit(Quirk::fill_unseen)},
    // Mesa 22.3: a guard against endless shaders counts the iterations of all loops of a work-item down from 65535 and then
    // leaves every loop (tests/platforms/rusticl_loop_limit.cpp). Plans for other targets than llvmpipe are refused.
    {"rusticl", "llvmpipe", "", bit(Quirk::loop_limit)},
    // Kernels are compiled by way of SPIR-V, whose inline assembly has no registers of x86.
    {"Intel(R) OpenCL", "", "", bit(Quirk::no_tile_assembly)},
    // Declared local memory is granted up to what the chip has (224 KB on an H200); the device tells of the least of all chips.
    {"NVIDIA CUDA", "", "", bit(Quirk::understates_local_memory)},
};

bool fits(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

}  // namespace

std::uint32_t find_quirks(const DriverNames& names) {
  std::uint32_t quirks = 0;
  for (const Row& row : kRows)
    if (fits(names.platform, row.platform) && fits(names.device, row.device) && fits(names.driver, row.driver))
      quirks |= row.quirks;
  return quirks;
}

std::string missing_program(std::uint32_t quirks) {
  if (!has(quirks, Quirk::links_by_program)) return {};
  const char* path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    if (::access((folders.substr(at, end - at) + "/ld").c_str(), X_OK) == 0) return {};
    at = end + 1;
  }
  return "ld";
}

std::string quirk_names(std::uint32_t quirks) {
  std::string text;
  const auto append = [&](Quirk quirk, const char* name) {
    if (has(quirks, quirk)) text += (text.empty() ? "" : " ") + std::string(name);
  };
  append(Quirk::own_cache, "own_cache");
  append(Quirk::serial_compiler, "serial_compiler");
  append(Quirk::no_command_buffer, "no_command_buffer");
  append(Quirk::loop_limit, "loop_limit");
  append(Quirk::fill_unseen, "fill_unseen");
  append(Quirk::host_memory_is_seen, "host_memory_is_seen");
  append(Quirk::understates_local_memory, "understates_local_memory");
  append(Quirk::workers_sleep, "workers_sleep");
  append(Quirk::no_tile_assembly, "no_tile_assembly");
  append(Quirk::compiles_on_one_core, "compiles_on_one_core");
  append(Quirk::links_by_program, "links_by_program");
  return text;
}

}  // namespace oclc::runtime
