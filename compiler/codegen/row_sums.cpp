#include "compiler/codegen/row_sums.h"

#include <fmt/format.h>

#include <set>

#include "compiler/codegen/axis_dependencies.h"
#include "compiler/codegen/collapse.h"
#include "compiler/codegen/index_type.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/codegen/loop_text.h"
#include "compiler/codegen/loop_tiles.h"
#include "compiler/codegen/reduction_text.h"
#include "compiler/codegen/scope.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/whole_rows.h"

namespace oclc {
namespace {

// Rows that are added up before what rounding took is carried.
constexpr int kPartRows = 32;
// Elements that are asked for before they are read: a page of floats.
constexpr std::int64_t kAheadElements = 1024;
// A multiple of every vector's width.
constexpr int kLaneMultiple = 16;

class RowSums {
 public:
  RowSums(Kernel kernel, const Target& target) : kernel_(std::move(kernel)), width_(target.vector_width) {
    double rows = 1;
    for (const Axis& axis : kernel_.reduction) rows *= typical(axis.extent);
    carries_ = rows > kLongSum;
  }

  GeneratedKernel run() {
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_);
    mode.one_load = true;
    Emitter e(kernel_, mode);
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    g.local = {1};
    g.schedule = "whole rows a tile";
    std::vector<const Axis*> others;
    Expr tiles(1);
    for (std::size_t i = 0; i + 1 < kernel_.axes.size(); ++i) {
      others.push_back(&kernel_.axes[i]);
      tiles *= kernel_.axes[i].extent;
    }
    g.groups = {tiles};
    e.open("", declare_coordinates(e, "tile", others));
    body(e);
    e.close();
    g.head = kernel_head(kernel_, g);
    g.local_floats = std::to_string(kernel_.stages.size() * (carries_ ? 3 : 1) * static_cast<std::size_t>(columns()));
    g.tile_source = fmt::format("void {}_tile({}, const {} tile, __local float* sums) {{\n{}}}\n\n", g.name,
                                parameter_list(kernel_, false), e.index_type(), e.text());
    g.source = g.tile_source;
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void {0}({1}) {{\n"
        "  __local float sums[{2}] __attribute__((aligned(64)));\n  {0}_tile({3}, get_group_id(0), sums);\n}}\n",
        g.name, parameter_list(kernel_, true), g.local_floats, argument_list(kernel_));
    return g;
  }

 private:
  const Axis& column() const { return kernel_.axes.back(); }
  std::int64_t columns() const { return column().extent.value(); }
  static std::string name_of(int stage) { return fmt::format("s{}", stage); }

  // Where the sums of a stage lie; those of the latest rows, and what rounding took, after them.
  std::string place(int stage, int which) const {
    return fmt::format("sums + {} + {}", (stage * (carries_ ? 3 : 1) + which) * columns(), column().name);
  }
  std::string type(int width) const { return width > 1 ? fmt::format("float{}", width) : "float"; }
  void read(Emitter& e, const std::string& name, int stage, int which, int width) const {
    const std::string at = place(stage, which);
    e.line(fmt::format("{} {} = {};", type(width), name,
                       width > 1 ? fmt::format("oclc_load{}({})", width, at) : fmt::format("*({})", at)));
  }
  void write(Emitter& e, const std::string& value, int stage, int which, int width) const {
    const std::string at = place(stage, which);
    e.line(width > 1 ? fmt::format("oclc_store(({})({}), {});", type(width), value, at)
                     : fmt::format("*({}) = {};", at, value));
  }

  template <class Visit>
  void over_columns(Emitter& e, const Visit& visit) const {
    literal_vector_loops(e, column(), vector_width_for(column().extent, width_), visit);
  }

  void body(Emitter& e) const {
    const int count = static_cast<int>(kernel_.stages.size());
    for (int first = 0, next = 0; first < count; first = next) {
      next = end_of_shared_loops(e, kernel_, first);
      over_rows(e, first, next);
    }
    over_columns(e, [&](int width) {
      results(e, count, width);
      for (const Store& store : kernel_.stores) e.store(store);
    });
  }

  void results(Emitter& e, int count, int width) const {
    for (int i = 0; i < count; ++i) {
      read(e, name_of(i), i, 0, width);
      e.stage_done(i, name_of(i), width > 1);
    }
  }

  // Stages [first, next), none of which needs the result of another.
  void over_rows(Emitter& e, int first, int next) const {
    over_columns(e, [&](int width) {
      for (int i = first; i < next; ++i) {
        for (int which = 0; which < (carries_ ? 3 : 1); ++which) write(e, "0.0f", i, which, width);
      }
    });
    const std::string rows = fmt::format("rows{}", first);
    if (carries_) e.line(fmt::format("int {} = 0;", rows));
    std::vector<const Axis*> axes;
    for (const int a : kernel_.stages[static_cast<std::size_t>(first)].axes)
      axes.push_back(&kernel_.reduction[static_cast<std::size_t>(a)]);
    const int opened = open_loops(e, axes);
    over_columns(e, [&](int width) {
      results(e, first, width);
      if (width > 1) ask_ahead(e);
      for (int i = first; i < next; ++i) {
        const std::string name = name_of(i) + (carries_ ? "_part" : "");
        read(e, name, i, carries_ ? 1 : 0, width);
        accumulate_term(e, kernel_, kernel_.stages[static_cast<std::size_t>(i)], name, width > 1, false);
        write(e, name, i, carries_ ? 1 : 0, width);
      }
    });
    if (carries_) {
      e.open(fmt::format("if (++{} == {})", rows, kPartRows), {});
      carry(e, first, next);
      e.line(fmt::format("{} = 0;", rows));
      e.close();
    }
    close_scopes(e, opened);
    if (carries_) carry(e, first, next);
  }

  // For what comes in some rows: the processor's own guesses end with a page.
  void ask_ahead(Emitter& e) const {
    std::set<std::string> lines;
    for (const ScalarNode& n : kernel_.nodes) {
      if (n.kind != ScalarNode::Kind::load || n.index.coefficient(column().name) != Expr(1)) continue;
      const auto step = n.index.coefficient(kernel_.reduction.back().name);
      if (step && *step == column().extent)
        lines.insert(fmt::format("oclc_prefetch({} + {});", kernel_.operands[static_cast<std::size_t>(n.operand)].name,
                                 e.index(n.index + Expr(kAheadElements))));
    }
    for (const std::string& line : lines) e.line(line);
  }

  void carry(Emitter& e, int first, int next) const {
    over_columns(e, [&](int width) {
      for (int i = first; i < next; ++i) {
        const std::string name = name_of(i);
        read(e, name, i, 0, width);
        read(e, name + "_part", i, 1, width);
        read(e, name + "_rest", i, 2, width);
        add_carrying(e, name, type(width), name + "_part");
        write(e, name, i, 0, width);
        write(e, "0.0f", i, 1, width);
        write(e, name + "_rest", i, 2, width);
      }
    });
  }

  const Kernel kernel_;
  const int width_;
  bool carries_ = false;
};

}  // namespace

std::optional<GeneratedKernel> generate_row_sums(Kernel kernel, const Target& target) {
  if (!sums_whole_rows(kernel, target) || !can_vectorize(kernel, kernel.axes.back().name, kLaneMultiple)) return std::nullopt;
  narrow_indices(kernel);
  collapse_axes(kernel);
  if (typical(rows_besides(kernel, kernel.axes.size() - 1)) < target.compute_units) return std::nullopt;
  return RowSums(std::move(kernel), target).run();
}

}  // namespace oclc
