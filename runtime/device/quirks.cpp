#include "runtime/device/quirks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runtime/failure.h"

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
    // Before 6.0: pocl_write_file removes what it replaces; of 240 cold starts of eight processes one failed (3.1).
    {"OpenCL 1.2 pocl", "", "", bit(Quirk::races_on_disk)},
    {"OpenCL 2.0 pocl", "", "", bit(Quirk::races_on_disk)},
    {"OpenCL 3.0 PoCL 3", "", "", bit(Quirk::races_on_disk)},
    {"OpenCL 3.0 PoCL 4", "", "", bit(Quirk::races_on_disk)},
    {"OpenCL 3.0 PoCL 5", "", "", bit(Quirk::races_on_disk)},
    // Simulators interpret the program: there is nothing worth caching. Fills: tests/platforms/oclgrind/fill.c.
    {"Oclgrind", "", "", bit(Quirk::own_cache) | bit(Quirk::serial_compiler) | bit(Quirk::fill_unseen)},
    // Mesa 22.3: a guard against endless shaders counts the iterations of all loops of a work-item down from 65535 and then
    // leaves every loop (tests/platforms/rusticl_loop_limit.cpp). Plans for other targets than llvmpipe are refused.
    {"rusticl", "llvmpipe", "", bit(Quirk::loop_limit)},
    // Kernels are compiled by way of SPIR-V, whose inline assembly has no registers of x86.
    {"Intel(R) OpenCL", "", "", bit(Quirk::no_tile_assembly)},
    // Declared local memory is granted up to what the chip has (224 KB on an H200); the device tells of the least of all chips.
    // Builds of threads are serialized: ResNet-50's 32 kernels take 8.1 s in one process, eight processes as long as one (H100,
    // driver 580); what another process has built takes 10 ms a program.
    {"NVIDIA CUDA", "", "", bit(Quirk::understates_local_memory) | bit(Quirk::serial_builds)},
};

bool fits(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

struct Name {
  Quirk quirk;
  std::string_view text;
};

constexpr Name kNames[] = {{Quirk::own_cache, "own_cache"},
                           {Quirk::serial_compiler, "serial_compiler"},
                           {Quirk::no_command_buffer, "no_command_buffer"},
                           {Quirk::loop_limit, "loop_limit"},
                           {Quirk::fill_unseen, "fill_unseen"},
                           {Quirk::host_memory_is_seen, "host_memory_is_seen"},
                           {Quirk::understates_local_memory, "understates_local_memory"},
                           {Quirk::workers_sleep, "workers_sleep"},
                           {Quirk::no_tile_assembly, "no_tile_assembly"},
                           {Quirk::compiles_on_one_core, "compiles_on_one_core"},
                           {Quirk::links_by_program, "links_by_program"},
                           {Quirk::serial_builds, "serial_builds"},
                           {Quirk::races_on_disk, "races_on_disk"}};

std::uint32_t bit_of_name(std::string_view name) {
  for (const Name& known : kNames)
    if (known.text == name) return bit(known.quirk);
  std::string all;
  for (const Name& known : kNames) all += (all.empty() ? "" : ", ") + std::string(known.text);
  throw Failure(OCLC_E_ARGUMENT, "OCLC_QUIRKS: no quirk is called '" + std::string(name) + "'; there are " + all);
}

std::uint32_t with_environment(std::uint32_t quirks) {
  const char* wish = std::getenv("OCLC_QUIRKS");
  std::string_view list = wish ? wish : "";
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view item = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (item.starts_with('-'))
      quirks &= ~bit_of_name(item.substr(1));
    else if (!item.empty())
      quirks |= bit_of_name(item);
  }
  return quirks;
}

}  // namespace

std::uint32_t find_quirks(const DriverNames& names) {
  std::uint32_t quirks = 0;
  for (const Row& row : kRows)
    if (fits(names.platform, row.platform) && fits(names.device, row.device) && fits(names.driver, row.driver))
      quirks |= row.quirks;
  return with_environment(quirks);
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
  for (const Name& known : kNames)
    if (has(quirks, known.quirk)) text += (text.empty() ? "" : " ") + std::string(known.text);
  return text;
}

}  // namespace oclc::runtime
