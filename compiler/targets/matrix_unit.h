// Units that multiply small matrices: a row of facts each. A kernel that multiplies by one reads shapes and layouts here; what
// speaks to the unit is a file of templates, the row's glue.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>

namespace oclc {

enum class UnitNumber { f32, tf32, f16, bf16 };

// Where a unit finds its operands: in registers of the work-items of a sub-group, or in registers of its own that one work-item
// loads.
enum class UnitOperands { fragments, tiles };

// x / divide % modulo * scale; modulo 1: nothing.
struct Digit {
  int divide = 1, modulo = 1, scale = 1;

  constexpr int of(int x) const { return x / divide % modulo * scale; }
  // OpenCL C of it; empty: nothing. `all` is what x stays below: steps that change nothing are left out.
  std::string text(std::string_view x, int all) const;
};

// How the elements of a matrix lie over the lanes of a sub-group: element i of a lane is that of row row(lane, i) and of column
// column(lane, i). Several lanes may hold one element.
struct Fragment {
  int elements = 0;  // of a lane
  Digit row_of_lane{}, row_of_element{}, column_of_lane{}, column_of_element{};

  constexpr int row(int lane, int i) const { return row_of_lane.of(lane) + row_of_element.of(i); }
  constexpr int column(int lane, int i) const { return column_of_lane.of(lane) + column_of_element.of(i); }
};

struct MatrixUnit {
  std::string_view name;
  UnitOperands operands = UnitOperands::fragments;
  int m = 0, n = 0, k = 0;  // C[m, n] += A[m, k] B[k, n] is one instruction
  UnitNumber operand = UnitNumber::f32, sum = UnitNumber::f32;
  int lanes = 1;                 // work-items that share a matrix
  double rate = 1;               // multiply-adds for one of the arithmetic units; nv_tf32's are measured with its templates
  Fragment a{}, b{}, c{};        // with UnitOperands::fragments
  std::string_view prelude;      // file of templates with the unit's functions
  std::string_view condition;    // the preprocessor's, of text for the unit; other text stands beside it
  std::string_view attribute{};  // of a kernel that multiplies by it
};

std::span<const MatrixUnit> matrix_units();
// The unit of that name; an internal error if there is none.
const MatrixUnit& matrix_unit(std::string_view name);

}  // namespace oclc
