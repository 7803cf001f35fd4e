// What the compiler knows about a device: one row of facts a target. Unknown devices get the generic row of their class.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/precision.h"
#include "compiler/targets/matrix_unit.h"

namespace oclc {

enum class DeviceClass { cpu, gpu };

// How one launch does the work of many kernels, one after another: not at all; by cores, which run loops over a whole plan and
// wait for one another; by work-groups that are all under way at once and claim the tiles of each kernel in turn.
enum class Megakernel { none, cores, groups };

// Kernels that a GPU's launch by work-groups is worth, which first note where everything lies.
inline constexpr std::size_t kFewestMegakernelParts = 6;

// What a device's compiler and units can do. A decision asks for one of these, or for a number, never for a target's name.
struct Capabilities {
  bool fp64 = true;
  Megakernel megakernel = Megakernel::none;
  // The tile unit multiplies integers of a byte as well.
  bool int8_tiles = false;
  // Matrix units that read operands from local memory, for all work-items of a group (NVIDIA's sm_90a, reached from OpenCL C).
  bool wgmma = false;
  // Independent kernels are fused horizontally into one launch: one alone does not fill all units.
  bool horizontal_fusion = false;
  // Arguments of a kernel may be pointers into one memory object: the driver does not take them for hazards.
  bool one_memory_object = false;
  // Vectors are added by other units than those that multiply and add.
  bool fadd_pipes = false;
  // Registers for tiles of many rows, each of which shares what is copied of an operand.
  bool tall_tiles = true;
  // Multiply-adds outrun what the hardware prefetches of weights: software prefetches them, near and far.
  bool software_prefetch = true;
};

struct Tuning;

struct Target {
  std::string name{};
  std::string_view about{};
  DeviceClass device_class = DeviceClass::cpu;
  int vector_width = 8;  // floats in a register
  int vector_registers = 16;
  int compute_units = 2;            // cores, or multiprocessors
  std::int64_t l2_bytes = 1 << 20;  // second-level cache of a core, or of the device
  std::int64_t local_bytes = 32 << 10;
  int work_group = 256;            // GPU: work-items of a group
  int largest_group = 256;         // GPU: of a group that has a compute unit to itself
  double flops = 100e9;            // single precision, whole device; for estimates
  double bytes_per_second = 30e9;  // memory
  double launch_seconds = 20e-6;
  // Of cores, beside those of the row: calibrated cores may share units with others, or run at another clock.
  double pace = 1;
  // Most loop iterations of one work-item, all its loops together: generated kernels stay below, whatever the sizes.
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  std::int64_t loop_iterations = kNoLimit;
  // Most kernels that one launch does one after another: compilers of whole programs may take minutes for a long text.
  std::int64_t kernels_a_launch = kNoLimit;
  const MatrixUnit* matrix_unit = nullptr;
  Capabilities has{};
  // The contract that kernels are made under, no fact of the device: find_target() and target_for() leave the usual one, and
  // compile() puts in what its options say. It travels here since estimates of a product need both.
  Precision precision{};
  std::shared_ptr<const Tuning> tuning{};  // what was timed on such devices, see tuning.h; null: nothing

  // A work-item is a core, which computes in vectors; else many work-items make up a group that computes together.
  bool items_are_cores() const { return device_class == DeviceClass::cpu; }
  // Loops of templates and of kernels that do the work of several are not counted: they need a device that does not count.
  bool counts_loops() const { return loop_iterations != kNoLimit; }
  bool has_vector_templates() const { return items_are_cores() && vector_width >= 4 && !counts_loops(); }
  bool has_group_templates() const { return !items_are_cores() && !counts_loops(); }
  // What computes together: a core's vector, or work-items that are issued as one.
  int lanes() const { return items_are_cores() ? vector_width : kIssuedItems; }
  // Second-level caches together: one a core, or one for all units.
  std::int64_t all_l2_bytes() const { return items_are_cores() ? l2_bytes * compute_units : l2_bytes; }
  Megakernel megakernel() const { return counts_loops() ? Megakernel::none : has.megakernel; }

  // What the contract lets the units multiply.
  bool multiplies_fragments() const { return has_unit(UnitOperands::fragments) && precision.products != Products::fma; }
  bool multiplies_tf32_fragments() const { return multiplies_fragments() && matrix_unit->operand == UnitNumber::tf32; }
  bool multiplies_tiles() const { return has_unit(UnitOperands::tiles) && precision.bf16_products > 0; }
  bool multiplies_parts_in_groups() const { return has.wgmma && precision.splits_operands(); }
  bool multiplies_groups() const { return has.wgmma && precision.products != Products::fma; }

 private:
  static constexpr int kIssuedItems = 32;
  bool has_unit(UnitOperands operands) const { return matrix_unit && matrix_unit->operands == operands; }
};

// Vectors of 512 bits.
inline bool has_wide_vectors(const Target& target) { return target.vector_width >= 16; }

const std::vector<Target>& target_rows();
// The row of that name; CompileError (usage) listing the names if there is none.
const Target& find_target(std::string_view name);

// Facts of a device as its driver reports them.
struct DeviceFacts {
  bool is_cpu = true;
  int vector_width = 8;
  int compute_units = 2;
  std::int64_t local_bytes = 32 << 10;
  int max_work_group = 256;
  bool fp64 = true;
  bool amx = false;         // a CPU's tile units multiply bfloat16, and the driver's compiler takes their instructions
  bool loop_limit = false;  // the runtime's quirk of this name
  std::string_view name{}, vendor{};
};

// The row that fits the device best, with the device's own numbers of units, work-items and local memory.
Target target_for(const DeviceFacts& facts);

}  // namespace oclc
