#include "compiler/schedule/split_reduction.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/merged_kernel.h"
#include "compiler/ops/op_list.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::string_view kPart = "part";
// Neighbouring results that a group of a GPU reads together, vectors of them on a CPU, groups that keep a compute unit busy,
// terms that are worth a part, and how many more parts than wanted are too many.
constexpr std::int64_t kLineResults = 8, kLineVectors = 8, kBusyGroups = 4, kLeastTermsOfPart = 128, kMostSurplus = 8;
// Vectors of a row of results that a core sums up side by side where registers are many.
constexpr std::int64_t kStripVectors = 16;

// True if `node` needs the result of stage `first` or of a later one.
bool needs_stage(const Kernel& kernel, NodeId node, int first) {
  return any_needed(
      kernel, node, [&](const ScalarNode& n) { return n.kind == ScalarNode::Kind::reduced && n.stage >= first; },
      [](const ScalarNode&) { return false; });
}

// Stages that are computed side by side, as [first, end): none of them needs the result of another.
std::vector<std::pair<int, int>> stage_groups(const Kernel& kernel) {
  std::vector<std::pair<int, int>> groups;
  const int count = static_cast<int>(kernel.stages.size());
  for (int first = 0, stage = 0; stage < count; ++stage) {
    if (stage > first && needs_stage(kernel, kernel.stages[static_cast<std::size_t>(stage)].body, first)) first = stage;
    if (stage == first) groups.emplace_back(first, stage + 1);
    groups.back().second = stage + 1;
  }
  return groups;
}

// A sum of squares around a number that a sum of the same terms gives, as a variance is.
struct Centred {
  int sum = -1, squares = -1;  // stages
  NodeId centre = -1;          // of (term - centre)
};

bool varies_within(const Kernel& kernel, NodeId id, const std::set<std::string>& axes) {
  const auto uses = [&](const Expr& e) {
    const auto symbols = e.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const std::string& s) { return axes.count(s) != 0 || dynamic_index(s).has_value(); });
  };
  return any_needed(
      kernel, id, [&](const ScalarNode& n) { return uses(n.index) || std::any_of(n.guard.begin(), n.guard.end(), uses); },
      [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::reduced; });
}

std::optional<Centred> centred_squares(const Kernel& kernel, int stage, int sums) {
  const auto apply = [&](NodeId id, std::string_view op) -> const ScalarNode* {
    const ScalarNode& n = kernel.nodes[static_cast<std::size_t>(id)];
    return n.kind == ScalarNode::Kind::apply && n.op_name == op && n.dtype == DType::f32 ? &n : nullptr;
  };
  const ScalarNode* square = apply(kernel.stages[static_cast<std::size_t>(stage)].body, "mul");
  const ScalarNode* rest = square && square->args[0] == square->args[1] ? apply(square->args[0], "sub") : nullptr;
  if (!rest) return std::nullopt;
  std::set<std::string> axes;
  for (const Axis& axis : kernel.reduction) {
    if (!axis.extent.is_constant()) return std::nullopt;
    axes.insert(axis.name);
  }
  const std::vector<Expr> indices = indices_of(kernel);
  if (std::any_of(indices.begin(), indices.end(), reads_values)) return std::nullopt;
  for (int sum = 0; sum < sums; ++sum) {
    if (kernel.stages[static_cast<std::size_t>(sum)].body == rest->args[0] && !varies_within(kernel, rest->args[1], axes))
      return Centred{sum, stage, rest->args[1]};
  }
  return std::nullopt;
}

// All stages but those of the first group, if each is a sum of squares around what that group gives: one pass is enough then,
// since squares around the pieces' own means are merged (Chan, Golub and LeVeque 1979); the mean of four terms stands in for a
// mean.
std::vector<Centred> squares_in_one_pass(const Kernel& kernel) {
  const auto groups = stage_groups(kernel);
  std::vector<Centred> all;
  if (groups.size() != 2) return all;
  std::set<int> sums;
  for (int stage = groups[1].first; stage < groups[1].second; ++stage) {
    const auto found = centred_squares(kernel, stage, groups[0].second);
    if (!found || !sums.insert(found->sum).second) return {};
    all.push_back(*found);
  }
  return all;
}

Axis axis_of_pieces(std::int64_t parts) {
  const std::string name = "piece";
  return {name, Expr(parts), Expr::axis(name, Expr(parts))};
}

NodeId add_node(Kernel& kernel, ScalarNode node) {
  kernel.nodes.push_back(std::move(node));
  return static_cast<NodeId>(kernel.nodes.size()) - 1;
}

NodeId apply_node(Kernel& kernel, std::string_view name, std::vector<NodeId> args) {
  const OpDef& definition = op(name);
  ScalarNode node;
  node.kind = ScalarNode::Kind::apply;
  node.op = definition.scalar;
  node.op_name = definition.name;
  node.args = std::move(args);
  return add_node(kernel, std::move(node));
}

