#include "compiler/passes/pipeline/movement_chain.h"

#include <algorithm>
#include <numeric>

namespace oclc {
namespace {

// Reshapes and transposes that are looked at together; models have up to ten.
constexpr std::size_t kLongestChain = 32;

using Axis = std::vector<std::size_t>;
using Axes = std::vector<Axis>;

// Sizes and axes while atoms are still being split; atom ids are not in order yet, `order` is.
struct Factoring {
  std::vector<Expr> sizes;
  Axis order;  // atom ids in the source's order
  Axes from, to;

  explicit Factoring(const Shape& shape) {
    for (const Expr& dim : shape) {
      from.emplace_back();
      if (dim == Expr(1)) continue;
      from.back().push_back(sizes.size());
      order.push_back(sizes.size());
      sizes.push_back(dim);
    }
    to = from;
  }

  // Atom `id` keeps its first `outer` parts; a new atom follows it everywhere.
  void split(std::size_t id, const Expr& outer) {
    const std::size_t inner = sizes.size();
    sizes.push_back(floor_div(sizes[id], outer));
    sizes[id] = outer;
    const auto follow = [&](Axis& list) {
      const auto at = std::find(list.begin(), list.end(), id);
      if (at != list.end()) list.insert(at + 1, inner);
    };
    follow(order);
    std::for_each(from.begin(), from.end(), follow);
    std::for_each(to.begin(), to.end(), follow);
  }

  bool reshape(const Shape& shape) {
    std::size_t taken = 0;
    const auto next = [&]() -> std::optional<std::size_t> {
      std::size_t skip = taken;
      for (const Axis& axis : to) {
        if (skip < axis.size()) return axis[skip];
        skip -= axis.size();
      }
      return std::nullopt;
    };
    Axes result;
    for (const Expr& dim : shape) {
      if (dim == Expr(0)) return false;
      result.emplace_back();
      for (Expr need = dim; !(need == Expr(1)); ++taken) {
        const auto id = next();
        if (!id) return false;
        const Expr size = sizes[*id];
        if (floor_mod(need, size) == Expr(0)) {
          need = floor_div(need, size);
        } else if (floor_mod(size, need) == Expr(0)) {
          split(*id, need);
          for (Axis& axis : result) {  // axes made before hold other atoms only
            if (std::find(axis.begin(), axis.end(), *id) != axis.end()) return false;
          }
          need = Expr(1);
        } else {
          return false;
        }
        result.back().push_back(*id);
      }
    }
    if (next()) return false;
    to = std::move(result);
    return true;
  }

  void transpose(const Ints& perm) {
    Axes result;
    for (const std::int64_t axis : perm) result.push_back(to[static_cast<std::size_t>(axis)]);
    to = std::move(result);
  }
};

Expr size_of(const Axis& axis, const std::vector<Expr>& atoms) {
  Expr size(1);
  for (const std::size_t id : axis) size *= atoms[id];
  return size;
}

Shape shape_of(const Axes& axes, const std::vector<Expr>& atoms) {
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(size_of(axis, atoms));
  return shape;
}

Axis flattened(const Axes& axes) {
  Axis all;
  for (const Axis& axis : axes) all.insert(all.end(), axis.begin(), axis.end());
  return all;
}

// Pieces that keep their inner order: maximal runs of successive atoms.
Axes maximal_runs(const Axis& sequence) {
  Axes runs;
  for (const std::size_t id : sequence) {
    if (runs.empty() || runs.back().back() + 1 != id) runs.emplace_back();
    runs.back().push_back(id);
  }
  return runs;
}

// reshape to `split` (pieces in the source's order), transpose by `perm`, reshape to the result.
struct Plan {
  Shape split;
  Ints perm;
  std::size_t cost = 0;
};

Plan plan_with(const Axes& pieces_in_source_order, const MovementChain& chain, const Shape& result) {
  Plan plan;
  plan.split = shape_of(pieces_in_source_order, chain.atoms);
  // Axes of size 1 go where the result wants one, as far as they are known; the others by their first atom's place in the
  // result.
  const Axis sequence = flattened(chain.to);
  Axis data, units;
  for (std::size_t i = 0; i < pieces_in_source_order.size(); ++i)
    (pieces_in_source_order[i].empty() ? units : data).push_back(i);
  std::sort(data.begin(), data.end(), [&](std::size_t a, std::size_t b) {
    const auto place = [&](std::size_t i) { return std::find(sequence.begin(), sequence.end(), pieces_in_source_order[i][0]); };
    return place(a) < place(b);
  });
  std::size_t next = 0, unit = 0;
  for (const Expr& dim : result) {
    if (dim == Expr(1) && unit < units.size())
      plan.perm.push_back(static_cast<std::int64_t>(units[unit++]));
    else if (!(dim == Expr(1)) && next < data.size())
      plan.perm.push_back(static_cast<std::int64_t>(data[next++]));
  }
  while (unit < units.size()) plan.perm.push_back(static_cast<std::int64_t>(units[unit++]));
  while (next < data.size()) plan.perm.push_back(static_cast<std::int64_t>(data[next++]));
  Shape permuted;
  for (const std::int64_t axis : plan.perm) permuted.push_back(plan.split[static_cast<std::size_t>(axis)]);
  plan.cost = (plan.split == chain.source->type.shape ? 0u : 1u) +
              (std::is_sorted(plan.perm.begin(), plan.perm.end()) ? 0u : 1u) + (permuted == result ? 0u : 1u);
  return plan;
}

// Every piece is a run of successive atoms, and no boundary of a maximal run lies inside a piece.
bool respects(const Axes& pieces, const Axes& runs) {
  for (const Axis& piece : pieces) {
    if (piece.empty()) continue;
    const bool inside = std::any_of(runs.begin(), runs.end(), [&](const Axis& run) {
      return std::search(run.begin(), run.end(), piece.begin(), piece.end()) != run.end();
    });
    if (!inside) return false;
  }
  return true;
}

Axes in_source_order(Axes pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Axis& a, const Axis& b) {
    if (a.empty() || b.empty()) return a.empty() && !b.empty();
    return a[0] < b[0];
  });
  return pieces;
}

