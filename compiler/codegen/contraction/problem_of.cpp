#include "compiler/codegen/contraction/problem_of.h"

#include <algorithm>

#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/cpu/contraction_window.h"
#include "compiler/codegen/contraction/cpu/winograd_filters.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"
#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/small_gemm.h"

namespace oclc {
namespace {

Extent extent_of(const Expr& e) { return {typical_extent(e), least_extent(e), e.is_constant()}; }

VectorWidths widths_along(const Kernel& loads, const Axis& axis) {
  VectorWidths w;
  w.extent = axis.extent.constant().value_or(0);
  if (can_vectorize(loads, axis.name, 1)) {
    // Nothing that varies along the axis is guarded: every width is as good.
    w.widths = 1 | 4 | 8 | 16;
    return w;
  }
  for (int width = 4; width <= 16 && can_vectorize(loads, axis.name, width); width *= 2) w.widths |= width;
  return w;
}

void fill_operand(ContractionOperand& o, const ContractionView& view, const ScalarNode& node, const Kernel& loads,
                  const std::vector<Buffer>& buffers) {
  const std::string& inner = view.inner_axis().name;
  o.in_place = is_plain_load(node);
  o.in_constant = o.in_place && buffers[static_cast<std::size_t>(view.operand_of(node).buffer)].kind == BufferKind::constant;
  o.guarded = !node.guard.empty();
  o.zero_padding = node.number == 0;
  o.guarded_by_terms = std::any_of(node.guard.begin(), node.guard.end(), [&](const Expr& e) { return e.uses(inner); });
  o.stored = view.stored_type(node);
  o.terms_step = node.index.coefficient(inner).has_value();
  o.term_stride = constant_stride(node.index, inner);
  o.elements = o.operations = 0;
  for (const ScalarNode& n : loads.nodes) {
    o.elements += n.kind == ScalarNode::Kind::load ? 1 : 0;
    o.operations += n.kind == ScalarNode::Kind::apply ? 1 : 0;
  }
  o.of_terms = widths_along(loads, view.inner_axis());
}

LeftOperand left_of(const ContractionView& view, const std::vector<Buffer>& buffers) {
  LeftOperand a;
  const Kernel loads = part_for(view.kernel(), view.roles().a);
  fill_operand(a, view, view.a(), loads, buffers);
  a.constant = a.in_constant && constant_a_layout(view, buffers).has_value();
  a.one_row_axis = view.roles().m.size() == 1;
  if (a.one_row_axis) {
    const Axis& row = view.axis(view.roles().m[0]);
    a.of_outputs = widths_along(loads, row);
    a.unit_rows = has_neighbours(loads, row);
    for (const ScalarNode& n : loads.nodes) {
      if (n.kind != ScalarNode::Kind::load || !(n.index.coefficient(row.name) == Expr(1))) continue;
      const auto step = constant_stride(n.index, view.inner_axis().name);
      a.unit_row_term_stride = std::max(a.unit_row_term_stride, step.value_or(0));
    }
  }
  if (has_row_pointers(view)) a.row_step = constant_stride(view.a().index.substitute(view.to_flat_row()), "m").value_or(0);
  return a;
}

// The rows of a tap follow those of the tap before it.
bool taps_are_consecutive(const ContractionView& view) {
  const Expr& index = view.b().index;
  const Expr rows_of_tap = view.inner() * index.coefficient(view.inner_axis().name).value_or(Expr(0));
  const Expr first = index.substitute(view.at_tap(0));
  for (std::int64_t tap = 1; tap < view.taps(); ++tap) {
    if (!(index.substitute(view.at_tap(tap)) - first == Expr(tap) * rows_of_tap)) return false;
  }
  return true;
}

// The first column of each row is the row's first element: surplus columns end with the row.
bool starts_rows(const ContractionView& view) {
  Substitution zero{{view.column_axis().name, Expr(0)}};
  for (const int i : view.roles().k) zero[view.reduction(i).name] = Expr(0);
  return view.b().index.substitute(zero) == Expr(0);
}

bool has_unit_columns(const ContractionView& view) { return view.b().index.coefficient(view.column_axis().name) == Expr(1); }

RightOperand right_of(const ContractionView& view, const std::vector<Buffer>& buffers) {
  RightOperand b;
  const Kernel loads = part_for(view.kernel(), view.roles().b);
  fill_operand(b, view, view.b(), loads, buffers);
  b.constant = b.in_constant && constant_b_layout(view, buffers).has_value();
  b.shared = view.is_read_elsewhere(view.b());
  b.of_outputs = widths_along(loads, view.column_axis());
  b.unit_columns = has_unit_columns(view);
  b.column_stride = constant_stride(view.b().index, view.column_axis().name);
  if (!b.constant && b.in_place && !b.guarded && b.unit_columns) {
    b.taps_follow = taps_are_consecutive(view);
    b.starts_rows = starts_rows(view);
  }
  b.filters_given = filters_of(view.kernel()) >= 0;
  b.packed_at_run_time = images_of(view.kernel()) >= 0;
  return b;
}

Problem sizes_of(const ContractionView& view) {
  Problem p;
  p.g = extent_of(view.groups());
  p.m = extent_of(view.rows());
  p.n = extent_of(view.columns());
  p.k = extent_of(view.inner());
  p.taps = view.taps();
  p.asked = view.roles().asked;
  return p;
}

Loads loads_of(const GpuLoad& load) {
  Loads l;
  l.width = load.width;
  l.along_k = load.along_k;
  l.is_copied = copies_a(load);
  l.splits = !load.row.empty();
  l.edges_of_taps = load.edges_of_taps;
  l.has_edges = load.has_edges;
  l.line = load.line;
  return l;
}

}  // namespace

Problem problem_of(const ContractionView& view, const std::vector<Buffer>& buffers) {
  Problem p = sizes_of(view);
  p.a = left_of(view, buffers);
  p.b = right_of(view, buffers);
  if (p.a.stored != DType::f32 && p.a.stored != DType::bf16) return p;
  const auto image = convolution_image(view, p.a.stored);
  if (!image) return p;
  p.window = *image;
  p.b.placed_taps = !p.b.constant && placed_weights(view, *image).has_value();
  return p;
}

Problem gpu_problem_of(const ContractionView& view, const std::vector<Buffer>& buffers) {
  Problem p = sizes_of(view);
  p.product = product_of(view);
  p.line_rows = view.roles().m.empty() ? 1 : view.line_rows().constant().value_or(0);
  p.shares = view.roles().shares;
  p.pools = !view.roles().windows.empty();
  p.small_gemm = small_gemm_of(view.kernel());
  p.a.stored = view.stored_type(view.a());
  p.a.loads = loads_of(load_of_a(view));
  p.b.stored = view.stored_type(view.b());
  p.b.loads = loads_of(load_of_b(view));
  p.b.constant = constant_b_layout(view, buffers).has_value();
  p.b.unit_columns = has_unit_columns(view);
  p.b.packed_at_run_time = images_of(view.kernel()) >= 0;
  return p;
}

}  // namespace oclc
