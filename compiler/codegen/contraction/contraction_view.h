// A kernel read as C[g, m, n] = sum over tap, k of A[g, m, tap, k] * B[g, tap, k, n], the formula of the templates
// contraction_*_cpu.cl. g, m and tap are flat: rows of a convolution are (image, y, x), its taps (ky, kx), its groups g.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/contraction/pack.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

class ContractionView {
 public:
  // Nothing for what the templates cannot say: elements other than f32, several axes of columns, symbolic taps, no elements.
  // The view refers to the kernel, which must live longer.
  static std::optional<ContractionView> of(const Kernel& kernel);

  const Kernel& kernel() const { return kernel_; }
  const Contraction& roles() const { return *kernel_.contraction; }
  const ScalarNode& a() const { return node(roles().a); }
  const ScalarNode& b() const { return node(roles().b); }
  // True if a node other than `load` reads its operand.
  bool is_read_elsewhere(const ScalarNode& load) const;
  const Operand& operand_of(const ScalarNode& load) const;
  // Of the elements in memory that a load reads; of any other node's values.
  DType stored_type(const ScalarNode& node) const;
  const Axis& axis(int i) const { return kernel_.axes[static_cast<std::size_t>(i)]; }
  const Axis& reduction(int i) const { return kernel_.reduction[static_cast<std::size_t>(i)]; }
  const Axis& column_axis() const { return axis(roles().n[0]); }
  const Axis& inner_axis() const { return reduction(roles().k.back()); }

  // Extents of g, m, n, k and tap.
  const Expr& groups() const { return groups_; }
  const Expr& rows() const { return rows_; }
  const Expr& columns() const { return columns_; }
  const Expr& inner() const { return inner_; }
  std::int64_t taps() const { return taps_; }

  // The kernel's own axes in terms of m, g or one tap.
  const Substitution& to_flat_row() const { return to_flat_row_; }
  const Substitution& to_flat_group() const { return to_flat_group_; }
  Substitution at_tap(std::int64_t tap) const;
  // True if `e` is linear in m, or independent of it.
  bool affine_in_row(const Expr& e) const;

  // C text of an expression within the tile function, and the lines that declare the kernel's axes there.
  std::string c_text(const Expr& e) const;
  std::string_view index_type() const { return wide_ ? "long" : "int"; }
  EmitMode mode() const;
  // Sizes as the templates' parameters G, M, N, K and TAPS: literals, or variables that the hole SIZES declares.
  void fill_sizes(TemplateValues& values) const;
  std::vector<std::string> group_coordinates() const;
  std::vector<std::string> tap_coordinates() const;
  // Of axis `i`, an index into roles().m, at flat row `row`.
  std::string row_coordinate(std::size_t i, const std::string& row) const;
  // Those that `needed` use, at row m, of lines that are so many positions longer.
  std::vector<std::string> row_coordinates(const std::vector<Expr>& needed, std::int64_t more_positions = 0) const;
  // Positions of a line, the innermost axis of rows, and rows of such longer lines.
  const Expr& line_rows() const { return row_shape_.back(); }
  Expr rows_with(std::int64_t more_positions) const;

 private:
  explicit ContractionView(const Kernel& kernel) : kernel_(kernel) {}
  const ScalarNode& node(NodeId id) const { return kernel_.nodes[static_cast<std::size_t>(id)]; }
  bool analyse();
  Substitution flat_coordinates(const std::vector<int>& axes, const Shape& shape, const Expr& flat) const;

  const Kernel& kernel_;
  Expr groups_ = 1, rows_ = 1, columns_ = 1, inner_ = 1;
  Shape group_shape_, row_shape_, tap_shape_;
  std::int64_t taps_ = 1;
  bool wide_ = false;
  Substitution to_flat_row_, to_flat_group_;
};

// A load, of floats of 32 or 16 bits, whose address depends on no loaded value.
bool is_plain_load(const ScalarNode& node);
// Where B's elements lie, if it is a constant read through strides.
std::optional<PackedOperand> constant_b_layout(const ContractionView& view, const std::vector<Buffer>& buffers);
// The same of A without groups or taps, as a product's right operand whose columns are A's rows.
std::optional<PackedOperand> constant_a_layout(const ContractionView& view, const std::vector<Buffer>& buffers);
// Vectors of `width` along the axis hold what `loads` computes.
bool takes_vectors(const Kernel& loads, const Axis& axis, int width);
// A load goes along the axis in steps of one element.
bool has_neighbours(const Kernel& loads, const Axis& axis);
// The elements between neighbours along an axis, if that is a number.
std::optional<std::int64_t> constant_stride(const Expr& index, std::string_view axis);

}  // namespace oclc