Plan best_plan(const MovementChain& chain) {
  const Axis sequence = flattened(chain.to);
  const Shape result = shape_of(chain.to, chain.atoms);
  if (std::is_sorted(sequence.begin(), sequence.end())) {
    Plan plan;
    plan.split = result;
    plan.perm.resize(result.size());
    std::iota(plan.perm.begin(), plan.perm.end(), 0);
    plan.cost = result == chain.source->type.shape ? 0 : 1;
    return plan;
  }
  const Axes runs = maximal_runs(sequence);
  std::vector<Plan> plans;
  if (respects(chain.from, runs)) plans.push_back(plan_with(chain.from, chain, result));
  if (respects(chain.to, runs)) plans.push_back(plan_with(in_source_order(chain.to), chain, result));
  plans.push_back(plan_with(in_source_order(runs), chain, result));
  return *std::min_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.cost < b.cost; });
}

}  // namespace

MovementChain MovementChain::above(Value* value) {
  std::vector<Node*> nodes;
  const bool empty = value->type.elements() == Expr(0);  // its sizes have no common factors
  for (Value* at = value; !empty && nodes.size() < kLongestChain && (producer(at, "reshape") || producer(at, "transpose"));
       at = at->producer->inputs[0])
    nodes.push_back(at->producer);
  std::reverse(nodes.begin(), nodes.end());
  MovementChain chain;
  chain.source = nodes.empty() ? value : nodes[0]->inputs[0];
  Factoring factoring(chain.source->type.shape);
  for (Node* node : nodes) {
    ++chain.length;
    if (is(node, "transpose")) {
      factoring.transpose(node->get<Ints>("perm"));
    } else if (!factoring.reshape(node->output()->type.shape)) {
      chain.source = node->output();
      chain.length = 0;
      factoring = Factoring(chain.source->type.shape);
    }
  }
  // Number the atoms in the source's order.
  Axis number(factoring.sizes.size());
  for (std::size_t i = 0; i < factoring.order.size(); ++i) {
    number[factoring.order[i]] = i;
    chain.atoms.push_back(factoring.sizes[factoring.order[i]]);
  }
  for (Axes* axes : {&factoring.from, &factoring.to}) {
    for (Axis& axis : *axes) {
      for (std::size_t& id : axis) id = number[id];
    }
  }
  chain.from = std::move(factoring.from);
  chain.to = std::move(factoring.to);
  return chain;
}

MovementChain MovementChain::at(Value* source) {
  MovementChain chain;
  Factoring factoring(source->type.shape);
  chain.source = source;
  chain.atoms = std::move(factoring.sizes);
  chain.from = std::move(factoring.from);
  chain.to = chain.from;
  return chain;
}

std::size_t MovementChain::cost() const { return best_plan(*this).cost; }

Value* MovementChain::build(Rewriter& rewrite) const {
  const Plan plan = best_plan(*this);
  return rewrite.reshape(rewrite.transpose(rewrite.reshape(source, plan.split), plan.perm), shape_of(to, atoms));
}

}  // namespace oclc