NodeId number_node(Kernel& kernel, double number) {
  ScalarNode node;
  node.number = number;
  return add_node(kernel, std::move(node));
}

// What `id` is where the axes have the values of `by`; `copies` has those that were made.
NodeId copy_at(Kernel& kernel, NodeId id, const Substitution& by, std::map<NodeId, NodeId>& copies) {
  if (const auto known = copies.find(id); known != copies.end()) return known->second;
  ScalarNode node = kernel.nodes[static_cast<std::size_t>(id)];
  node.index = node.index.substitute(by);
  for (Expr& e : node.guard) e = e.substitute(by);
  for (NodeId& a : node.args) a = copy_at(kernel, a, by, copies);
  return copies[id] = add_node(kernel, std::move(node));
}

// Makes a stage the sum over reduction axis `axis` of what `buffer` has, an operand of which the number is not known yet.
NodeId sum_up_pieces(Kernel& kernel, const Kernel& whole, int stage, int axis, const Split& split, int buffer) {
  Operand operand;
  operand.buffer = buffer;
  operand.name = "p" + std::to_string(stage);
  operand.value = "partial sums";
  ScalarNode load;
  load.kind = ScalarNode::Kind::load;
  load.index = place_of_part(whole, axis_of_pieces(split.parts).var);
  load.operand = static_cast<int>(kernel.operands.size());
  kernel.operands.push_back(std::move(operand));
  Stage& sum = kernel.stages[static_cast<std::size_t>(stage)];
  sum.axes = {axis};
  return sum.body = add_node(kernel, std::move(load));
}

// Drops what the kernel does not need; the stores without an operand write the partial sums.
void finish_operands(Kernel& kernel, const std::vector<int>& written) {
  std::vector<NodeId> needed;
  for (const Stage& stage : kernel.stages) needed.push_back(stage.body);
  for (const Store& store : kernel.stores) needed.push_back(store.value);
  keep_needed(kernel, std::move(needed));
  for (std::size_t i = 0; i < written.size(); ++i) {
    Operand operand;
    operand.buffer = written[i];
    operand.written = true;
    operand.name = "q" + std::to_string(i);
    operand.value = "partial sums";
    kernel.stores[i].operand = static_cast<int>(kernel.operands.size());
    kernel.operands.push_back(std::move(operand));
  }
  drop_unused_operands(kernel);
}

class SumCutter {
 public:
  SumCutter(Schedule& schedule, std::size_t index, const Split& split, std::vector<Step>& steps)
      : schedule_(schedule),
        whole_(schedule.kernels[index]),
        split_(split),
        steps_(steps),
        centred_(squares_in_one_pass(whole_)) {}

  Kernel run() {
    if (centred_.empty()) {
      for (const auto& [first, end] : stage_groups(whole_)) pieces(first, end);
    } else {
      pieces(0, static_cast<int>(whole_.stages.size()));
    }
    Kernel sums = whole_;
    sums.reduction = {axis_of_pieces(split_.parts)};
    std::vector<NodeId> loads;
    for (std::size_t stage = 0; stage < whole_.stages.size(); ++stage)
      loads.push_back(sum_up_pieces(sums, whole_, static_cast<int>(stage), 0, split_, buffers_[stage]));
    for (const Centred& c : centred_) {
      const NodeId n = number_node(sums, terms_of_piece());
      const NodeId mean = apply_node(sums, "div", {loads[static_cast<std::size_t>(c.sum)], n});
      const NodeId away = apply_node(sums, "sub", {mean, c.centre});
      const NodeId moved = apply_node(sums, "mul", {apply_node(sums, "mul", {away, away}), n});
      sums.stages[static_cast<std::size_t>(c.squares)].body =
          apply_node(sums, "add", {loads[static_cast<std::size_t>(c.squares)], moved});
    }
    finish_operands(sums, {});
    const Expr count(static_cast<std::int64_t>(buffers_.size()));
    sums.flops = points_of(whole_) * Expr(split_.parts) * count;
    sums.bytes = points_of(whole_) * Expr(4 * (split_.parts + 1)) * count;
    return sums;
  }

 private:
  double terms_of_piece() const {
    double terms = 1;
    for (const Axis& axis : whole_.reduction) terms *= static_cast<double>(axis.extent.value());
    return terms / static_cast<double>(split_.parts);
  }

