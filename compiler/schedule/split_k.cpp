#include "compiler/schedule/split_k.h"

#include <algorithm>
#include <optional>

#include "compiler/contraction/gpu/sm90a_tiles.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/schedule/small_gemm.h"
#include "compiler/schedule/split_reduction.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Chunks of the innermost axis stay whole steps of a tile.
constexpr std::int64_t kInnerChunk = 32;
constexpr std::int64_t kMostParts = 64;
// Taps along an axis that only weight gradients have, whose window is an image; the most parts of both of its axes, and of the
// time what such parts have to save: a tenth.
constexpr std::int64_t kLongWindow = 24, kMostPartsOfWindow = 512;
// Of long sums of few results, as weight gradients of narrow layers are: parts of so many terms, since many groups hide what
// each waits for, which estimates do not know.
constexpr std::int64_t kLongSum = 8192, kFewResults = 8192, kFewestRows = 16, kTermsOfLongPart = 512;

class Splitter {
 public:
  Splitter(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& steps) {
    std::vector<Step> all;
    for (Step& step : steps) {
      if (step.is_kernel()) {
        const auto index = static_cast<std::size_t>(step.kernel());
        if (!target_.has_group_templates()) {
          if (const auto elements = best_cut(schedule_.kernels[index], target_))
            split_reductions(schedule_, index, *elements, all);
        } else if (is_one_row(schedule_.kernels[index])) {
          sum_by_groups(schedule_.kernels[index]);
        } else if (const Cut cut = best_cut_of_product(schedule_.kernels[index]); cut.shares > 1) {
          schedule_.kernels[index].contraction->shares = cut.shares;
        } else if (const auto& split = cut.split) {
          const auto parts = static_cast<int>(schedule_.kernels.size());
          const int buffer = add_parts_buffer(schedule_, schedule_.kernels[index], split->parts);
          schedule_.kernels.push_back(partial_sums(schedule_.kernels[index], *split, buffer));
          schedule_.kernels[index] = sum_of_parts(schedule_.kernels[index], split->parts, buffer);
          all.push_back({KernelStep{parts}});
        } else if (const auto elements = best_cut(schedule_.kernels[index], target_)) {
          split_reductions(schedule_, index, *elements, all);
        }
      }
      all.push_back(std::move(step));
    }
    steps = std::move(all);
  }

 private:
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

  // Parts in launches of their own, or shares in one launch; or neither.
  struct Cut {
    std::optional<Split> split;
    std::int64_t shares = 1;
  };

  Cut best_cut_of_product(const Kernel& kernel) const {
    if (!kernel.contraction || kernel.stages.size() != 1 || kernel.stages[0].accumulator != DType::f32 ||
        kernel.stages[0].combine != Stage::Combine::sum || kernel.contraction->n.size() != 1 ||
        small_gemm_tiles(kernel, target_))
      return {};
    const Contraction& c = *kernel.contraction;
    bool is_known = true;
    for (const auto* list : {&kernel.axes, &kernel.reduction})
      for (const Axis& axis : *list) is_known = is_known && axis.extent.is_constant();
    const bool packed = target_.precision.rounds_operands() && will_be_packed(kernel);
    const GpuProduct product = product_of_sizes(!is_known, [&](std::int64_t dim) {
      const auto extent = [&](const std::vector<int>& axes) {
        std::int64_t n = 1;
        for (const int i : axes) n *= extent_at(kernel.axes[static_cast<std::size_t>(i)].extent, dim);
        return n;
      };
      GpuProduct p{extent(c.batch), extent(c.m), extent(c.n), 1, packed};
      for (const Axis& axis : kernel.reduction) p.depth *= extent_at(axis.extent, dim);
      return p;
    });
    const double whole = best_gpu_seconds(product, target_);
    const auto seconds_to_move = [&](const GpuProduct& part, std::int64_t parts) {
      return static_cast<double>((2 * parts + 1) * (part.groups / parts) * part.rows * part.columns * 4) /
             target_.bytes_per_second;
    };
    std::optional<Split> best;
    double least = whole * (product.is_packed ? cost::kSplitPackedGain : cost::kSplitGain);
    const auto consider = [&](const Split& split, double worthwhile) {
      const std::int64_t parts = split.parts;
      const GpuProduct part = product.shared_by(parts);
      const double seconds = best_gpu_seconds(
          part, target_, [&](const GpuProduct& p) { return target_.launch_seconds + seconds_to_move(p, parts); });
      if (seconds >= least * worthwhile) return;
      least = seconds;
      best = split;
    };
    for (std::size_t r = 0; r < kernel.reduction.size(); ++r) {
      const auto terms = kernel.reduction[r].extent.constant();
      if (!terms) continue;
      const bool inner = static_cast<int>(r) == c.k.back();
      for (std::int64_t parts = 2; parts <= std::min(*terms, kMostParts); ++parts) {
        if (*terms % parts == 0 && !(inner && *terms / parts % kInnerChunk != 0)) consider({static_cast<int>(r), parts}, 1);
      }
    }
    for_lines_of_windows(kernel, [&](const Split& split) { consider(split, cost::kSplitWindowGain); });
    if (kernel.reduction.size() == 1 && is_known && is_long_and_narrow(product)) {
      const std::int64_t parts = parts_of_long_sum(product.depth);
      if (parts > (best ? best->parts : 1)) best = Split{0, parts};
    }
    const Expr inner = kernel.reduction[static_cast<std::size_t>(c.k.back())].extent;
    const bool is_flat = kernel.reduction.size() > 1 && floor_mod(inner, Expr(kInnerChunk)) != Expr(0);
    if (!product.is_packed || !is_known || is_flat) return {best};
    std::int64_t shares = 1;
    for (std::int64_t s = 2; s <= std::min(ceil_div(product.depth, kInnerChunk), kMostParts); ++s) {
      const GpuProduct shared = product.shared_by(s);
      const auto tiles = choose_sm90a_tiles(shared, choose_gpu_tiles(shared, target_), target_);
      if (!tiles) continue;
      const double seconds = sm90a_seconds(shared, *tiles, target_) + cost::kHandOverSeconds + seconds_to_move(shared, s);
      if (seconds >= least) continue;
      least = seconds;
      shares = s;
    }
    return shares > 1 ? Cut{std::nullopt, shares} : Cut{best};
  }

