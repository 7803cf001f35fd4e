#include "compiler/codegen/loops/window_planes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "compiler/codegen/contraction/contraction_image.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/loops/loop_prefetch.h"
#include "compiler/codegen/loops/loop_tiles.h"
#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/loop_text.h"
#include "compiler/codegen/text/reduction_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/ir/division.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Rows with margins: few, so that copying the next ones, which waits for memory, alternates with computing; the most that the
// first-level cache holds beside what is read and written. Rows of results that share what they read.
constexpr std::int64_t kRowsBytes = 8 << 10, kMostRowsBytes = 24 << 10, kSharingRows = 4;
constexpr std::int64_t kMostTaps = 49, kLeastLanes = 4, kLineFloats = 16;

class PlaneWindows {
 public:
  PlaneWindows(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target), after_(kernel) {}

  std::optional<GeneratedKernel> run() {
    if (!reads_windows() || !stores_rows()) return std::nullopt;
    TileKernel tile;
    tile.template_name = "window_planes_cpu";
    tile.local_name = "rows";
    tile.local_macro = "LOCAL_FLOATS";
    const std::int64_t planes = choose_sizes();
    if (planes == 0) return std::nullopt;
    tile.groups = ceil_div(count_, Expr(planes));
    tile.schedule = fmt::format("template {}, {} planes a group, {} rows at a time", tile.template_name, planes, rows_);
    tile.values = values(planes);
    return assemble(kernel_, std::move(tile));
  }

 private:
  const ScalarNode& node(NodeId id) const { return kernel_.nodes[static_cast<std::size_t>(id)]; }
  bool is_sum() const { return kernel_.stages[0].combine == Stage::Combine::sum; }
  const Axis& out(std::size_t from_last) const { return kernel_.axes[kernel_.axes.size() - 1 - from_last]; }
  bool is_float_load(const ScalarNode& n) const {
    return is_plain_load(n) && kernel_.operands[static_cast<std::size_t>(n.operand)].dtype == DType::f32;
  }

  bool reads_windows() {
    if (kernel_.axes.size() < 3 || kernel_.reduction.size() != 2 || kernel_.stages.size() != 1) return false;
    const Stage& stage = kernel_.stages[0];
    const bool is_max = stage.combine == Stage::Combine::max;
    if ((!is_sum() && !is_max) || stage.axes.size() != 2 || stage.accumulator != DType::f32) return false;
    x_ = stage.body;
    if (is_sum() && node(x_).op_name == "mul") {
      w_ = node(x_).args[1];
      x_ = node(x_).args[0];
    }
    const ScalarNode& load = node(x_);
    const Axis &tap_y = kernel_.reduction[0], &tap_x = kernel_.reduction[1];
    if (!is_float_load(load) || load.number != (is_max ? -std::numeric_limits<double>::infinity() : 0.0)) return false;
    const auto y = image_axis(load.index, out(1), tap_y), x = image_axis(load.index, out(0), tap_x);
    if (!y || !x || x->step != 1 || x->stride > 2) return false;
    y_axis_ = *y;
    x_axis_ = *x;
    for (const Expr& e : load.guard) {
      if (!narrow(y_axis_, e, out(1), tap_y) && !narrow(x_axis_, e, out(0), tap_x)) return false;
    }
    // Windows are short pieces of rows.
    if (y->taps * x->taps > kMostTaps || (x->taps - 1) * x->dilation >= x->outputs * x->stride) return false;
    if (x_axis_.first > x_axis_.last || y_axis_.first > y_axis_.last) return false;
    return w_ < 0 || reads_weights();
  }

  // One weight a tap for all of a plane.
  bool reads_weights() const {
    const ScalarNode& w = node(w_);
    return is_float_load(w) && w.guard.empty() && !w.index.uses(out(0).name) && !w.index.uses(out(1).name) &&
           constant_stride(w.index, kernel_.reduction[0].name) && constant_stride(w.index, kernel_.reduction[1].name);
  }

  // What follows the reduction is computed on vectors along rows, and reads nothing that it stores: the last vector of a row
  // overlaps with the one before.
  bool stores_rows() {
    std::vector<NodeId> roots;
    for (const Store& s : kernel_.stores) {
      const Operand& to = kernel_.operands[static_cast<std::size_t>(s.operand)];
      if (!s.guard.empty() || !s.row_axes.empty() || to.dtype != DType::f32 || s.index.coefficient(out(0).name) != Expr(1))
        return false;
      if (loads_from(kernel_, to.buffer)) return false;
      roots.push_back(s.value);
    }
    keep_needed(after_, roots);
    ScalarNode everywhere;
    everywhere.kind = ScalarNode::Kind::index;
    everywhere.dtype = DType::i32;
    for (const Axis& axis : after_.axes) everywhere.index += axis.var;
    after_.nodes[static_cast<std::size_t>(after_.stages[0].body)] = everywhere;
    return can_vectorize(after_, out(0).name) && !needs_wide_index(kernel_);
  }

