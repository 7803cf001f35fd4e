#include "compiler/schedule/pool_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/merged_kernel.h"

namespace oclc {
namespace {

// Results of a window that a work-item reads together, the taps of a product whose loads are rounded by those that load (see
// contraction_f16_sm90a.cl), and neighbours of a vector.
constexpr std::int64_t kLargestWindow = 16, kMostTaps = 32, kVector = 4;

const ScalarNode& node(const Kernel& kernel, NodeId id) { return kernel.nodes[static_cast<std::size_t>(id)]; }

// The largest of loaded elements, stored as they are.
bool is_largest(const Kernel& kernel) {
  if (kernel.contraction || kernel.stages.size() != 1 || kernel.stores.size() != 1) return false;
  const Stage& stage = kernel.stages[0];
  const Store& store = kernel.stores[0];
  const ScalarNode &body = node(kernel, stage.body), &value = node(kernel, store.value);
  return stage.combine == Stage::Combine::max && stage.accumulator == DType::f32 && store.guard.empty() &&
         store.row_axes.empty() && value.kind == ScalarNode::Kind::reduced && body.kind == ScalarNode::Kind::load &&
         body.dtype == DType::f32 && body.guard.empty() && !reads_values(body.index) &&
         kernel.operands[static_cast<std::size_t>(body.operand)].dtype == DType::f32;
}

// Of one group, with a known number of taps, each of whole vectors.
bool has_windows_template(const Kernel& kernel) {
  if (!kernel.contraction || kernel.contraction->shares == 1 || kernel.stores.size() != 1) return false;
  const Contraction& c = *kernel.contraction;
  const auto is_one = [&](int i) { return kernel.axes[static_cast<std::size_t>(i)].extent == Expr(1); };
  std::int64_t taps = 1;
  for (std::size_t i = 0; i + 1 < c.k.size(); ++i) taps *= kernel.reduction[static_cast<std::size_t>(c.k[i])].extent.value();
  const std::int64_t columns = kernel.axes[static_cast<std::size_t>(c.n[0])].extent.value();
  return std::all_of(c.batch.begin(), c.batch.end(), is_one) && taps <= kMostTaps && columns % kVector == 0 &&
         kernel.stores[0].guard.empty() && node(kernel, kernel.stores[0].value).dtype == DType::f32;
}

struct Windows {
  std::vector<std::int64_t> lengths;
  Substitution places;  // axes of the maximum in terms of the product's
};

// What is read of each place: the step along `axis` of an index, if it has one.
std::optional<std::int64_t> step_of(const Expr& index, const std::string& axis) {
  const auto step = index.coefficient(axis);
  return step ? step->constant() : std::nullopt;
}

// How the maximum's windows lie on the product's results: along each axis of rows an axis of the maximum goes on as that does,
// or by windows, whose elements another one that it goes over has.
std::optional<Windows> windows_of(const Kernel& product, const Kernel& pool) {
  const Expr &stored = product.stores[0].index, &loaded = node(pool, pool.stages[0].body).index;
  Windows windows;
  std::size_t known = 0, taken = 0;
  Expr all = at_first(product, stored);
  if (!(all == at_first(pool, loaded))) return std::nullopt;
  const auto add = [&](const Axis& axis, bool may_be_windows) {
    if (axis.extent == Expr(1)) {
      windows.lengths.push_back(1);
      return true;
    }
    const auto step = step_of(stored, axis.name), extent = axis.extent.constant();
    if (!step || !extent) return false;
    all += Expr(*step) * axis.var;
    std::int64_t length = 1;
    for (const Axis& tap : pool.reduction)
      if (may_be_windows && step_of(loaded, tap.name) == step) length = tap.extent.constant().value_or(0), ++taken;
    const auto fits = [&](const Axis& a) {
      return step_of(loaded, a.name) == *step * length && a.extent == Expr(length > 0 ? *extent / length : 0) &&
             *extent % length == 0;
    };
    const auto found = std::find_if(pool.axes.begin(), pool.axes.end(), fits);
    if (length == 0 || found == pool.axes.end()) return false;
    windows.places[found->name] = floor_div(axis.var, Expr(length));
    windows.lengths.push_back(length);
    ++known;
    return true;
  };
  const Contraction& c = *product.contraction;
  for (const int i : c.m)
    if (!add(product.axes[static_cast<std::size_t>(i)], true)) return std::nullopt;
  if (!add(product.axes[static_cast<std::size_t>(c.n[0])], false)) return std::nullopt;
  windows.lengths.pop_back();
  const auto counts = [](const Axis& a) { return !(a.extent == Expr(1)); };
  const auto axes = static_cast<std::size_t>(std::count_if(pool.axes.begin(), pool.axes.end(), counts)),
             taps = static_cast<std::size_t>(std::count_if(pool.reduction.begin(), pool.reduction.end(), counts));
  if (!(all == stored) || axes != known || taps != taken) return std::nullopt;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < windows.lengths.size(); ++i) {
    elements *= windows.lengths[i];
    if (i + 2 < windows.lengths.size() && windows.lengths[i] != 1) return std::nullopt;
  }
  for (const Axis& a : pool.axes) windows.places.try_emplace(a.name, Expr(0));
  return elements <= kLargestWindow ? std::optional(std::move(windows)) : std::nullopt;
}

class PoolProducts {
 public:
  explicit PoolProducts(Schedule& schedule) : schedule_(schedule), uses_(schedule.uses()) {}

