#include "compiler/codegen/loops/loop_nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/loops/block_transpose.h"
#include "compiler/codegen/loops/collapse.h"
#include "compiler/codegen/loops/element_loops.h"
#include "compiler/codegen/loops/loop_tiles.h"
#include "compiler/codegen/loops/strips.h"
#include "compiler/codegen/loops/vector_axis.h"
#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/loop_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Guarded loads of a point from which on pointers to rows are worth rows of what stands outside, and the longest such row.
constexpr std::int64_t kFewestRows = 3, kLongestRow = 4096;
// Elements that a work-item of a GPU copies together, and axes from which on finding an element's place takes longer than
// copying it.
constexpr int kCopied = 4;
constexpr std::size_t kManyAxes = 4;

// Kernels with more loads than this find no registers for vectors of four neighbours.
constexpr std::ptrdiff_t kMostLoadsOfFours = 8;
// Floats of two sectors of a GPU's cache line: a group that copies squares of as many reads and writes whole ones.
constexpr std::int64_t kSquareOfGroup = 16;

class LoopNest {
 public:
  LoopNest(Kernel kernel, const Target& target) : kernel_(std::move(kernel)), target_(target) {
    narrow_indices(kernel_);
    collapse_axes(kernel_);
    if (kernel_.axes.empty()) kernel_.axes.push_back({"one", Expr(1), Expr(0)});
    cpu_ = target.items_are_cores();
    if (cpu_) vector_ = choose_vector_axis(kernel_, target);
    vector_.carries_each = !cpu_;
  }

