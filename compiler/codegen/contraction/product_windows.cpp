#include "compiler/codegen/contraction/product_windows.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/ops/op_list.h"

namespace oclc {
namespace {

std::string symbol_of(const Axis& axis) { return "in_window_" + axis.name; }

}  // namespace

Kernel one_of_each_window(const Kernel& kernel) {
  Kernel one = kernel;
  Contraction& c = *one.contraction;
  Substitution by;
  Expr later = -1;
  for (std::size_t i = 0; i < c.m.size(); ++i) {
    const std::int64_t length = c.windows[i];
    if (length == 1) continue;
    Axis& axis = one.axes[static_cast<std::size_t>(c.m[i])];
    const Expr place = Expr::symbol(symbol_of(axis), 0, length - 1);
    const Expr windows = floor_div(axis.extent, Expr(length));
    const std::string name = axis.name + "_window";
    by[axis.name] = Expr(length) * Expr::axis(name, windows) + place;
    axis = {name, windows, Expr::axis(name, windows)};
    later += place;
  }
  c.windows.clear();
  for (ScalarNode& node : one.nodes) {
    node.index = node.index.substitute(by);
    for (Expr& e : node.guard) e = e.substitute(by);
  }
  Store& store = one.stores[0];
  store.index = store.index.substitute(by);
  ScalarNode before, larger;
  before.kind = ScalarNode::Kind::load;
  before.operand = store.operand;
  before.index = store.index;
  before.guard = {later};
  before.number = -INFINITY;
  const OpDef& max = op("max");
  larger.kind = ScalarNode::Kind::apply;
  larger.op = max.scalar;
  larger.op_name = max.name;
  larger.args = {static_cast<NodeId>(one.nodes.size()), store.value};
  one.nodes.push_back(before);
  one.nodes.push_back(larger);
  store.value = static_cast<NodeId>(one.nodes.size()) - 1;
  return one;
}

std::string window_coordinates(const Kernel& kernel, std::string_view window) {
  const Contraction& c = *kernel.contraction;
  std::string lines;
  std::int64_t inner = window_results(kernel);
  for (std::size_t i = 0; i < c.m.size(); ++i) {
    const std::int64_t length = c.windows[i];
    if (length == 1) continue;
    inner /= length;
    lines += fmt::format("  const int dim_{} = {} / {} % {};\n", symbol_of(kernel.axes[static_cast<std::size_t>(c.m[i])]),
                         window, inner, length);
  }
  return lines;
}

std::int64_t window_results(const Kernel& kernel) {
  std::int64_t results = 1;
  for (const std::int64_t length : kernel.contraction->windows) results *= length;
  return results;
}

}  // namespace oclc