  // Planes of a work-item; 0: rows are too long or too short.
  std::int64_t choose_sizes() {
    width_ = target_.vector_width;
    while (width_ > x_axis_.outputs) width_ /= 2;
    if (width_ < kLeastLanes) return 0;
    const std::int64_t sharing = std::min(kSharingRows, y_axis_.outputs);
    // Columns of one remainder, as the template lays them out.
    const std::int64_t columns = x_axis_.outputs + (x_axis_.taps - 1) * x_axis_.dilation / x_axis_.stride;
    const std::int64_t row = ceil_div(columns, kLineFloats) * kLineFloats * x_axis_.stride * 4;
    const auto bytes = [&](std::int64_t rows) {
      return ((rows - 1) * y_axis_.stride + (y_axis_.taps - 1) * y_axis_.dilation + 1) * row;
    };
    if (bytes(sharing) > std::min(kMostRowsBytes, target_.local_bytes)) return 0;
    sharing_ = rows_ = sharing;
    while (rows_ < y_axis_.outputs && bytes(rows_ + sharing) <= std::min(kRowsBytes, target_.local_bytes)) rows_ += sharing;
    count_ = Expr(1);
    for (std::size_t i = 0; i + 2 < kernel_.axes.size(); ++i) count_ *= kernel_.axes[i].extent;
    return choose_loop_tiles(flat(), std::nullopt, target_).rows;
  }

  // The kernel as one over planes: how many of them a work-item computes.
  Kernel flat() const {
    Kernel planes = kernel_;
    planes.axes = {{"plane", count_, Expr::axis("plane", count_)}};
    planes.reduction.clear();
    planes.stages.clear();
    return planes;
  }

  TemplateValues values(std::int64_t planes) {
    TemplateValues values;
    const std::pair<const char*, std::int64_t> numbers[] = {{"KH", y_axis_.taps},
                                                            {"KW", x_axis_.taps},
                                                            {"SY", y_axis_.stride},
                                                            {"SX", x_axis_.stride},
                                                            {"DY", y_axis_.dilation},
                                                            {"DX", x_axis_.dilation},
                                                            {"OH", y_axis_.outputs},
                                                            {"OW", x_axis_.outputs},
                                                            {"Y_FIRST", y_axis_.first},
                                                            {"Y_LAST", y_axis_.last},
                                                            {"X_FIRST", x_axis_.first},
                                                            {"X_LAST", x_axis_.last},
                                                            {"VW", width_},
                                                            {"MR", sharing_},
                                                            {"ROWS", rows_},
                                                            {"PREFETCH_DISTANCE", rows_ahead()},
                                                            {"PLANES", planes}};
    for (const auto& [name, number] : numbers) values.parameters[name] = std::to_string(number);
    values.parameters["FILL"] = is_sum() ? "0.0f" : "-INFINITY";
    Emitter e(after_, {});
    values.parameters["COUNT"] = fmt::format("({})", e.index(count_));
    values.holes["PLANE"] = plane_text();
    values.holes["A_ROW"] = fmt::format("const __global float* src = src_plane + y * {};\n", y_axis_.step);
    values.holes["TAP"] = tap_text();
    values.holes["EPILOGUE"] = epilogue();
    values.holes["END"] = streams() ? "oclc_streamed();\n" : "";
    return values;
  }

  // Those that are copied next, and beyond them.
  std::int64_t rows_ahead() const {
    return rows_ + ceil_div(kAheadFloats, std::max<std::int64_t>(y_axis_.stride * y_axis_.step, 1) * sharing_) * sharing_;
  }

  std::string plane_text() const {
    Substitution first;
    for (const Axis* axis : {&out(0), &out(1), &kernel_.reduction[0], &kernel_.reduction[1]}) first[axis->name] = Expr(0);
    Emitter e(after_, {});
    std::vector<const Axis*> axes;
    for (std::size_t i = 0; i + 2 < kernel_.axes.size(); ++i) axes.push_back(&kernel_.axes[i]);
    declare_coordinates(e, "plane", axes);
    const auto pointer = [&](const char* name, const ScalarNode& load) {
      e.line(fmt::format("const __global float* {} = {} + {};", name,
                         kernel_.operands[static_cast<std::size_t>(load.operand)].name, e.index(load.index.substitute(first))));
    };
    pointer("src_plane", node(x_));
    if (w_ >= 0) pointer("w", node(w_));
    return e.text();
  }

  std::string tap_text() const {
    if (w_ < 0) return fmt::format("acc[i] = {};\n", combine_text(kernel_.stages[0].combine, DType::f32, "acc[i]", "x"));
    const auto step = [&](std::size_t i) { return *constant_stride(node(w_).index, kernel_.reduction[i].name); };
    return fmt::format("acc[i] = fma(x, w[ky * {} + kx * {}], acc[i]);\n", step(0), step(1));
  }

  bool streams() const { return x_axis_.outputs % width_ == 0 && streams_results(kernel_); }

  std::string epilogue() const {
    EmitMode mode;
    mode.vector_axis = out(0).name;
    mode.width = static_cast<int>(width_);
    mode.streams = streams();
    Emitter e(after_, mode);
    std::set<std::string> names;
    for (const Axis& axis : after_.axes) names.insert(axis.name);
    e.open("", names);
    e.line(fmt::format("const int {} = oy, {} = ox;", out(1).name, out(0).name));
    e.stage_done(0, "v", true);
    for (const Store& s : after_.stores) e.store(s);
    e.close();
    return e.text();
  }

  const Kernel& kernel_;
  const Target& target_;
  Kernel after_;  // the reduction
  NodeId x_ = -1, w_ = -1;
  ImageAxis y_axis_, x_axis_;
  Expr count_ = 1;  // planes
  std::int64_t width_ = 1, sharing_ = 1, rows_ = 1;
};

}  // namespace

std::optional<GeneratedKernel> generate_window_planes(const Kernel& kernel, const Target& target) {
  if (!target.has_vector_templates() || kernel.contraction) return std::nullopt;
  return PlaneWindows(kernel, target).run();
}

}  // namespace oclc