  // The kernel of partial sums of stages [first, end), with the sums of the pieces of the stages before it.
  void pieces(int first, int end) {
    std::vector<int> written;
    for (int stage = first; stage < end; ++stage) {
      written.push_back(add_parts_buffer(schedule_, whole_, split_.parts));
      schedule_.buffers.back().name += std::to_string(stage);
    }
    Kernel kernel = whole_;
    kernel.name += first == 0 ? "_parts" : "_parts" + std::to_string(first);
    kernel.formula = "partial sums of " + whole_.formula;
    const auto by = cut_axis(kernel, split_);
    for (ScalarNode& node : kernel.nodes) {
      node.index = node.index.substitute(by);
      for (Expr& e : node.guard) e = e.substitute(by);
    }
    kernel.stages.resize(static_cast<std::size_t>(end));
    const int axis = static_cast<int>(kernel.reduction.size());
    if (first > 0) kernel.reduction.push_back(axis_of_pieces(split_.parts));
    for (int stage = 0; stage < first; ++stage)
      sum_up_pieces(kernel, whole_, stage, axis, split_, buffers_[static_cast<std::size_t>(stage)]);
    const Axis part = axis_of_parts(split_.parts);
    kernel.stores.clear();
    for (int stage = first; stage < end; ++stage) {
      Store store;
      store.index = place_of_part(whole_, part.var);
      ScalarNode result;
      result.kind = ScalarNode::Kind::reduced;
      result.stage = stage;
      store.value = add_node(kernel, std::move(result));
      kernel.stores.push_back(std::move(store));
    }
    for (const Centred& c : centred_) around_four_terms(kernel, c);
    kernel.axes.insert(kernel.axes.begin(), part);
    finish_operands(kernel, written);
    steps_.push_back({KernelStep{static_cast<int>(schedule_.kernels.size())}});
    schedule_.kernels.push_back(std::move(kernel));
    buffers_.insert(buffers_.end(), written.begin(), written.end());
  }

  // The mean of four terms, evenly apart. Of equal terms it is exact.
  static NodeId mean_of_four(Kernel& kernel, NodeId term) {
    std::vector<NodeId> four;
    for (int i = 0; i < 4; ++i) {
      Substitution at;
      for (const Axis& axis : kernel.reduction) at.emplace(axis.name, Expr(i * axis.extent.value() / 4));
      std::map<NodeId, NodeId> copies;
      four.push_back(copy_at(kernel, term, at, copies));
    }
    const NodeId left = apply_node(kernel, "add", {four[0], four[1]}), right = apply_node(kernel, "add", {four[2], four[3]});
    return apply_node(kernel, "mul", {apply_node(kernel, "add", {left, right}), number_node(kernel, 0.25)});
  }

  // A piece's sum and the squares around its mean, from sums of both around the mean of four terms.
  void around_four_terms(Kernel& kernel, const Centred& c) const {
    Stage &sum = kernel.stages[static_cast<std::size_t>(c.sum)], &squares = kernel.stages[static_cast<std::size_t>(c.squares)];
    const NodeId centre = mean_of_four(kernel, sum.body), rest = apply_node(kernel, "sub", {sum.body, centre});
    sum.body = rest;
    squares.body = apply_node(kernel, "mul", {rest, rest});
    Store &its_sum = kernel.stores[static_cast<std::size_t>(c.sum)],
          &its_squares = kernel.stores[static_cast<std::size_t>(c.squares)];
    const NodeId n = number_node(kernel, terms_of_piece()), s = its_sum.value;
    const NodeId cancelled = apply_node(kernel, "mul", {s, apply_node(kernel, "div", {s, n})});
    const NodeId squared = apply_node(kernel, "sub", {its_squares.value, cancelled});
    its_sum.value = apply_node(kernel, "add", {s, apply_node(kernel, "mul", {centre, n})});
    its_squares.value = apply_node(kernel, "max", {squared, number_node(kernel, 0)});
  }

  Schedule& schedule_;
  const Kernel whole_;
  const Split& split_;
  std::vector<Step>& steps_;
  const std::vector<Centred> centred_;
  std::vector<int> buffers_;  // of the pieces of each stage
};

// Cuts the parts of a split into the fewest parts of another axis that are enough, or else the most.
void cut_further(const Kernel& kernel, std::int64_t wanted, Split& split) {
  const std::int64_t outer = split.parts;
  for (std::size_t r = 0; r < kernel.reduction.size(); ++r) {
    const auto extent = kernel.reduction[r].extent.constant();
    if (static_cast<int>(r) == split.reduction || !extent || *extent < 2) continue;
    for (const std::int64_t parts : divisors(*extent)) {
      if (split.parts >= wanted) break;
      if (outer * parts <= split.parts) continue;
      split = {split.reduction, outer * parts, static_cast<int>(r), parts};
    }
  }
}

}  // namespace

