#include "compiler/kernels/split_sums.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/short_products.h"
#include "compiler/kernels/sm90a_tiles.h"

namespace oclc {
namespace {

// Chunks of the innermost axis stay whole steps of a tile.
constexpr std::int64_t kInnerChunk = 32;
constexpr std::int64_t kMostParts = 64;
constexpr std::string_view kPart = "part";
// Estimates are rough: parts have to save a fifth.
constexpr double kWorthwhile = 0.8, kWorthwhileOfPacked = 0.9;
// Of reductions: neighbouring results that a group reads together, groups that keep a compute unit busy, terms that are worth a
// part, and how many more parts than wanted are too many.
constexpr std::int64_t kLineResults = 8, kBusyGroups = 4, kLeastTermsOfPart = 128, kMostSurplus = 8;

struct Split {
  int reduction = -1;  // index into Kernel::reduction
  std::int64_t parts = 1;
};

class Splitter {
 public:
  Splitter(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& steps) {
    std::vector<Step> all;
    for (Step& step : steps) {
      if (step.kernel >= 0) {
        const auto index = static_cast<std::size_t>(step.kernel);
        if (is_one_row(schedule_.kernels[index])) {
          sum_by_groups(schedule_.kernels[index]);
        } else if (const auto split = best_split(schedule_.kernels[index])) {
          Step parts;
          parts.kernel = static_cast<int>(schedule_.kernels.size());
          const int buffer = add_buffer(schedule_.kernels[index], split->parts);
          schedule_.kernels.push_back(partial_sums(schedule_.kernels[index], *split, buffer));
          schedule_.kernels[index] = sum_of_parts(schedule_.kernels[index], split->parts, buffer);
          all.push_back(std::move(parts));
        } else if (const auto cut = best_cut(schedule_.kernels[index])) {
          cut_reduction(index, *cut, all);
        }
      }
      all.push_back(std::move(step));
    }
    steps = std::move(all);
  }

 private:
  static Expr points(const Kernel& kernel) {
    Expr n(1);
    for (const Axis& axis : kernel.axes) n *= axis.extent;
    return n;
  }

  // A product with one row reads each element of its right operand once: it is as fast as memory, as a reduction is.
  static bool is_one_row(const Kernel& kernel) {
    if (!kernel.contraction || kernel.stages.size() != 1 || kernel.stages[0].accumulator != DType::f32) return false;
    const auto& rows = kernel.contraction->m;
    return std::all_of(rows.begin(), rows.end(),
                       [&](int i) { return kernel.axes[static_cast<std::size_t>(i)].extent == Expr(1); });
  }

  static void sum_by_groups(Kernel& kernel) {
    kernel.anchor = Anchor::reduce;
    kernel.contraction.reset();
  }

