#include "compiler/targets/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/error.h"
#include "compiler/support/nearest.h"

namespace oclc {

namespace {

constexpr Capabilities kCores{.megakernel = Megakernel::cores};

std::vector<Target> rows_of_cpus() {
  return {
      {.name = "cpu",
       .about = "CPU with 512-bit vectors",
       .vector_width = 16,
       .vector_registers = 32,
       .local_bytes = 512 << 10,
       .work_group = 1,
       .largest_group = 1,
       .flops = 400e9,
       .has = kCores},
      {.name = "cpu-zen",
       .about = "AMD CPU with 512-bit vectors (Zen 4 and later)",
       .vector_width = 16,
       .vector_registers = 32,
       .local_bytes = 512 << 10,
       .work_group = 1,
       .largest_group = 1,
       .flops = 400e9,
       .has = {.megakernel = Megakernel::cores, .fadd_pipes = true}},
      {.name = "cpu-amx",
       .about = "x86 CPU with 512-bit vectors and AMX tiles of bfloat16",
       .vector_width = 16,
       .vector_registers = 32,
       .l2_bytes = 2 << 20,
       .local_bytes = 1 << 20,
       .work_group = 1,
       .largest_group = 1,
       .flops = 400e9,
       .matrix_unit = &matrix_unit("amx_bf16"),
       .has = {.megakernel = Megakernel::cores, .int8_tiles = true}},
      {.name = "cpu-256",
       .about = "CPU with 256-bit vectors",
       .compute_units = 4,
       .l2_bytes = 512 << 10,
       .local_bytes = 256 << 10,
       .work_group = 1,
       .largest_group = 1,
       .flops = 380e9,
       .has = {.megakernel = Megakernel::cores, .tall_tiles = false, .software_prefetch = false}},
      // Its tiles and prefetches are those of 512-bit vectors: not measured.
      {.name = "cpu-128",
       .about = "CPU with 128-bit vectors",
       .vector_width = 4,
       .vector_registers = 32,
       .compute_units = 4,
       .l2_bytes = 512 << 10,
       .local_bytes = 64 << 10,
       .work_group = 1,
       .largest_group = 1,
       .flops = 60e9,
       .bytes_per_second = 15e9,
       .has = kCores},
  };
}

std::vector<Target> rows_of_gpus() {
  return {
      {.name = "gpu",
       .about = "any GPU with 32 KiB of local memory",
       .device_class = DeviceClass::gpu,
       .vector_width = 1,
       .vector_registers = 64,
       .compute_units = 32,
       .l2_bytes = 4 << 20,
       .flops = 5e12,
       .bytes_per_second = 300e9,
       .launch_seconds = 4e-6,
       .has = {.fp64 = false, .horizontal_fusion = true}},
      {.name = "h200",
       .about = "NVIDIA H200",
       .device_class = DeviceClass::gpu,
       .vector_width = 1,
       .vector_registers = 128,
       .compute_units = 132,
       .l2_bytes = 50 << 20,
       .local_bytes = 48 << 10,
       .largest_group = 1024,
       .flops = 60e12,
       .bytes_per_second = 4e12,
       .launch_seconds = 4e-6,
       .matrix_unit = &matrix_unit("nv_tf32"),
       .has = {.megakernel = Megakernel::groups, .wgmma = true, .horizontal_fusion = true, .one_memory_object = true}},
      // From the vendors' documents: nobody has measured either.
      {.name = "xe",
       .about = "Intel GPU with XMX in sub-groups of 16 (Data Center GPU Max, Xe2): not measured",
       .device_class = DeviceClass::gpu,
       .vector_width = 1,
       .vector_registers = 128,
       .compute_units = 64,
       .l2_bytes = 16 << 20,
       .local_bytes = 64 << 10,
       .flops = 20e12,
       .bytes_per_second = 1e12,
       .launch_seconds = 6e-6,
       .matrix_unit = &matrix_unit("xmx"),
       .has = {.fp64 = false, .horizontal_fusion = true}},
      {.name = "rdna3",
       .about = "AMD GPU with WMMA (gfx1100 to gfx1102): not measured",
       .device_class = DeviceClass::gpu,
       .vector_width = 1,
       .vector_registers = 128,
       .compute_units = 48,
       .l2_bytes = 6 << 20,
       .local_bytes = 64 << 10,
       .flops = 30e12,
       .bytes_per_second = 800e9,
       .launch_seconds = 6e-6,
       .matrix_unit = &matrix_unit("wmma"),
       .has = {.fp64 = false, .horizontal_fusion = true}},
      // A CPU whose vectors run over the work-items of a group. Its driver ends all loops of a work-item after 65535
      // iterations.
      {.name = "llvmpipe",
       .about = "Mesa's llvmpipe, as rusticl offers it",
       .device_class = DeviceClass::gpu,
       .vector_width = 1,
       .compute_units = 8,
       .l2_bytes = 512 << 10,
       .work_group = 32,
       .largest_group = 32,
       .flops = 5e9,
       .bytes_per_second = 10e9,
       .launch_seconds = 50e-6,
       .loop_iterations = 65535,
       .has = {.fp64 = false, .horizontal_fusion = true, .tall_tiles = false, .software_prefetch = false}},
  };
}

}  // namespace

const std::vector<Target>& target_rows() {
  static const std::vector<Target> rows = [] {
    std::vector<Target> all = rows_of_cpus();
    for (const Target& row : rows_of_gpus()) all.push_back(row);
    return all;
  }();
  return rows;
}

const Target& find_target(std::string_view name) {
  const auto& rows = target_rows();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const Target& t) { return t.name == name; });
  if (at != rows.end()) return *at;
  std::vector<std::string> names;
  for (const Target& t : rows) names.push_back(t.name);
  throw CompileError({.stage = "target",
                      .wanted = fmt::format("one of {}", fmt::join(names, ", ")),
                      .found = fmt::format("target '{}'", name),
                      .advice = did_you_mean(name, names),
                      .exit_code = ExitCode::usage});
}