std::optional<Split> best_cut(const Kernel& kernel, const Target& target) {
  if (kernel.contraction || kernel.stages.empty() || kernel.axes.empty()) return std::nullopt;
  std::vector<int> all(kernel.reduction.size());
  std::iota(all.begin(), all.end(), 0);
  for (const Stage& stage : kernel.stages) {
    std::vector<int> axes = stage.axes;
    std::sort(axes.begin(), axes.end());
    if (stage.combine != Stage::Combine::sum || stage.accumulator != DType::f32 || stage.arg_index >= 0 || axes != all)
      return std::nullopt;
  }
  if (std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const Store& store) { return !store.row_axes.empty(); }))
    return std::nullopt;
  const std::int64_t results = typical_extent(points_of(kernel)), units = std::max(1, target.compute_units);
  std::int64_t terms = 1;
  for (const Axis& axis : kernel.reduction) terms *= typical_extent(axis.extent);
  const std::string& last = kernel.axes.back().name;
  if (std::none_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
        return n.kind == ScalarNode::Kind::load && n.index.coefficient(last) == Expr(1);
      }))
    return std::nullopt;
  const bool by_cores = target.items_are_cores();
  const std::int64_t line = by_cores ? kLineVectors * target.vector_width : kLineResults;
  const auto passes = static_cast<double>(stage_groups(kernel).size());
  const double launches = squares_in_one_pass(kernel).empty() ? passes : 1;
  const double pass = static_cast<double>(typical_extent(kernel.bytes)) / target.bytes_per_second;
  const double together = static_cast<double>(std::clamp<std::int64_t>(results / units, 1, line));
  const double busy = std::min(1.0, static_cast<double>(results) / together / static_cast<double>(kBusyGroups * units));
  // Parts of few terms are read by whole rows: what is beside a strip of them waits in the second-level cache.
  const bool by_rows = by_cores && target.has.tall_tiles && typical_extent(kernel.axes.back().extent) == results &&
                       results > kStripVectors * target.vector_width;
  const double whole = passes * pass * (by_rows ? cost::kColumnReadCost : 1) / (busy * together / static_cast<double>(line));
  if (launches * (pass + target.launch_seconds) >= whole * cost::kSplitGain) return std::nullopt;
  const std::int64_t most = std::max<std::int64_t>(1, terms / kLeastTermsOfPart),
                     wanted = by_rows ? most : std::min(ceil_div(kBusyGroups * line * units, results), most);
  std::optional<Split> best;
  for (std::size_t r = 0; r < kernel.reduction.size(); ++r) {
    const auto extent = kernel.reduction[r].extent.constant();
    if (!extent || *extent < 2) continue;
    for (const std::int64_t parts : divisors(*extent)) {
      if (parts == 1) continue;
      // The fewest parts that are enough, or else the most.
      if (!best || (best->parts < wanted ? parts > best->parts : parts >= wanted && parts < best->parts))
        best = Split{static_cast<int>(r), parts};
      if (parts >= wanted) break;
    }
  }
  if (best && best->parts < wanted) cut_further(kernel, wanted, *best);
  if (best && best->parts > wanted * kMostSurplus) return std::nullopt;
  return best;
}

void split_reductions(Schedule& schedule, std::size_t index, const Split& split, std::vector<Step>& steps) {
  Kernel sums = SumCutter(schedule, index, split, steps).run();
  schedule.kernels[index] = std::move(sums);
}

Axis axis_of_parts(std::int64_t parts) {
  return {std::string(kPart), Expr(parts), Expr::axis(std::string(kPart), Expr(parts))};
}

Substitution cut_axis(Kernel& kernel, const Split& split) {
  Substitution by;
  const auto shorten = [&](int index, std::int64_t parts, const Expr& part) {
    Axis& axis = kernel.reduction[static_cast<std::size_t>(index)];
    const Expr terms(axis.extent.value() / parts);
    const std::string old_name = axis.name;
    axis.name += "_of_part";
    axis.extent = terms;
    axis.var = terms == Expr(1) ? Expr(0) : Expr::axis(axis.name, terms);
    by.emplace(old_name, part * terms + axis.var);
  };
  const Expr part = axis_of_parts(split.parts).var, inner(split.inner_parts);
  shorten(split.reduction, split.parts / split.inner_parts, floor_div(part, inner));
  if (split.inner >= 0) shorten(split.inner, split.inner_parts, floor_mod(part, inner));
  return by;
}

Expr points_of(const Kernel& kernel) {
  Expr n(1);
  for (const Axis& axis : kernel.axes) n *= axis.extent;
  return n;
}

Expr place_of_part(const Kernel& whole, const Expr& part) {
  Expr at = part;
  for (const Axis& axis : whole.axes) at = at * axis.extent + axis.var;
  return at;
}

int add_parts_buffer(Schedule& schedule, const Kernel& kernel, std::int64_t parts) {
  Buffer buffer;
  buffer.name = kernel.name + ".parts";
  buffer.elements = points_of(kernel) * Expr(parts);
  schedule.buffers.push_back(std::move(buffer));
  return static_cast<int>(schedule.buffers.size()) - 1;
}

}  // namespace oclc
