#include "compiler/codegen/loops/collapse.h"

#include <algorithm>

namespace oclc {
namespace {

// All index expressions of the kernel, or nothing if one of them divides `flat`.
bool affine_in(const Expr& e, const std::string& flat) {
  for (const std::string& s : e.symbols()) {
    if (s == flat) return e.coefficient(flat).has_value();
  }
  return true;
}

bool try_collapse(Kernel& kernel, std::vector<Axis>& axes, std::size_t at) {
  const Axis outer = axes[at], inner = axes[at + 1];
  if (outer.extent == Expr(1) || inner.extent == Expr(1)) {
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(outer.extent == Expr(1) ? at : at + 1));
    return true;
  }
  if (inner.extent == Expr(0)) return false;  // has no division
  Axis flat{outer.name + "_" + inner.name, outer.extent * inner.extent, {}};
  flat.var = Expr::axis(flat.name, flat.extent);
  const Substitution by{{outer.name, floor_div(flat.var, inner.extent)}, {inner.name, floor_mod(flat.var, inner.extent)}};
  Kernel trial = kernel;
  bool affine = true;
  each_index(trial, [&](Expr& e) {
    if (!affine) return;
    e = e.substitute(by);
    affine = affine_in(e, flat.name);
  });
  if (!affine) return false;
  kernel.nodes = std::move(trial.nodes);
  kernel.stores = std::move(trial.stores);
  axes[at] = flat;
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return true;
}

// Reduction axes that the same stages and stores run over may merge.
bool same_role(const Kernel& kernel, int a, int b) {
  const auto has = [](const std::vector<int>& list, int x) { return std::find(list.begin(), list.end(), x) != list.end(); };
  return std::all_of(kernel.stages.begin(), kernel.stages.end(),
                     [&](const Stage& s) { return has(s.axes, a) == has(s.axes, b); }) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const Store& s) { return has(s.row_axes, a) == has(s.row_axes, b); });
}

void remove_axis_number(std::vector<int>& list, int removed) {
  std::erase(list, removed);
  for (int& a : list) a -= a > removed ? 1 : 0;
}

}  // namespace

void collapse_axes(Kernel& kernel) {
  for (std::size_t i = 0; i + 1 < kernel.axes.size();) {
    if (!try_collapse(kernel, kernel.axes, i)) ++i;
  }
  for (std::size_t i = 0; i + 1 < kernel.reduction.size();) {
    const int removed = kernel.reduction[i].extent == Expr(1) ? static_cast<int>(i) : static_cast<int>(i) + 1;
    if (!same_role(kernel, static_cast<int>(i), static_cast<int>(i) + 1) || !try_collapse(kernel, kernel.reduction, i)) {
      ++i;
      continue;
    }
    for (Stage& stage : kernel.stages) remove_axis_number(stage.axes, removed);
    for (Store& store : kernel.stores) remove_axis_number(store.row_axes, removed);
  }
}

}  // namespace oclc
