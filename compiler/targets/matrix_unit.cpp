#include "compiler/targets/matrix_unit.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr MatrixUnit kUnits[] = {
    // mma.sync of NVIDIA's devices of compute capability 8.0 and later.
    {.name = "nv_tf32",
     .m = 16,
     .n = 8,
     .k = 8,
     .operand = UnitNumber::tf32,
     .lanes = 32,
     .a = {.elements = 4,
           .row_of_lane = {.divide = 4, .modulo = 8},
           .row_of_element = {.modulo = 2, .scale = 8},
           .column_of_lane = {.modulo = 4},
           .column_of_element = {.divide = 2, .modulo = 2, .scale = 4}},
     .b = {.elements = 2,
           .row_of_lane = {.modulo = 4},
           .row_of_element = {.modulo = 2, .scale = 4},
           .column_of_lane = {.divide = 4, .modulo = 8}},
     .c = {.elements = 4,
           .row_of_lane = {.divide = 4, .modulo = 8},
           .row_of_element = {.divide = 2, .modulo = 2, .scale = 8},
           .column_of_lane = {.modulo = 4, .scale = 2},
           .column_of_element = {.modulo = 2}},
     .prelude = "matrix_nv",
     .condition = "OCLC_NV_SM >= 80"},
    // XMX of Intel's GPUs whose sub-groups have 16 work-items or more (Data Center GPU Max, Xe2); b holds pairs of terms.
    {.name = "xmx",
     .m = 8,
     .n = 16,
     .k = 16,
     .operand = UnitNumber::bf16,
     .lanes = 16,
     .rate = 8,
     .a = {.elements = 8, .row_of_element = {.modulo = 8}, .column_of_lane = {.modulo = 16}},
     .b = {.elements = 16, .row_of_element = {.modulo = 16}, .column_of_lane = {.modulo = 16}},
     .c = {.elements = 8, .row_of_element = {.modulo = 8}, .column_of_lane = {.modulo = 16}},
     .prelude = "matrix_xmx",
     .condition = "defined(cl_intel_subgroup_matrix_multiply_accumulate) || defined(OCLC_UNITS_EMULATED)",
     .attribute = "__attribute__((intel_reqd_sub_group_size(16)))"},
    // WMMA of AMD's RDNA3 in sub-groups of 32, whose halves both hold a and b.
    {.name = "wmma",
     .m = 16,
     .n = 16,
     .k = 16,
     .operand = UnitNumber::bf16,
     .lanes = 32,
     .rate = 4,
     .a = {.elements = 16, .row_of_lane = {.modulo = 16}, .column_of_element = {.modulo = 16}},
     .b = {.elements = 16, .row_of_element = {.modulo = 16}, .column_of_lane = {.modulo = 16}},
     .c = {.elements = 8,
           .row_of_lane = {.divide = 16, .modulo = 2},
           .row_of_element = {.modulo = 8, .scale = 2},
           .column_of_lane = {.modulo = 16}},
     .prelude = "matrix_wmma",
     .condition = "defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(OCLC_UNITS_EMULATED)"},
    // Tiles of x86 processors: 16 lines of 64 bytes, two neighbours in k side by side.
    {.name = "amx_bf16",
     .operands = UnitOperands::tiles,
     .m = 16,
     .n = 16,
     .k = 32,
     .operand = UnitNumber::bf16,
     .prelude = "tiles_amx",
     .condition = "defined(OCLC_AMX)"},
};

}  // namespace

std::string Digit::text(std::string_view x, int all) const {
  if (modulo == 1) return "";
  std::string out(x);
  if (divide > 1) out += fmt::format(" / {}", divide);
  if (divide * modulo < all) out += fmt::format(" % {}", modulo);
  if (scale > 1) out += fmt::format(" * {}", scale);
  return out;
}

std::span<const MatrixUnit> matrix_units() { return kUnits; }

const MatrixUnit& matrix_unit(std::string_view name) {
  const auto at = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const MatrixUnit& u) { return u.name == name; });
  OCLC_CHECK(at != std::end(kUnits), fmt::format("no matrix unit {}", name));
  return *at;
}

}  // namespace oclc