  // `groups`: the most tiles on a GPU; 0: an element a work-item.
  GeneratedKernel run(std::int64_t groups = 0) {
    if (!cpu_ && groups == 0 && is_large_transposition()) block_transpose(kernel_, kSquareOfGroup, false);
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_, groups > 0);
    mode.aligned = !cpu_ && (groups > 0 || takes_vectors());
    mode.streams = cpu_ && streams_results(kernel_);
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    std::string tile_parameters = parameter_list(kernel_, false), parameters = parameter_list(kernel_, true),
                arguments = argument_list(kernel_);
    for (OwnConstant& row : rows_outside(mode)) {
      g.arguments.push_back({.operand = static_cast<int>(kernel_.operands.size() + g.packed.size())});
      g.packed.push_back(std::move(row.buffer));
      tile_parameters += fmt::format(", __global const float* {}", row.name);
      parameters += fmt::format(", __global const float* {0}, const long {0}_at", row.name);
      arguments += fmt::format(", {0} + {0}_at", row.name);
    }
    Emitter e(kernel_, mode);
    if (cpu_)
      cpu_tile(e, g);
    else if (groups > 0)
      strided_tile(e, g, groups);
    else
      gpu_tile(e, g);
    if (mode.streams) e.line("oclc_streamed();");
    g.head = kernel_head(kernel_, g);
    g.tile_source =
        fmt::format("void {}_tile({}, const {} tile) {{\n{}}}\n\n", g.name, tile_parameters, e.index_type(), e.text());
    g.source = g.tile_source;
    g.source += fmt::format(
        "__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n  {}_tile({}, get_group_id(0));\n}}\n",
        g.local[0], g.name, parameters, g.name, arguments);
    return g;
  }

  std::string whole(int group) {
    EmitMode mode;
    mode.wide_index = needs_wide_index(kernel_);
    Emitter e(kernel_, mode);
    if (cpu_)
      whole_by_one_item(e);
    else
      whole_by_group(e, group);
    return e.text();
  }

 private:
  // Rows of the values that windows have outside the image, and their names in the mode.
  std::vector<OwnConstant> rows_outside(EmitMode& mode) const {
    std::vector<OwnConstant> rows;
    if (!cpu_ || !vector_.parallel || vector_.width == 1) return rows;
    const Axis& axis = kernel_.axes[*vector_.parallel];
    if (!axis.extent.is_constant() || axis.extent.value() > kLongestRow) return rows;
    std::int64_t loads = 0;
    for (const ScalarNode& node : kernel_.nodes) {
      if (!is_row_load(kernel_, node, axis.name)) continue;
      std::int64_t times = 1;
      for (const Axis& r : kernel_.reduction) times *= node.index.uses(r.name) ? typical_extent(r.extent) : 1;
      loads += times;
      if (mode.outside.count(node.number) != 0) continue;
      const std::string name = fmt::format("outside{}", rows.size());
      HostTensor row(DType::f32, {axis.extent.value()});
      std::fill_n(reinterpret_cast<float*>(row.mutable_data()), row.elements(), static_cast<float>(node.number));
      rows.push_back(own_constant(name, name, std::move(row)));
      mode.outside[node.number] = name;
    }
    if (loads >= kFewestRows) return rows;
    mode.outside.clear();
    return {};
  }

  void element(Emitter& e) { emit_element(e, kernel_, vector_); }

  // `squares`: besides both axes of the squares that vectors transpose.
  std::vector<const Axis*> axes_besides_vector(bool squares = false) const {
    std::vector<const Axis*> list;
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (i != vector_.parallel && !(squares && i == vector_.transposed->along)) list.push_back(&kernel_.axes[i]);
    }
    return list;
  }

  Expr elements() const { return rows_besides(kernel_, std::nullopt); }

  void whole_by_one_item(Emitter& e) {
    std::set<std::string> single;
    for (const Axis& a : kernel_.axes) {
      if (a.extent == Expr(1)) single.insert(a.name);
    }
    e.open("", single);
    const int loops = open_loops(e, axes_besides_vector());
    if (vector_.parallel) {
      const Axis& axis = kernel_.axes[*vector_.parallel];
      const int width = vector_width_for(axis.extent, vector_.width);
      if (axis.extent.is_constant())
        literal_vector_loops(e, axis, width, [&](int) { element(e); });
      else
        vector_loops(e, {axis, "0", e.index(axis.extent), true}, width, [&](int) { element(e); });
    } else {
      element(e);
    }
    close_scopes(e, loops + 1);
  }

  void whole_by_group(Emitter& e, int group) {
    e.open(fmt::format("for ({} element = get_local_id(0); element < {}; element += {})", e.index_type(), e.index(elements()),
                       group),
           {});
    e.open("", declare_coordinates(e, "element", axes_besides_vector()));
    element(e);
    close_scopes(e, 2);
  }

  // A tile is a chunk of one row's vector axis, or all of it for some rows.
  void cpu_tile(Emitter& e, GeneratedKernel& g) {
    const LoopTiles tiles = choose_loop_tiles(kernel_, vector_.parallel, target_);
    if (vector_.transposed) return cpu_squares(e, g, tiles.rows);
    const Axis* inner = vector_.parallel ? &kernel_.axes[*vector_.parallel] : nullptr;
    const Expr inner_extent = inner ? inner->extent : Expr(1), rows = rows_besides(kernel_, vector_.parallel);
    const Expr chunks = tiles.chunk ? ceil_div(inner_extent, Expr(tiles.chunk)) : Expr(1);
    g.groups = {ceil_div(rows, Expr(tiles.rows)) * chunks};
    g.local = {1};
    g.schedule =
        fmt::format("{} rows x {} a tile{}", tiles.rows, tiles.chunk ? std::to_string(tiles.chunk) : inner_extent.text(),
                    vector_.reduction ? ", vectors along the row" : "");
    std::string begin = "0", end = e.index(inner_extent);
    if (tiles.chunk) {
      const std::string_view type = e.index_type();
      const std::string tile = rows == Expr(1) ? "tile" : fmt::format("tile % ({})", e.index(chunks));
      e.line(fmt::format("const {} chunk_begin = {} * {};", type, tile, tiles.chunk));
      e.line(fmt::format("const {0} chunk_end = min(chunk_begin + {1}, ({0})({2}));", type, tiles.chunk, end));
      begin = "chunk_begin";
      end = "chunk_end";
    }
    e.open("", open_rows(e, rows, tiles.rows, chunks == Expr(1) ? "tile" : fmt::format("tile / ({})", e.index(chunks))));
    const int width = inner ? vector_width_for(inner->extent, vector_.width) : 1;
    const Strips strips = inner && width == vector_.width && has_strips(e, kernel_, vector_, *inner)
                              ? choose_strips(kernel_, vector_, *inner, tiles, target_)
                              : Strips{};
    if (strips.vectors > 0) {
      emit_strips(e, kernel_, vector_, *inner, strips, begin, end);
      const bool whole = tiles.chunk == 0 && inner_extent.is_constant() && inner_extent.value() % (strips.vectors * width) == 0;
      if (!whole && !strips.overlap) vector_loops(e, {*inner, "strip", end}, width, [&](int) { element(e); });
    } else if (inner) {
      vector_loops(e, {*inner, begin, end, tiles.chunk == 0}, width, [&](int) { element(e); });
    } else {
      element(e);
    }
    close_scopes(e, 2);
  }

  // A tile is some squares, each transposed in vectors and then computed on line by line.
  void cpu_squares(Emitter& e, GeneratedKernel& g, std::int64_t tile_rows) {
    const auto& [number, along, width] = *vector_.transposed;
    const Axis &lane = kernel_.axes.back(), &line = kernel_.axes[along];
    const Expr rows = floor_div(rows_besides(kernel_, vector_.parallel), Expr(width));
    const std::int64_t count = ceil_div(tile_rows, std::int64_t{width});
    g.groups = {ceil_div(rows, Expr(count))};
    g.local = {1};
    g.schedule = fmt::format("{} blocks of {} x {} a tile, in squares of {}", count, width, lane.extent.value(), width);
    e.open("", open_rows(e, rows, count, "tile", true));
    // Lines that go past the caches are written whole: what stores a part of one sends it to memory as a part.
    const std::int64_t lanes = lane.extent.value(), together = e.mode().streams ? lanes : width;
    open_unrolled(e, "from", lanes, together);
    const bool one = together == width;
    const std::string square = one ? "square" : "square[s]", first = one ? "from" : fmt::format("from + s * {}", width);
    e.line(one ? fmt::format("float{0} square[{0}];", width)
               : fmt::format("float{0} square[{1}][{0}];", width, together / width));
    if (!one) open_unrolled(e, "s", together / width);
    read_square(e, square, first);
    if (!one) e.close();
    const std::set<std::string> of_line = {line.name}, of_vector = {lane.name}, of_both = {line.name, lane.name};
    open_unrolled(e, line.name, width, 1, one ? of_both : of_line);
    if (!one) open_unrolled(e, "s", together / width, 1, of_vector);
    e.line(fmt::format("const {} {} = {};", e.index_type(), lane.name, first));
    e.set_vector_axis(lane.name, width);
    e.define(number, fmt::format("{}[{}]", square, line.name));
    element(e);
    e.set_vector_axis({}, 1);
    close_scopes(e, one ? 4 : 5);
  }

  // Reads the square whose lanes begin at `first`, transposed.
  void read_square(Emitter& e, const std::string& square, const std::string& first) {
    const auto& [number, along, width] = *vector_.transposed;
    const Axis &lane = kernel_.axes.back(), &line = kernel_.axes[along];
    const ScalarNode& load = kernel_.nodes[static_cast<std::size_t>(number)];
    const std::string& from = kernel_.operands[static_cast<std::size_t>(load.operand)].name;
    open_unrolled(e, "l", width, 1, {lane.name});
    e.line(fmt::format("const {} {} = {} + l;", e.index_type(), lane.name, first));
    const std::string text =
        fmt::format("vload{}(0, {} + {})", width, from, e.index(load.index.substitute({{line.name, Expr(0)}})));
    e.line(fmt::format("{}[l] = {};", square,
                       load.guard.empty() ? text
                                          : fmt::format("({}) ? {} : (float{})({})", e.condition(load.guard), text, width,
                                                        c_number(load.number, load.dtype))));
    e.close();
    e.line(fmt::format("oclc_transpose({});", square));
  }

  // Opens the loop over the rows of tile `tile`, of `count` each, and returns the names of the coordinates that it declares.
  std::set<std::string> open_rows(Emitter& e, const Expr& rows, std::int64_t count, const std::string& tile,
                                  bool squares = false) {
    const std::string_view type = e.index_type();
    if (rows == Expr(1)) {
      e.open("", {});
      std::set<std::string> names;
      for (const Axis* axis : axes_besides_vector(squares)) {
        e.line(fmt::format("const {} {} = 0;", type, axis->name));
        names.insert(axis->name);
      }
      return names;
    }
    if (count > 1) {
      e.line(fmt::format("const {0} row_end = min(({1}) * {2} + {2}, ({0})({3}));", type, tile, count, e.index(rows)));
      e.open(fmt::format("for ({} row = ({}) * {}; row < row_end; ++row)", type, tile, count), {});
    } else {
      e.open("", {});
      e.line(fmt::format("const {} row = {};", type, tile));
    }
    return declare_coordinates(e, "row", axes_besides_vector(squares));
  }

  void gpu_tile(Emitter& e, GeneratedKernel& g) {
    check_loop_iterations(kernel_, target_);
    const std::int64_t group = target_.work_group;
    const bool vectors = takes_vectors();
    const Expr items = vectors ? floor_div(elements(), Expr(kCopied)) : elements();
    g.groups = {ceil_div(items, Expr(group))};
    g.local = {static_cast<std::uint32_t>(group)};
    g.schedule = vectors ? "a vector a work-item" : "one element a work-item";
    e.line(fmt::format("const {} element = tile * {} + get_local_id(0);", e.index_type(), group));
    e.line(fmt::format("if (element >= {}) return;", e.index(items)));
    std::vector<const Axis*> axes = axes_besides_vector();
    const Axis& last = *axes.back();
    const Axis quads{last.name + "_quad", floor_div(last.extent, Expr(kCopied)), Expr(0)};
    if (vectors) axes.back() = &quads;
    std::set<std::string> names = declare_coordinates(e, "element", axes);
    if (vectors) {
      e.line(fmt::format("const {} {} = {} * {};", e.index_type(), last.name, quads.name, kCopied));
      names.insert(last.name);
    }
    e.open("", names);
    if (vectors) e.set_vector_axis(last.name, kCopied);
    element(e);
    if (vectors) e.set_vector_axis({}, 1);
    e.close();
  }

  // A work-item of a GPU computes four neighbours: it asks for four times as much at once.
  bool takes_vectors() const {
    if (copies_vectors()) return true;
    return !has_many_loads() && kernel_.stages.empty() && has_fours() &&
           typical(elements()) >= cost::kItemsOfUnit * kCopied * std::max(1, target_.compute_units);
  }

  bool has_many_loads() const {
    return std::count_if(kernel_.nodes.begin(), kernel_.nodes.end(),
                         [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load; }) > kMostLoadsOfFours;
  }

  // Of a kernel that loads much, a window's, so few that a work-item each leaves none of `groups` groups a second tile: fours
  // would leave most of the groups idle.
  bool has_few_elements(std::int64_t groups) const {
    return has_many_loads() && known_less(elements(), Expr(groups * target_.work_group + 1));
  }

  // Of so many floats that what is read along another axis than it is written would come from memory again and again.
  bool is_large_transposition() const {
    if (!kernel_.stages.empty() || kernel_.stores.size() != 1 || !kernel_.stores[0].row_axes.empty() ||
        typical(elements()) < cost::kItemsOfUnit * kCopied * std::max(1, target_.compute_units))
      return false;
    return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
      return n.kind == ScalarNode::Kind::load && std::any_of(kernel_.axes.begin(), kernel_.axes.end(), [&](const Axis& a) {
               return n.index.coefficient(a.name) == Expr(1) && kernel_.stores[0].index.coefficient(a.name) != Expr(1);
             });
    });
  }

  // All that the kernel does is to copy floats side by side, whole vectors of them, from places that many coordinates name.
  bool copies_vectors() const {
    if (kernel_.axes.size() < kManyAxes || !kernel_.reduction.empty() || kernel_.stores.size() != 1) return false;
    const Axis& last = kernel_.axes.back();
    const Store& store = kernel_.stores[0];
    const ScalarNode& load = kernel_.nodes[static_cast<std::size_t>(store.value)];
    const auto is_plain = [&](const auto& access) {
      return access.guard.empty() && access.index.coefficient(last.name) == Expr(1) &&
             kernel_.operands[static_cast<std::size_t>(access.operand)].dtype == DType::f32;
    };
    return load.kind == ScalarNode::Kind::load && load.dtype == DType::f32 && store.row_axes.empty() && is_plain(load) &&
           is_plain(store) && floor_mod(last.extent, Expr(kCopied)) == Expr(0);
  }

  // Four neighbours along the innermost axis are vectors, in every load and store.
  bool has_fours() const {
    const Axis& axis = kernel_.axes.back();
    return floor_mod(axis.extent, Expr(kCopied)) == Expr(0) && kernel_.stages.empty() &&
           can_vectorize(kernel_, axis.name, kCopied) &&
           std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const Store& s) {
             return s.row_axes.empty() && s.index.coefficient(axis.name) == Expr(1) &&
                    kernel_.operands[static_cast<std::size_t>(s.operand)].dtype == DType::f32;
           });
  }

  void strided_tile(Emitter& e, GeneratedKernel& g, std::int64_t groups) {
    check_loop_iterations(kernel_, target_);
    const std::int64_t group = target_.work_group;
    const bool fours = has_fours() && !has_few_elements(groups);
    const Expr steps = fours ? floor_div(elements(), Expr(kCopied)) : elements();
    g.groups = {min(ceil_div(steps, Expr(group)), Expr(groups))};
    g.local = {static_cast<std::uint32_t>(group)};
    g.schedule = fmt::format("{} at a time", fours ? "four elements" : "an element");
    const std::string_view type = e.index_type();
    e.open(fmt::format("for ({0} at = tile * {1} + get_local_id(0); at < {2}; at += ({0})({3}) * {1})", type, group,
                       e.index(steps), e.index(g.groups[0])),
           {});
    e.line(fmt::format("const {} element = at{};", type, fours ? fmt::format(" * {}", kCopied) : ""));
    if (fours) e.set_vector_axis(kernel_.axes.back().name, kCopied);
    e.open("", declare_coordinates(e, "element", axes_besides_vector()));
    element(e);
    e.close();
    if (fours) e.set_vector_axis({}, 1);
    e.close();
  }

  Kernel kernel_;
  const Target& target_;
  bool cpu_ = true;
  VectorAxis vector_;
};

}  // namespace

GeneratedKernel generate_loops(Kernel kernel, const Target& target) { return LoopNest(std::move(kernel), target).run(); }

GeneratedKernel generate_strided_loops(Kernel kernel, const Target& target, std::int64_t groups) {
  return LoopNest(std::move(kernel), target).run(groups);
}

std::string whole_loops(Kernel kernel, const Target& target, int group) {
  return LoopNest(std::move(kernel), target).whole(group);
}

}  // namespace oclc
