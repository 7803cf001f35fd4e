// A contraction in numbers: C[g, m, n] = sum over tap, k of A[g, m, tap, k] * B[g, tap, k, n]. Rows of a convolution are
// (image, y, x), its taps (ky, kx), its groups g. What strategies are legal for it, and how long they take, is asked of this.
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/contraction/gpu/gpu_tiles.h"
#include "compiler/contraction/strategy_id.h"
#include "compiler/ir/tensor.h"

namespace oclc {

// An extent; where symbols leave it open, what it counts as, and what it is at least (each symbol being one).
struct Extent {
  std::int64_t typical = 1, least = 1;
  bool known = true;
};

// Widths of vectors, of 1, 4, 8 and 16 elements, that hold an operand along one of its axes.
struct VectorWidths {
  int widths = 0;           // their sum
  std::int64_t extent = 0;  // of the axis; 0 where it is open
  bool can(int width) const { return (widths & width) != 0; }
  // The axis has at least one such vector.
  bool takes(int width) const { return extent >= width && can(width); }
};

// How a GPU's work-items load an operand.
struct Loads {
  int width = 1;               // elements of a load: 1, or a contiguous vector of 4
  bool along_k = true;         // they follow one another along k; otherwise along the rows of A or the columns of B
  bool is_copied = false;      // as they lie in memory
  bool splits = false;         // their place is the sum of one of the row and one of the term,
  bool edges_of_taps = false;  // and what lies outside of an image does for all terms of a tap
  bool has_edges = false;      // some are zeros
  std::int64_t line = 1;       // taps of a line of the window whose places are those of the rows behind
};

struct ContractionOperand {
  bool in_place = false;     // one load whose address depends on no loaded value
  bool constant = false;     // in place, and packed at compile time: its elements lie at strides that are numbers
  bool in_constant = false;  // in place, in a constant buffer
  bool guarded = false;      // some elements are not read: padding
  bool zero_padding = true;  // these are zeros
  bool guarded_by_terms = false;
  bool shared = false;  // other nodes of the kernel load from the same buffer
  DType stored = DType::f32;
  bool half() const { return stored == DType::f16 || stored == DType::bf16; }
  int elements = 1, operations = 0;         // that an element is computed from
  bool terms_step = false;                  // there is one distance in elements between neighbours in k,
  std::optional<std::int64_t> term_stride;  // which is this number
  VectorWidths of_terms;                    // along k
  VectorWidths of_outputs;                  // along rows of A, where these are one axis, or columns of B
  Loads loads;
};

struct LeftOperand : ContractionOperand {
  bool one_row_axis = false;
  bool unit_rows = false;                 // a load goes along the rows in steps of one element
  std::int64_t unit_row_term_stride = 0;  // the largest distance in elements between terms of such a load
  std::int64_t row_step = 0;              // elements from row to row where rows are read in place as a whole; else 0
};

struct RightOperand : ContractionOperand {
  bool unit_columns = false;  // neighbouring columns are neighbours in memory
  std::optional<std::int64_t> column_stride;
  bool taps_follow = false;         // the terms of a tap follow those of the tap before it
  bool starts_rows = false;         // the first column of each row is the row's first element
  bool placed_taps = false;         // each tap lies at steps of ky and kx from the first
  bool filters_given = false;       // another kernel has transformed it for Winograd,
  bool packed_at_run_time = false;  // or packed it for matrix units
};

// One dimension of an image that a convolution reads: a position is output * stride + tap * dilation, in coordinates of the
// padded image.
struct ImageAxis {
  std::int64_t step = 0;  // elements of memory between neighbouring positions
  std::int64_t stride = 1, dilation = 1;
  std::int64_t outputs = 1, taps = 1;
  std::int64_t first = 0, last = 0;  // positions outside are zeros
};

// The window of an ungrouped convolution in two dimensions over an image with zeros around it.
struct Window {
  std::int64_t images = 1;       // typical
  std::int64_t per_channel = 1;  // elements between neighbouring channels
  ImageAxis y, x;
};

// A product of known sizes and simple operands, as small GEMMs of a GPU are.
struct SmallGemm {
  std::int64_t groups = 1, rows = 1, columns = 1, depth = 1;
};

struct Problem {
  Extent g, m, n, k;
  std::int64_t taps = 1;
  LeftOperand a;
  RightOperand b;
  std::optional<Window> window;
  StrategyId asked = StrategyId::gemm;  // by a pass

  // Of a GPU.
  GpuProduct product;          // with any sizes, where symbols leave them open
  std::int64_t line_rows = 1;  // positions of a line, the innermost axis of rows; 0 where open
  std::int64_t shares = 1;     // split-K: work-groups that share the terms of a tile
  bool pools = false;          // of windows of results the largest is stored
  bool is_part = false;        // of a launch that does several kernels
  std::optional<SmallGemm> small_gemm;

  std::int64_t depth() const { return k.typical * taps; }
};

}  // namespace oclc
