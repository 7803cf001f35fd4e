#include "compiler/codegen/block_transpose.h"

#include <algorithm>
#include <cstdlib>

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

}  // namespace

bool block_transpose(Kernel& kernel, std::int64_t lanes) {
  if (!kernel.reduction.empty() || kernel.stores.empty()) return false;
  const auto unit = std::find_if(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) {
    return std::all_of(kernel.stores.begin(), kernel.stores.end(),
                       [&](const Store& s) { return stride(s.index, a.name) == std::optional<std::int64_t>(1); });
  });
  if (unit == kernel.axes.end() || !unit->extent.is_constant() || unit->extent.value() % lanes != 0 ||
      unit->extent.value() == lanes)
    return false;
  const ScalarNode* load = longest(kernel, unit->name);
  if (!load || std::abs(*stride(load->index, unit->name)) < lanes) return false;

  const Axis axis = *unit;
  const std::int64_t step = std::abs(*stride(load->index, axis.name));
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

  const std::map<std::string, Expr, std::less<>> by{{axis.name, block.var * Expr(lanes) + lane.var}};
  const auto replace = [&](Expr& e) { e = e.substitute(by); };
  for (ScalarNode& node : kernel.nodes) {
    replace(node.index);
    for (Expr& e : node.guard) replace(e);
  }
  for (Store& store : kernel.stores) {
    replace(store.index);
    for (Expr& e : store.guard) replace(e);
  }
  return true;
}

}  // namespace oclc
