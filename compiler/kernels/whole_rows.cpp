#include "compiler/kernels/whole_rows.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/cut_sums.h"

namespace oclc {
namespace {

// Bytes of all rows that are worth it; sums that stay in the first caches while rows pass.
constexpr double kFewestBytes = 512 << 10;
constexpr std::int64_t kMostSumsBytes = 64 << 10, kFewestColumns = 8;
constexpr std::size_t kMostNodes = 40;
// Ranges of rows for each core, the fewest rows of one sum, and how many more ranges than wanted are too many.
constexpr std::int64_t kRangesOfCore = 4, kRowsOfRange = 32, kSurplusRanges = 8;

bool uses_any(const Expr& e, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return e.uses(a.name); });
}

double terms_of(const Kernel& kernel) {
  double terms = 1;
  for (const Axis& axis : kernel.reduction) terms *= static_cast<double>(typical_extent(axis.extent));
  return terms;
}

// What is read lies in rows of columns side by side and needs no condition; rows of one operand or more follow one another.
bool reads_rows(const Kernel& kernel) {
  const Axis& column = kernel.axes.back();
  bool found = false;
  for (const ScalarNode& n : kernel.nodes) {
    const auto symbols = n.index.symbols();
    if (std::any_of(symbols.begin(), symbols.end(), [](const std::string& s) { return dynamic_index(s).has_value(); }))
      return false;
    if (n.kind != ScalarNode::Kind::load || !uses_any(n.index, kernel.reduction)) continue;
    if (!n.guard.empty()) return false;
    if (!n.index.uses(column.name)) continue;
    const auto step = n.index.coefficient(kernel.reduction.back().name);
    if (n.index.coefficient(column.name) != Expr(1)) return false;
    found = found || (step && *step == column.extent);
  }
  return found;
}

// Sums alone, side by side, of floats.
bool are_sums(const Kernel& kernel) {
  return std::all_of(kernel.stages.begin(), kernel.stages.end(),
                     [&](const Stage& s) {
                       return s.combine == Stage::Combine::sum && s.accumulator == DType::f32 && s.arg_index < 0 &&
                              s.axes.size() == kernel.reduction.size();
                     }) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(), [](const Store& s) { return s.row_axes.empty(); });
}

// Ranges of rows, cut from the outermost axis on: enough of them, shared evenly among the cores, and no more than that takes.
class Ranges {
 public:
  Ranges(const Kernel& kernel, std::int64_t cores) : cores_(cores), wanted_(kRangesOfCore * cores) {
    most_ = std::min(wanted_ * kSurplusRanges, static_cast<std::int64_t>(terms_of(kernel)) / kRowsOfRange);
    const auto& axes = kernel.reduction;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto extent = axes[i].extent.constant();
      if (!extent) continue;
      const int outer = static_cast<int>(i);
      for (std::int64_t parts = 2; parts <= *extent; ++parts) {
        if (*extent % parts == 0) consider({outer, parts});
      }
      const auto inner = i + 1 < axes.size() ? axes[i + 1].extent.constant() : std::nullopt;
      for (std::int64_t parts = 2; inner && parts <= *inner; ++parts) {
        if (*inner % parts == 0) consider({outer, *extent * parts, outer + 1, parts});
      }
      if (best_) return;
    }
  }
  std::optional<Split> best() const { return best_; }

 private:
  // Rounds of the cores, as many as ranges where none waits.
  double waiting(std::int64_t parts) const {
    return static_cast<double>(ceil_div(parts, cores_) * cores_) / static_cast<double>(parts);
  }
  bool is_better(std::int64_t a, std::int64_t b) const {
    if ((a >= wanted_) != (b >= wanted_)) return a >= wanted_;
    if (a < wanted_) return a > b;
    return waiting(a) != waiting(b) ? waiting(a) < waiting(b) : a < b;
  }
  void consider(const Split& split) {
    if (split.parts < cores_ || split.parts > most_) return;
    if (!best_ || is_better(split.parts, best_->parts)) best_ = split;
  }

  const std::int64_t cores_, wanted_;
  std::int64_t most_ = 0;
  std::optional<Split> best_;
};

std::optional<Split> best_ranges(const Kernel& kernel, const Target& target) {
  if (!sums_whole_rows(kernel, target)) return std::nullopt;
  std::int64_t others = 1;
  for (std::size_t i = 0; i + 1 < kernel.axes.size(); ++i) others *= typical_extent(kernel.axes[i].extent);
  const std::int64_t cores = std::max(1, target.compute_units);
  return others < cores ? Ranges(kernel, cores).best() : std::nullopt;
}

}  // namespace

bool sums_whole_rows(const Kernel& kernel, const Target& target) {
  if (target.device_class != DeviceClass::cpu || target.loop_iterations != Target::kNoLimit || target.vector_width == 1)
    return false;
  if (kernel.contraction || kernel.stages.empty() || kernel.axes.empty() || kernel.nodes.size() > kMostNodes) return false;
  const auto columns = kernel.axes.back().extent.constant();
  if (!columns || *columns < kFewestColumns || !are_sums(kernel) || !reads_rows(kernel)) return false;
  const auto sums = static_cast<std::int64_t>(kernel.stages.size()) * *columns * 4;
  const double rows = terms_of(kernel);
  return sums <= std::min(kMostSumsBytes, target.local_bytes / 3) && rows >= kRowsOfRange &&
         rows * typical(points_of(kernel)) * 4 >= kFewestBytes;
}

void cut_whole_rows(Schedule& schedule, const Target& target, std::vector<Step>& steps) {
  std::vector<Step> all;
  for (Step& step : steps) {
    if (step.kernel >= 0) {
      const auto index = static_cast<std::size_t>(step.kernel);
      if (const auto ranges = best_ranges(schedule.kernels[index], target)) cut_sums(schedule, index, *ranges, all);
    }
    all.push_back(std::move(step));
  }
  steps = std::move(all);
}

}  // namespace oclc
