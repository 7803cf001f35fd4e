#include "compiler/targets/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/error.h"

namespace oclc {

const std::vector<Target>& target_rows() {
  static const std::vector<Target> rows = {
      {"cpu", DeviceClass::cpu, 16, 32, 2, 1 << 20, 512 << 10, 1, 400e9, 30e9, 20e-6, true, false, "CPU with 512-bit vectors"},
      {"cpu-zen", DeviceClass::cpu, 16, 32, 2, 1 << 20, 512 << 10, 1, 400e9, 30e9, 20e-6, true, false,
       "AMD CPU with 512-bit vectors (Zen 4 and later)", Target::kNoLimit, MatrixUnit::none, true},
      {"cpu-amx", DeviceClass::cpu, 16, 32, 2, 2 << 20, 1 << 20, 1, 400e9, 30e9, 20e-6, true, false,
       "x86 CPU with 512-bit vectors and AMX tiles of bfloat16", Target::kNoLimit, MatrixUnit::amx},
      {"cpu-256", DeviceClass::cpu, 8, 16, 4, 512 << 10, 256 << 10, 1, 380e9, 30e9, 20e-6, true, false,
       "CPU with 256-bit vectors"},
      {"cpu-128", DeviceClass::cpu, 4, 32, 4, 512 << 10, 64 << 10, 1, 60e9, 15e9, 20e-6, true, false,
       "CPU with 128-bit vectors"},
      {"gpu", DeviceClass::gpu, 1, 64, 32, 4 << 20, 32 << 10, 256, 5e12, 300e9, 4e-6, false, false,
       "any GPU with 32 KiB of local memory"},
      {"h200", DeviceClass::gpu, 1, 128, 132, 50 << 20, 48 << 10, 256, 60e12, 4e12, 4e-6, true, true, "NVIDIA H200",
       Target::kNoLimit, MatrixUnit::nv_tf32},
      // A CPU whose vectors run over the work-items of a group. Its driver ends all loops of a work-item after 65535
      // iterations.
      {"llvmpipe", DeviceClass::gpu, 1, 16, 8, 512 << 10, 32 << 10, 32, 5e9, 10e9, 50e-6, false, false,
       "Mesa's llvmpipe, as rusticl offers it", 65535},
  };
  return rows;
}

bool has_few_registers(const Target& target) { return target.vector_registers <= 16; }

bool has_wide_vectors(const Target& target) { return target.vector_width >= 16; }

const Target& find_target(std::string_view name) {
  const auto& rows = target_rows();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const Target& t) { return t.name == name; });
  if (at != rows.end()) return *at;
  std::string names;
  for (const Target& t : rows) names += (names.empty() ? "" : ", ") + t.name;
  throw CompileError({.stage = "target",
                      .wanted = "one of " + names,
                      .found = fmt::format("target '{}'", name),
                      .exit_code = ExitCode::usage});
}

// Vendor of Intel's CPU runtime. It compiles 66 kernels in 6 s, but takes minutes for one that does the work of all, or nine
// for eight each.
constexpr std::string_view kIntel = "Intel(R)";

// A processor's name holds its maker's.
bool is_amd(std::string_view name) { return name.find("AMD") != name.npos; }

// The same chip with different memory.
bool is_hopper(std::string_view name) { return name == "NVIDIA H200" || name.starts_with("NVIDIA H100"); }

Target target_for(const DeviceFacts& facts) {
  Target target = find_target(facts.loop_limit          ? "llvmpipe"
                              : is_hopper(facts.name)   ? "h200"
                              : !facts.is_cpu           ? "gpu"
                              : facts.vector_width < 8  ? "cpu-128"
                              : facts.vector_width < 16 ? "cpu-256"
                              : facts.amx               ? "cpu-amx"
                              : is_amd(facts.name)      ? "cpu-zen"
                                                        : "cpu");
  if (facts.is_cpu) target.flops *= static_cast<double>(std::max(facts.compute_units, 1)) / target.compute_units;
  target.compute_units = std::max(facts.compute_units, 1);
  target.local_bytes = facts.local_bytes;
  if (facts.is_cpu && facts.vendor.starts_with(kIntel)) target.kernels_a_launch = 1;
  target.fp64 = facts.fp64;
  // Where the unit is missing, the runtime takes the other text of a kernel.
  if (facts.vendor.find("NVIDIA") != std::string_view::npos) target.matrix_unit = MatrixUnit::nv_tf32;
  if (target.device_class == DeviceClass::gpu) target.work_group = std::min(target.work_group, facts.max_work_group);
  return target;
}

}  // namespace oclc
