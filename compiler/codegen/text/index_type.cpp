#include "compiler/codegen/text/index_type.h"

#include <algorithm>
#include <string>

#include "compiler/ir/typical.h"

namespace oclc {
namespace {

bool fits(const Expr& e) { return e.upper() <= INT32_MAX && e.lower() >= INT32_MIN; }

// What model symbols and axes as long as they are with the least sizes become.
Substitution with_least_sizes(const Kernel& kernel) {
  Substitution by;
  for (const std::string& s : kernel.model_symbols()) by.emplace(s, Expr(1));
  for (const auto* list : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *list) {
      if (!axis.extent.is_constant()) by.insert_or_assign(axis.name, Expr::axis(axis.name, Expr(least_extent(axis.extent))));
    }
  }
  return by;
}

}  // namespace

bool needs_wide_index(const Kernel& kernel, const std::vector<Expr>& extents, bool for_any_size) {
  const Substitution least = with_least_sizes(kernel);
  // Where there is no bound for all sizes, what is needed with the least ones.
  const auto may_leave = [&](const Expr& e) {
    return !fits(e) && (for_any_size || e.upper() != kUnbounded || !fits(e.substitute(least)));
  };
  Expr points(1);
  for (const Expr& e : extents) points *= e;
  if (may_leave(points)) return true;
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind == ScalarNode::Kind::load && may_leave(node.index)) return true;
    // A value, not a place.
    if (node.kind == ScalarNode::Kind::index && !fits(node.index)) return true;
  }
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) { return may_leave(s.index); });
}

bool needs_wide_index(const Kernel& kernel, bool for_any_size) {
  std::vector<Expr> extents;
  for (const Axis& a : kernel.axes) extents.push_back(a.extent);
  return needs_wide_index(kernel, extents, for_any_size);
}

void narrow_indices(Kernel& kernel) {
  std::vector<bool> narrow(kernel.nodes.size(), false);
  const auto fits = [](std::int64_t v) { return v >= -(1 << 30) && v <= (1 << 30); };
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    ScalarNode& node = kernel.nodes[i];
    if (node.kind == ScalarNode::Kind::index && node.dtype == DType::i64 && fits(node.index.lower()) &&
        fits(node.index.upper()))
      narrow[i] = true;
    if (node.kind == ScalarNode::Kind::constant && node.dtype == DType::i64 && fits(static_cast<std::int64_t>(node.number)))
      narrow[i] = true;
  }
  // Only where all users compare: the result's type stays as it is.
  std::vector<bool> keep(kernel.nodes.size(), false);
  const auto pin = [&](NodeId id) {
    if (id >= 0) keep[static_cast<std::size_t>(id)] = true;
  };
  for (const ScalarNode& node : kernel.nodes) {
    const bool compares =
        node.kind == ScalarNode::Kind::apply && node.op->result_is_bool &&
        std::all_of(node.args.begin(), node.args.end(), [&](NodeId a) { return narrow[static_cast<std::size_t>(a)]; });
    const bool converts = node.kind == ScalarNode::Kind::cast && node.dtype == DType::f32;
    for (const NodeId a : node.args) {
      if (!compares && !converts) pin(a);
    }
    for (const std::string& s : node.index.symbols()) {
      if (const auto id = dynamic_index(s)) pin(*id);
    }
  }
  for (const Stage& stage : kernel.stages) pin(stage.body), pin(stage.arg_index);
  for (const Store& store : kernel.stores) pin(store.value);
  for (bool changed = true; changed;) {  // a comparison needs both sides alike
    changed = false;
    for (const ScalarNode& node : kernel.nodes) {
      if (node.kind != ScalarNode::Kind::apply || !node.op->result_is_bool) continue;
      const bool any_kept = std::any_of(node.args.begin(), node.args.end(), [&](NodeId a) {
        return keep[static_cast<std::size_t>(a)] || !narrow[static_cast<std::size_t>(a)];
      });
      for (const NodeId a : node.args) {
        if (any_kept && narrow[static_cast<std::size_t>(a)] && !keep[static_cast<std::size_t>(a)])
          keep[static_cast<std::size_t>(a)] = changed = true;
      }
    }
  }
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (narrow[i] && !keep[i]) kernel.nodes[i].dtype = DType::i32;
  }
}

}  // namespace oclc