  // Cuts of both axes of a window that is an image: each of its lines is so many parts.
  template <class Consider>
  static void for_lines_of_windows(const Kernel& kernel, const Consider& consider) {
    const auto& axes = kernel.reduction;
    if (axes.size() != 3) return;
    const auto lines = axes[0].extent.constant(), columns = axes[1].extent.constant();
    if (!lines || !columns || *lines < kLongWindow) return;
    for (std::int64_t parts = 2; parts <= *columns && *lines * parts <= kMostPartsOfWindow; ++parts) {
      if (*columns % parts == 0) consider({0, *lines * parts, 1, parts});
    }
  }

  bool is_long_and_narrow(const GpuProduct& p) const {
    return target_.multiplies_groups() && p.groups == 1 && p.depth >= kLongSum && std::min(p.rows, p.columns) >= kFewestRows &&
           p.rows * p.columns <= kFewResults;
  }

  // The fewest parts that are short enough; 1 if none is of whole steps.
  static std::int64_t parts_of_long_sum(std::int64_t terms) {
    for (std::int64_t part = kTermsOfLongPart / kInnerChunk * kInnerChunk; part > 0; part -= kInnerChunk) {
      if (terms % part == 0) return terms / part;
    }
    return 1;
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

  static Kernel partial_sums(const Kernel& whole, const Split& split, int buffer) {
    Kernel kernel = whole;
    kernel.name += "_parts";
    kernel.formula = "partial sums of " + whole.formula;
    const Axis part = axis_of_parts(split.parts);
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
    store.index = place_of_part(whole, part.var);
    store.value = sum;
    kernel.stores.push_back(std::move(store));
    kernel.axes.insert(kernel.axes.begin(), part);
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
    const Axis part = axis_of_parts(parts);
    kernel.reduction = {part};
    Stage& stage = kernel.stages[0];
    stage.axes = {0};
    ScalarNode load;
    load.kind = ScalarNode::Kind::load;
    load.index = place_of_part(whole, part.var);
    load.operand = 0;
    std::vector<NodeId> needed{stage.body};
    for (const Store& store : kernel.stores) needed.push_back(store.value);
    kernel.nodes[static_cast<std::size_t>(stage.body)] = ScalarNode{};
    keep_needed(kernel, needed);
    const int operand = add_operand(kernel, buffer, false);
    load.operand = operand;
    kernel.nodes[static_cast<std::size_t>(stage.body)] = std::move(load);
    kernel.flops = points_of(whole) * Expr(parts);
    kernel.bytes = points_of(whole) * Expr(4 * (parts + 1));
    return kernel;
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

void split_k(Schedule& schedule, const ScheduleContext& context) {
  Splitter splitter(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) splitter.run(entry.steps);
}

}  // namespace oclc
