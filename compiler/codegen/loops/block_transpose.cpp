#include "compiler/codegen/loops/block_transpose.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Stride of `index` along `axis`, if it is a number.
std::optional<std::int64_t> stride(const Expr& index, const std::string& axis) {
  const auto c = index.coefficient(axis);
  return c ? c->constant() : std::nullopt;
}

// The load with the longest stride along `axis`.
const ScalarNode* longest(const Kernel& kernel, const std::string& axis) {
  const ScalarNode* found = nullptr;
  std::int64_t best = 0;
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind != ScalarNode::Kind::load) continue;
    const auto step = stride(node.index, axis);
    if (!step) return nullptr;
    if (std::abs(*step) > best) best = std::abs(*step), found = &node;
  }
  return found;
}

void substitute(Kernel& kernel, const Substitution& by) {
  each_index(kernel, [&](Expr& e) { e = e.substitute(by); });
}

// Makes one axis of two along which the load reads neighbours together, as the taps of one channel after those of another.
// Indices of other nodes then divide. Returns whether vectors of `width` fill it.
bool join_neighbours(Kernel& kernel, const ScalarNode& load, std::int64_t width) {
  const auto unguarded = [&](const Axis& a) {
    return a.extent.is_constant() &&
           std::none_of(load.guard.begin(), load.guard.end(), [&](const Expr& e) { return e.uses(a.name); });
  };
  const auto with_step = [&](std::int64_t step) {
    return std::find_if(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) {
      return &a != &kernel.axes.back() && a.extent != Expr(1) && stride(load.index, a.name) == std::optional(step) &&
             unguarded(a);
    });
  };
  const auto inner = with_step(1);
  if (inner == kernel.axes.end()) return false;
  const auto outer = with_step(inner->extent.value());
  if (outer == kernel.axes.end() || outer->extent.value() * inner->extent.value() % width != 0) return false;
  Axis both{outer->name + "_" + inner->name, outer->extent * inner->extent, {}};
  both.var = Expr::axis(both.name, both.extent);
  const Substitution by{{outer->name, floor_div(both.var, inner->extent)}, {inner->name, floor_mod(both.var, inner->extent)}};
  *outer = both;
  kernel.axes.erase(inner);
  substitute(kernel, by);
  return true;
}

// Conditions that hold for all lanes or for none, without the lane.
void free_of_lanes(std::vector<Expr>& guard, const Axis& lane) {
  for (Expr& e : guard) {
    const Expr whole = floor_div(e, lane.extent);
    if (e.uses(lane.name) && !whole.uses(lane.name)) e = whole;
  }
}

// transposed_load(), which may leave the kernel half done.
std::optional<TransposedLoad> load_in_squares(Kernel& kernel, int width) {
  const Axis lane = kernel.axes.back();
  if (width < 4 || !lane.extent.is_constant() || lane.extent.value() % width != 0) return std::nullopt;
  const ScalarNode* load = longest(kernel, lane.name);
  const auto number = static_cast<std::size_t>(load - kernel.nodes.data());
  const auto places = [&](const Expr& index, const std::vector<Expr>& guard) {
    return !reads_values(index) &&
           std::none_of(guard.begin(), guard.end(), [&](const Expr& e) { return e.uses(lane.name) || reads_values(e); });
  };
  free_of_lanes(kernel.nodes[number].guard, lane);
  if (!places(load->index, load->guard) ||
      !std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) { return places(s.index, s.guard); }) ||
      load->dtype != DType::f32 || kernel.operands[static_cast<std::size_t>(load->operand)].dtype != DType::f32)
    return std::nullopt;
  const auto find_along = [&] {
    return std::find_if(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) {
      return stride(load->index, a.name) == std::optional<std::int64_t>(1) && a.extent.is_constant() &&
             a.extent.value() % width == 0 &&
             std::none_of(load->guard.begin(), load->guard.end(), [&](const Expr& e) { return e.uses(a.name); });
    });
  };
  auto along = find_along();
  if (along == kernel.axes.end() && join_neighbours(kernel, *load, width)) along = find_along();
  if (along == kernel.axes.end()) return std::nullopt;
  // With the squares transposed, the load runs along the results.
  Kernel turned = kernel;
  turned.nodes[number].index = lane.var;
  if (!can_vectorize(turned, lane.name, width)) return std::nullopt;

  Axis block{along->name + "_block", floor_div(along->extent, Expr(width)), {}}, inner{along->name + "_lane", Expr(width), {}};
  block.var = Expr::axis(block.name, block.extent);
  inner.var = Expr::axis(inner.name, inner.extent);
  const Substitution by{{along->name, block.var * Expr(width) + inner.var}};
  *along = block;
  kernel.axes.insert(kernel.axes.end() - 1, inner);
  substitute(kernel, by);
  return TransposedLoad{static_cast<NodeId>(number), kernel.axes.size() - 2, width};
}

}  // namespace

bool block_transpose(Kernel& kernel, std::int64_t lanes, bool reads_lines_once) {
  if (!kernel.reduction.empty() || kernel.stores.empty()) return false;
  const auto unit = std::find_if(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) {
    return std::all_of(kernel.stores.begin(), kernel.stores.end(),
                       [&](const Store& s) { return stride(s.index, a.name) == std::optional<std::int64_t>(1); });
  });
  if (unit == kernel.axes.end() || !unit->extent.is_constant() || unit->extent.value() % lanes != 0 ||
      unit->extent.value() == lanes)
    return false;
  const ScalarNode* load = longest(kernel, unit->name);
  if (!load) return false;

  const Axis axis = *unit;
  const std::int64_t step = std::abs(*stride(load->index, axis.name));
  // What lies between the elements of a short step is read by another axis.
  const bool between = reads_lines_once && std::any_of(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) {
                         const std::int64_t its = std::abs(stride(load->index, a.name).value_or(0));
                         return its > 0 && its < step && !(a.extent == Expr(1));
                       });
  if (step < lanes && !between) return false;
  Axis block{axis.name + "_block", floor_div(axis.extent, Expr(lanes)), {}}, lane{axis.name + "_lane", Expr(lanes), {}};
  block.var = Expr::axis(block.name, block.extent);
  lane.var = Expr::axis(lane.name, lane.extent);
  // Axes whose stride is unknown stay outermost, in their order.
  std::vector<std::pair<std::int64_t, Axis>> order;
  for (const Axis& a : kernel.axes) {
    if (a.name == axis.name)
      order.emplace_back(step * lanes, block);
    else
      order.emplace_back(std::abs(stride(load->index, a.name).value_or(INT64_MAX)), a);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  kernel.axes.clear();
  for (auto& [length, a] : order) kernel.axes.push_back(std::move(a));
  kernel.axes.push_back(lane);

  substitute(kernel, {{axis.name, block.var * Expr(lanes) + lane.var}});
  return true;
}

std::optional<TransposedLoad> transposed_load(Kernel& kernel, int width) {
  Kernel squares = kernel;
  auto load = load_in_squares(squares, width);
  if (load) kernel = std::move(squares);
  return load;
}

}  // namespace oclc