  void steps(std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_kernel() || list[i].is_beside() || !is_largest(at(list[i]))) continue;
      const auto writer = writer_of(list, i);
      if (!writer || !join(at(list[*writer]), at(list[i]))) continue;
      list[i] = list[*writer];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(*writer));
      --i;
    }
  }

 private:
  Kernel& at(const Step& step) { return schedule_.kernel(step); }

  // The step that writes what step `i` reads, if nothing else reads it and it can as well come then.
  std::optional<std::size_t> writer_of(const std::vector<Step>& list, std::size_t i) {
    const Kernel& pool = at(list[i]);
    const int buffer = pool.operands[static_cast<std::size_t>(node(pool, pool.stages[0].body).operand)].buffer;
    const Buffer& b = schedule_.buffers[static_cast<std::size_t>(buffer)];
    if (b.kind != BufferKind::arena || b.replaces >= 0 || uses_.at(buffer) != 2) return std::nullopt;
    for (std::size_t k = i; k-- > 0 && list[k].is_kernel();) {
      if (buffers_of(at(list[k]), true).count(buffer) == 0) continue;
      const bool alone = !list[k].is_beside() && !list[k + 1].is_beside();
      return alone && can_pass(at(list[k]), schedule_, list.data() + k + 1, list.data() + i) ? std::optional(k) : std::nullopt;
    }
    return std::nullopt;
  }

  static bool join(Kernel& product, const Kernel& pool) {
    if (!has_windows_template(product)) return false;
    const auto windows = windows_of(product, pool);
    if (!windows) return false;
    const Operand& result = pool.operands[static_cast<std::size_t>(pool.stores[0].operand)];
    const Expr index = pool.stores[0].index.substitute(windows->places);
    const Axis& column = product.axes[static_cast<std::size_t>(product.contraction->n[0])];
    if (result.dtype != DType::f32 || !step_of(index, column.name)) return false;
    Store& store = product.stores[0];
    Operand& written = product.operands[static_cast<std::size_t>(store.operand)];
    written.buffer = result.buffer;
    written.value = result.value;
    store.index = index;
    Expr results = 1;
    for (const Axis& axis : product.axes) results *= axis.extent;
    product.contraction->windows = windows->lengths;
    product.formula = fmt::format("{}, {}", product.formula, pool.formula);
    product.flops += pool.flops;
    product.bytes += pool.bytes - results * Expr(8);
    add_sources(product.sources, pool.sources);
    return true;
  }

  Schedule& schedule_;
  const std::map<int, int> uses_;
};

}  // namespace

void pool_products(Schedule& schedule, const ScheduleContext& /*context*/) {
  PoolProducts pass(schedule);
  for (EntrySchedule& entry : schedule.entries) pass.steps(entry.steps);
  drop_unused_kernels(schedule);
}

}  // namespace oclc