  // A constant right operand, and a left one that is copied as it lies. TF32's estimates know such products; single precision's
  // are right without.
  bool will_be_packed(const Kernel& kernel) const {
    const Contraction& c = *kernel.contraction;
    const ScalarNode &a = kernel.nodes[static_cast<std::size_t>(c.a)], &b = kernel.nodes[static_cast<std::size_t>(c.b)];
    if (a.kind != ScalarNode::Kind::load || b.kind != ScalarNode::Kind::load) return false;
    const auto buffer_of = [&](const ScalarNode& n) {
      return &schedule_.buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(n.operand)].buffer)];
    };
    return buffer_of(b)->kind == BufferKind::constant && buffer_of(b)->dtype == DType::f32 &&
           buffer_of(a)->dtype == DType::f32 &&
           a.index.coefficient(kernel.reduction[static_cast<std::size_t>(c.k.back())].name) == Expr(1);
  }

  std::optional<Split> best_split(const Kernel& kernel) const {
    if (!kernel.contraction || kernel.stages.size() != 1 || kernel.stages[0].accumulator != DType::f32 ||
        kernel.stages[0].combine != Stage::Combine::sum || kernel.contraction->n.size() != 1 ||
        short_product_tiles(kernel, target_))
      return std::nullopt;
    const Contraction& c = *kernel.contraction;
    GpuProduct product;
    const auto extent = [&](const std::vector<int>& axes) {
      std::int64_t n = 1;
      for (const int i : axes) n *= typical_extent(kernel.axes[static_cast<std::size_t>(i)].extent);
      return n;
    };
    product.groups = extent(c.batch);
    product.rows = extent(c.m);
    product.columns = extent(c.n);
    for (const Axis& axis : kernel.reduction) product.depth *= typical_extent(axis.extent);
    product.is_packed = target_.products == Products::rounded && will_be_packed(kernel);
    const double whole = best_gpu_seconds(product, target_);
    std::optional<Split> best;
    double least = whole * (product.is_packed ? kWorthwhileOfPacked : kWorthwhile);
    for (std::size_t r = 0; r < kernel.reduction.size(); ++r) {
      const auto terms = kernel.reduction[r].extent.constant();
      if (!terms) continue;
      const bool inner = static_cast<int>(r) == c.k.back();
      for (std::int64_t parts = 2; parts <= std::min(*terms, kMostParts); ++parts) {
        if (*terms % parts != 0 || (inner && *terms / parts % kInnerChunk != 0)) continue;
        GpuProduct part = product;
        part.groups *= parts;
        part.depth = product.depth / parts;
        const double moved = static_cast<double>((2 * parts + 1) * product.groups * product.rows * product.columns * 4);
        const double seconds = best_gpu_seconds(part, target_) + target_.launch_seconds + moved / target_.bytes_per_second;
        if (seconds >= least) continue;
        least = seconds;
        best = Split{static_cast<int>(r), parts};
      }
    }
    return best;
  }

  // A reduction with few results, whose groups are too few or read too little of each line of memory.
  std::optional<Split> best_cut(const Kernel& kernel) const {
    if (kernel.contraction || kernel.stages.empty() || kernel.axes.empty()) return std::nullopt;
    std::vector<int> all(kernel.reduction.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    for (const Stage& stage : kernel.stages) {
      std::vector<int> axes = stage.axes;
      std::sort(axes.begin(), axes.end());
      if (stage.combine != Stage::Combine::sum || stage.accumulator != DType::f32 || stage.arg_index >= 0 || axes != all)
        return std::nullopt;
    }
    if (std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const Store& store) { return !store.row_axes.empty(); }))
      return std::nullopt;
    const std::int64_t results = typical_extent(points(kernel)), units = std::max(1, target_.compute_units);
    std::int64_t terms = 1;
    for (const Axis& axis : kernel.reduction) terms *= typical_extent(axis.extent);
    const std::string& last = kernel.axes.back().name;
    if (std::none_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
          return n.kind == ScalarNode::Kind::load && n.index.coefficient(last) == Expr(1);
        }))
      return std::nullopt;
    const auto launches = static_cast<double>(stage_groups(kernel).size());
    const double seconds = launches * static_cast<double>(typical_extent(kernel.bytes)) / target_.bytes_per_second;
    const double together = static_cast<double>(std::clamp<std::int64_t>(results / units, 1, kLineResults));
    const double busy = std::min(1.0, static_cast<double>(results) / together / static_cast<double>(kBusyGroups * units));
    const double whole = seconds / (busy * together / kLineResults);
    if (seconds + launches * target_.launch_seconds >= whole * kWorthwhile) return std::nullopt;
    const std::int64_t wanted =
        std::min(ceil_div(kBusyGroups * kLineResults * units, results), std::max<std::int64_t>(1, terms / kLeastTermsOfPart));
    std::optional<Split> best;
    for (std::size_t r = 0; r < kernel.reduction.size(); ++r) {
      const auto extent = kernel.reduction[r].extent.constant();
      for (std::int64_t parts = 2; extent && parts <= *extent; ++parts) {
        if (*extent % parts != 0) continue;
        // The fewest parts that are enough, or else the most.
        if (!best || (best->parts < wanted ? parts > best->parts : parts >= wanted && parts < best->parts))
          best = Split{static_cast<int>(r), parts};
        if (parts >= wanted) break;
      }
    }
    if (best && best->parts > wanted * kMostSurplus) return std::nullopt;
    return best;
  }

  // Stages that are computed side by side, as [first, end): none of them needs the result of another.
  static std::vector<std::pair<int, int>> stage_groups(const Kernel& kernel) {
    std::vector<std::pair<int, int>> groups;
    const int count = static_cast<int>(kernel.stages.size());
    for (int first = 0, stage = 0; stage < count; ++stage) {
      if (stage == first || !needs_stage(kernel, kernel.stages[static_cast<std::size_t>(stage)].body, first)) {
        if (stage == first) groups.emplace_back(first, stage + 1);
        groups.back().second = stage + 1;
      } else {
        first = stage;
        groups.emplace_back(first, stage + 1);
      }
    }
    return groups;
  }

  // True if `node` needs the result of stage `first` or of a later one.
  static bool needs_stage(const Kernel& kernel, NodeId node, int first) {
    const ScalarNode& n = kernel.nodes[static_cast<std::size_t>(node)];
    return (n.kind == ScalarNode::Kind::reduced && n.stage >= first) ||
           std::any_of(n.args.begin(), n.args.end(), [&](NodeId a) { return needs_stage(kernel, a, first); });
  }

  // Each group of stages becomes a kernel of partial sums, with the sums of the parts of the stages before it; the last kernel
  // has those of all stages.
  void cut_reduction(std::size_t index, const Split& split, std::vector<Step>& steps) {
    const Kernel whole = schedule_.kernels[index];
    std::vector<int> buffers;
    for (const auto& [first, end] : stage_groups(whole)) {
      std::vector<int> written;
      for (int stage = first; stage < end; ++stage) {
        written.push_back(add_buffer(whole, split.parts));
        schedule_.buffers.back().name += std::to_string(stage);
      }
      Kernel kernel = whole;
      kernel.name += first == 0 ? "_parts" : "_parts" + std::to_string(first);
      kernel.formula = "partial sums of " + whole.formula;
      const auto by = cut_axis(kernel, split);
      for (ScalarNode& node : kernel.nodes) {
        node.index = node.index.substitute(by);
        for (Expr& e : node.guard) e = e.substitute(by);
      }
      kernel.stages.resize(static_cast<std::size_t>(end));
      const int parts_axis = static_cast<int>(kernel.reduction.size());
      std::vector<NodeId> needed;
      if (first > 0) kernel.reduction.push_back(parts_axis_of(split));
      for (int stage = 0; stage < first; ++stage)
        sum_up_parts(kernel, whole, stage, parts_axis, split, buffers[static_cast<std::size_t>(stage)], needed);
      kernel.stores.clear();
      for (int stage = first; stage < end; ++stage) {
        needed.push_back(kernel.stages[static_cast<std::size_t>(stage)].body);
        Store store;
        store.index = place(whole, Expr::axis(std::string(kPart), Expr(split.parts)));
        store.value = static_cast<NodeId>(kernel.nodes.size());
        ScalarNode sum;
        sum.kind = ScalarNode::Kind::reduced;
        sum.stage = stage;
        kernel.nodes.push_back(sum);
        needed.push_back(store.value);
        kernel.stores.push_back(std::move(store));
      }
      const Expr part = Expr::axis(std::string(kPart), Expr(split.parts));
      kernel.axes.insert(kernel.axes.begin(), Axis{std::string(kPart), Expr(split.parts), part});
      finish_operands(kernel, needed, written);
      Step step;
      step.kernel = static_cast<int>(schedule_.kernels.size());
      schedule_.kernels.push_back(std::move(kernel));
      steps.push_back(std::move(step));
      buffers.insert(buffers.end(), written.begin(), written.end());
    }
    Kernel sums = whole;
    sums.reduction = {parts_axis_of(split)};
    std::vector<NodeId> needed;
    for (const Store& store : sums.stores) needed.push_back(store.value);
    for (std::size_t stage = 0; stage < whole.stages.size(); ++stage)
      sum_up_parts(sums, whole, static_cast<int>(stage), 0, split, buffers[stage], needed);
    finish_operands(sums, needed, {});
    sums.flops = points(whole) * Expr(split.parts * static_cast<std::int64_t>(buffers.size()));
    sums.bytes = points(whole) * Expr(4 * (split.parts + 1) * static_cast<std::int64_t>(buffers.size()));
    schedule_.kernels[index] = std::move(sums);
  }

  // Gives the axis that is cut its shorter extent, and returns what its variable becomes.
  static std::map<std::string, Expr, std::less<>> cut_axis(Kernel& kernel, const Split& split) {
    Axis& axis = kernel.reduction[static_cast<std::size_t>(split.reduction)];
    const Expr terms(axis.extent.value() / split.parts), part = Expr::axis(std::string(kPart), Expr(split.parts));
    const std::string old_name = axis.name;
    axis.name += "_of_part";
    axis.extent = terms;
    axis.var = terms == Expr(1) ? Expr(0) : Expr::axis(axis.name, terms);
    return {{old_name, part * terms + axis.var}};
  }

  static Axis parts_axis_of(const Split& split) {
    const std::string name = "piece";
    return {name, Expr(split.parts), Expr::axis(name, Expr(split.parts))};
  }

  // Makes a stage the sum over reduction axis `axis` of what `buffer` has, an operand of which the number is not known yet.
  static void sum_up_parts(Kernel& kernel, const Kernel& whole, int stage, int axis, const Split& split, int buffer,
                           std::vector<NodeId>& needed) {
    Operand operand;
    operand.buffer = buffer;
    operand.name = "p" + std::to_string(stage);
    operand.value = "partial sums";
    ScalarNode load;
    load.kind = ScalarNode::Kind::load;
    load.index = place(whole, parts_axis_of(split).var);
    load.operand = static_cast<int>(kernel.operands.size());
    kernel.operands.push_back(std::move(operand));
    Stage& sum = kernel.stages[static_cast<std::size_t>(stage)];
    sum.axes = {axis};
    sum.body = static_cast<NodeId>(kernel.nodes.size());
    kernel.nodes.push_back(std::move(load));
    needed.push_back(sum.body);
  }

  // Drops what the kernel does not need; the stores without an operand write the partial sums.
  static void finish_operands(Kernel& kernel, std::vector<NodeId> needed, const std::vector<int>& written) {
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

  int add_buffer(const Kernel& kernel, std::int64_t parts) {
    Buffer buffer;
    buffer.name = kernel.name + ".parts";
    buffer.elements = points(kernel) * Expr(parts);
    schedule_.buffers.push_back(std::move(buffer));
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  // The operand of the partial sums, after those that the kernel still uses.
  static int add_operand(Kernel& kernel, int buffer, bool written) {
    drop_unused_operands(kernel);
    Operand parts;
    parts.buffer = buffer;
    parts.written = written;
    parts.name = "p0";
    parts.value = "partial sums";
    kernel.operands.push_back(std::move(parts));
    return static_cast<int>(kernel.operands.size()) - 1;
  }

  // Element of the partial sums: [part][axes...].
  static Expr place(const Kernel& whole, const Expr& part) {
    Expr at = part;
    for (const Axis& axis : whole.axes) at = at * axis.extent + axis.var;
    return at;
  }

  static Kernel partial_sums(const Kernel& whole, const Split& split, int buffer) {
    Kernel kernel = whole;
    kernel.name += "_parts";
    kernel.formula = "partial sums of " + whole.formula;
    const Expr part = Expr::axis(std::string(kPart), Expr(split.parts));
    const auto by = cut_axis(kernel, split);
    NodeId sum = -1;
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
      ScalarNode& node = kernel.nodes[i];
      node.index = node.index.substitute(by);
      for (Expr& e : node.guard) e = e.substitute(by);
      if (node.kind == ScalarNode::Kind::reduced) sum = static_cast<NodeId>(i);
    }
    keep_needed(kernel, {sum, kernel.stages[0].body});
    kernel.stores.clear();
    const int operand = add_operand(kernel, buffer, true);
    Store store;
    store.operand = operand;
    store.index = place(whole, part);
    store.value = sum;
    kernel.stores.push_back(std::move(store));
    kernel.axes.insert(kernel.axes.begin(), Axis{std::string(kPart), Expr(split.parts), part});
    Contraction& c = *kernel.contraction;
    for (auto* list : {&c.batch, &c.m, &c.n}) {
      for (int& i : *list) ++i;
    }
    c.batch.insert(c.batch.begin(), 0);
    return kernel;
  }

  static Kernel sum_of_parts(const Kernel& whole, std::int64_t parts, int buffer) {
    Kernel kernel = whole;
    kernel.anchor = Anchor::reduce;
    kernel.contraction.reset();
    const Expr part = Expr::axis(std::string(kPart), Expr(parts));
    kernel.reduction = {Axis{std::string(kPart), Expr(parts), part}};
    Stage& stage = kernel.stages[0];
    stage.axes = {0};
    ScalarNode load;
    load.kind = ScalarNode::Kind::load;
    load.index = place(whole, part);
    load.operand = 0;
    std::vector<NodeId> needed{stage.body};
    for (const Store& store : kernel.stores) needed.push_back(store.value);
    kernel.nodes[static_cast<std::size_t>(stage.body)] = ScalarNode{};
    keep_needed(kernel, needed);
    const int operand = add_operand(kernel, buffer, false);
    load.operand = operand;
    kernel.nodes[static_cast<std::size_t>(stage.body)] = std::move(load);
    kernel.flops = points(whole) * Expr(parts);
    kernel.bytes = points(whole) * Expr(4 * (parts + 1));
    return kernel;
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

void split_sums(Schedule& schedule, const Target& target) {
  if (target.device_class != DeviceClass::gpu || target.loop_iterations != Target::kNoLimit) return;
  Splitter splitter(schedule, target);
  for (EntrySchedule& entry : schedule.entries) splitter.run(entry.steps);
}

}  // namespace oclc
