// What the compiler knows about a device: one row of facts a target. Unknown devices get the generic row of their class.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace oclc {

enum class DeviceClass { cpu, gpu };

// Units that multiply small matrices. nv_tf32: mma.sync on TF32, of NVIDIA's devices of compute capability 8.0 and later. amx:
// tiles of bfloat16, of x86 processors.
enum class MatrixUnit { none, nv_tf32, amx };

// How products of floats are computed where a matrix unit has less precise operands: not there, there in parts that are as
// accurate as fma, there on rounded operands.
enum class Products { fma, split, rounded };

struct Tuning;

struct Target {
  std::string name;
  DeviceClass device_class = DeviceClass::cpu;
  int vector_width = 8;  // floats in a register
  int vector_registers = 16;
  int compute_units = 2;            // cores, or multiprocessors
  std::int64_t l2_bytes = 1 << 20;  // second-level cache of a core, or of the device
  std::int64_t local_bytes = 32 << 10;
  int work_group = 256;            // GPU: work-items of a group
  double flops = 100e9;            // single precision, whole device; for estimates
  double bytes_per_second = 30e9;  // memory
  double launch_seconds = 20e-6;
  bool fp64 = true;
  bool sm90a = false;  // NVIDIA's matrix units of that name, reached from OpenCL C
  std::string_view about;
  // Most loop iterations of one work-item, all its loops together: generated kernels stay below, whatever the sizes.
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  std::int64_t loop_iterations = kNoLimit;
  MatrixUnit matrix_unit = MatrixUnit::none;
  bool adds_apart = false;  // vectors are added by other units than those that multiply and add
  Products products = Products::split;
  // On tiles of bfloat16: products of parts that a product of floats is made of, 6, 3 or 1; 0: none.
  int tile_products = 0;
  // Three products or six of parts may be products of integers of three bytes.
  bool tile_digits = true;
  // Sums of products keep their rounding small also where that takes time: short chains.
  bool careful_sums = false;
  // Most kernels that one launch does one after another: compilers of whole programs may take minutes for a long text.
  std::int64_t kernels_a_launch = kNoLimit;
  std::shared_ptr<const Tuning> tuning{};  // what was timed on such devices, see tuning.h; null: nothing
};

// As few vectors as AVX2 has.
bool has_few_registers(const Target& target);
// Vectors of 512 bits.
bool has_wide_vectors(const Target& target);

const std::vector<Target>& target_rows();
// The row of that name; CompileError (usage) listing the names if there is none.
const Target& find_target(std::string_view name);

// Facts of a device as its driver reports them.
struct DeviceFacts {
  bool is_cpu = true;
  int vector_width = 8;
  int compute_units = 2;
  std::int64_t local_bytes = 32 << 10;
  std::int64_t cache_bytes = 0;
  int max_work_group = 256;
  bool fp64 = true;
  bool amx = false;         // a CPU's tile units multiply bfloat16, and the driver's compiler takes their instructions
  bool loop_limit = false;  // the runtime's quirk of this name
  std::string_view name{}, vendor{};
};

// The row that fits the device best, with the device's own numbers.
Target target_for(const DeviceFacts& facts);

}  // namespace oclc
