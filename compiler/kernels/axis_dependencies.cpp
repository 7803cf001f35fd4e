#include "compiler/kernels/axis_dependencies.h"

#include <fmt/format.h>

#include <algorithm>

namespace oclc {
namespace {

using Kind = ScalarNode::Kind;

// Has the same number of lanes as a vector of floats.
bool has_lanes(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::i32 || dtype == DType::u32 ||
         dtype == DType::boolean;
}

std::set<std::string> index_dependencies(const Expr& e, const std::vector<std::set<std::string>>& nodes) {
  std::set<std::string> all;
  for (const std::string& s : e.symbols()) {
    if (const auto id = dynamic_index(s))
      all.insert(nodes[static_cast<std::size_t>(*id)].begin(), nodes[static_cast<std::size_t>(*id)].end());
    else
      all.insert(s);
  }
  return all;
}

bool index_varies(const Expr& e, const std::string& axis, const std::vector<std::set<std::string>>& dependencies) {
  return index_dependencies(e, dependencies).count(axis) != 0;
}

// Whether e >= 0 holds for all or for none of each `width` neighbours along the axis, counted from 0.
bool alike(const Expr& e, const std::string& axis, int width) {
  const auto step = e.coefficient(axis);
  if (width == 1 || !step || (*step != Expr(1) && *step != Expr(-1))) return false;
  const auto rest = e.substitute({{axis, Expr(0)}}).constant();
  return rest && (*step == Expr(1) ? *rest : *rest + 1) % width == 0;
}

bool unit_or_zero(const Expr& e, const std::string& axis, const std::vector<std::set<std::string>>& dependencies) {
  for (const std::string& s : e.symbols()) {
    const auto id = dynamic_index(s);
    if (id && dependencies[static_cast<std::size_t>(*id)].count(axis)) return false;
  }
  const auto c = e.coefficient(axis);
  return c && (*c == Expr(0) || *c == Expr(1));
}

}  // namespace

std::vector<std::set<std::string>> find_dependencies(const Kernel& kernel) {
  std::set<std::string> reductions, axes;
  for (const Axis& a : kernel.reduction) reductions.insert(a.name);
  for (const Axis& a : kernel.axes) axes.insert(a.name);
  std::vector<std::set<std::string>> all(kernel.nodes.size());
  // Nodes stand after their arguments, but what a stage sums up may stand after its result.
  const auto visit = [&](std::size_t i) {
    const ScalarNode& node = kernel.nodes[i];
    std::set<std::string>& mine = all[i];
    if (node.kind == Kind::reduced) {
      const Stage& stage = kernel.stages[static_cast<std::size_t>(node.stage)];
      mine = all[static_cast<std::size_t>(stage.body)];
      for (const std::string& r : reductions) mine.erase(r);
      mine.insert(fmt::format("stage {}", node.stage));
      return;
    }
    mine = index_dependencies(node.index, all);
    for (const Expr& e : node.guard) mine.merge(index_dependencies(e, all));
    for (const NodeId a : node.args)
      mine.insert(all[static_cast<std::size_t>(a)].begin(), all[static_cast<std::size_t>(a)].end());
    std::erase_if(mine,
                  [&](const std::string& s) { return !axes.count(s) && !reductions.count(s) && !s.starts_with("stage "); });
  };
  bool late = false;
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    late =
        late || (node.kind == Kind::reduced && kernel.stages[static_cast<std::size_t>(node.stage)].body > static_cast<int>(i));
  }
  for (bool changed = true; changed;) {
    const auto before = all;
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) visit(i);
    changed = late && all != before;
  }
  return all;
}

bool can_vectorize(const Kernel& kernel, const std::string& axis, int aligned, std::optional<DType> converted) {
  const auto is_loaded = [&](const ScalarNode& n) { return n.kind == Kind::load && n.dtype == converted; };
  const auto dependencies = find_dependencies(kernel);
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (!dependencies[i].count(axis)) continue;
    const ScalarNode& node = kernel.nodes[i];
    if (!has_lanes(node.dtype) && !is_loaded(node)) return false;
    if (node.kind == Kind::apply && std::any_of(node.args.begin(), node.args.end(), [&](NodeId arg) {
          return is_loaded(kernel.nodes[static_cast<std::size_t>(arg)]);
        }))
      return false;
    if (!unit_or_zero(node.index, axis, dependencies) && node.kind == Kind::load) return false;
    if (node.kind == Kind::index) {
      const auto c = node.index.coefficient(axis);
      if (!c || node.dtype != DType::i32) return false;
    }
    for (const Expr& e : node.guard) {
      if (index_varies(e, axis, dependencies) && !alike(e, axis, aligned)) return false;
    }
    if (node.kind == Kind::bits) return false;
    if (node.kind != Kind::cast) continue;
    const ScalarNode& from = kernel.nodes[static_cast<std::size_t>(node.args[0])];
    if (!has_lanes(from.dtype) && !is_loaded(from)) return false;
  }
  for (const Store& store : kernel.stores) {
    const DType dtype = kernel.operands[static_cast<std::size_t>(store.operand)].dtype;
    if (!has_lanes(dtype)) return false;
    for (const Expr& e : store.guard) {
      if (index_varies(e, axis, dependencies)) return false;
    }
  }
  for (const Stage& stage : kernel.stages) {
    if (stage.arg_index >= 0) return false;
  }
  return true;
}

}  // namespace oclc
