// What the runtime does differently for a driver. One table, matched by parts of names.
#pragma once
#include <cstdint>
#include <string>

namespace oclc::runtime {

enum class Quirk : std::uint32_t {
  own_cache = 1,          // the driver keeps compiled programs itself, and asking it for binaries costs more than a build
  serial_compiler = 2,    // builds take turns in the driver and each costs a fixed part: fewer, larger programs win
  no_command_buffer = 4,  // replay is slower than enqueuing, or wrong
  loop_limit = 8,    // all loops of a work-item end after 65535 iterations together, without an error: plans that do not reckon
                     // with it are refused
  fill_unseen = 16,  // a checker takes memory that was filled for uninitialized: zeros are written
  host_memory_is_seen =
      32,  // a buffer over host memory is that memory: kernels and host see each other's stores without mapping
  understates_local_memory = 64,  // kernels may declare more local memory than the device tells
  workers_sleep = 128,  // threads that run kernels sleep as soon as there are none, and waking them takes as long as short runs
  no_tile_assembly = 256,  // its compiler takes no x86 instructions in a kernel: AMX tiles are not reached
  compiles_on_one_core =
      512,  // one program at a time in a process, what is compiled stays on disk for others: other processes help
  links_by_program = 1024,  // it links kernels by the program `ld`, and ends the process where that is not on the PATH
  serial_builds = 2048,     // builds are serialized in a process, each with all its kernels, and stay on disk for others: other
                            // processes help
  races_on_disk = 4096      // processes that build one text at once may end: they take turns
};

struct DriverNames {
  std::string platform;  // name and version of the platform
  std::string device;
  std::string driver;
};

// Bits of Quirk: of the table, with those added or taken away (`-name`) that the environment variable OCLC_QUIRKS lists, apart
// by commas. Failure(OCLC_E_ARGUMENT) for a name that is none.
std::uint32_t find_quirks(const DriverNames& names);
inline bool has(std::uint32_t quirks, Quirk quirk) { return (quirks & static_cast<std::uint32_t>(quirk)) != 0; }

// The program that a driver with these quirks runs and that is not on the PATH; empty if there is none.
std::string missing_program(std::uint32_t quirks);

// Names of the bits, separated by spaces.
std::string quirk_names(std::uint32_t quirks);

}  // namespace oclc::runtime