// Vendor of Intel's CPU runtime. It compiles 66 kernels in 6 s, but takes minutes for one that does the work of all, or nine
// for eight each.
constexpr std::string_view kIntel = "Intel(R)";

// A processor's name holds its maker's.
bool is_amd(std::string_view name) { return name.find("AMD") != name.npos; }

bool is_nvidia(std::string_view vendor) { return vendor.find("NVIDIA") != vendor.npos; }

// GPUs that have a row, by what their name holds. An H100 is the same chip as an H200 with different memory.
struct KnownGpu {
  std::string_view name, row;
};
constexpr KnownGpu kKnownGpus[] = {{"NVIDIA H200", "h200"}, {"NVIDIA H100", "h200"}, {"Data Center GPU Max", "xe"},
                                   {"Arc(TM) B", "xe"},     {"Arc(TM) 140V", "xe"},  {"Arc(TM) 130V", "xe"},
                                   {"gfx1100", "rdna3"},    {"gfx1101", "rdna3"},    {"gfx1102", "rdna3"}};

std::string_view gpu_row(std::string_view name) {
  const auto at = std::find_if(std::begin(kKnownGpus), std::end(kKnownGpus),
                               [&](const KnownGpu& gpu) { return name.find(gpu.name) != name.npos; });
  return at == std::end(kKnownGpus) ? "gpu" : at->row;
}

// Templates of GPUs divide a tile among at least so many work-items. A device with fewer gets kernels of single ones, as
// processors do, without those whose groups wait for each other.
constexpr int kLeastGroup = 64;

Target target_for(const DeviceFacts& facts) {
  const bool few_items = !facts.is_cpu && facts.max_work_group < kLeastGroup;
  Target target = find_target(facts.loop_limit          ? "llvmpipe"
                              : few_items               ? "cpu-128"
                              : !facts.is_cpu           ? gpu_row(facts.name)
                              : facts.vector_width < 8  ? "cpu-128"
                              : facts.vector_width < 16 ? "cpu-256"
                              : facts.amx               ? "cpu-amx"
                              : is_amd(facts.name)      ? "cpu-zen"
                                                        : "cpu");
  if (facts.is_cpu) target.flops *= static_cast<double>(std::max(facts.compute_units, 1)) / target.compute_units;
  target.compute_units = std::max(facts.compute_units, 1);
  target.local_bytes = facts.local_bytes;
  if (few_items || (facts.is_cpu && facts.vendor.starts_with(kIntel))) target.kernels_a_launch = 1;
  target.has.fp64 = facts.fp64;
  if (!target.items_are_cores()) {
    target.work_group = std::min(target.work_group, facts.max_work_group);
    target.largest_group = std::min(target.largest_group, facts.max_work_group);
  }
  if (is_nvidia(facts.vendor)) {
    // Where the unit is missing, the runtime takes the other text of a kernel.
    target.matrix_unit = &matrix_unit("nv_tf32");
    target.has.one_memory_object = true;
    target.largest_group = find_target("h200").largest_group;
  }
  return target;
}

}  // namespace oclc
