#include "compiler/codegen/contraction/cpu/winograd_filters.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/contraction/cpu/winograd.h"
#include "compiler/kernels/lower/winograd_transform.h"

namespace oclc {
namespace {

// The kernel that writes u[panel][point][channel][column of the panel] to `buffer`; columns past the last are 0.
Kernel filter_kernel(const ContractionView& view, const WinogradTiles& tiles, std::int64_t filter_taps,
                     std::int64_t panel_width, int buffer) {
  const Winograd& f = winograd(tiles.outputs, filter_taps);
  const std::int64_t channels = view.inner().value(), columns = view.columns().value();
  const ScalarNode& weight = view.b();
  KernelBuilder b(LoweringInputs{});
  b.kernel.name = view.kernel().name + "_filter";
  b.kernel.anchor = Anchor::winograd_input;
  b.kernel.sources = view.kernel().sources;
  b.kernel.formula = "transformed filters of " + view.kernel().formula;
  const Expr panels = ceil_div(view.columns(), Expr(panel_width)), panel = b.add_axis("panel", panels),
             channel = b.add_axis("channel", view.inner()), lane = b.add_axis("lane", Expr(panel_width)),
             column = panel * Expr(panel_width) + lane;
  Operand from = view.operand_of(weight), to;
  from.name = "x0";
  to.name = "y0";
  to.buffer = buffer;
  to.value = "transformed filters";
  to.written = true;
  b.kernel.operands = {from, to};
  const Substitution here{{view.inner_axis().name, channel}, {view.column_axis().name, column}};
  std::vector<NodeId> taps;
  for (std::int64_t tap = 0; tap < view.taps(); ++tap) {
    ScalarNode load = weight;
    load.operand = 0;
    load.index = weight.index.substitute(view.at_tap(tap)).substitute(here);
    if (columns % panel_width != 0) load.guard = {view.columns() - 1 - column};
    load.number = 0;
    taps.push_back(b.add(std::move(load)));
  }
  const std::vector<NodeId> u = transform_both_sides(b, f.filter, taps, transform_rows);
  const auto points = static_cast<std::int64_t>(u.size());
  for (std::int64_t point = 0; point < points; ++point) {
    Store store;
    store.operand = 1;
    store.index = ((panel * Expr(points) + Expr(point)) * view.inner() + channel) * Expr(panel_width) + lane;
    store.value = u[static_cast<std::size_t>(point)];
    b.kernel.stores.push_back(std::move(store));
  }
  b.kernel.flops = Expr(channels * columns * points * f.taps * 2);
  b.kernel.bytes = Expr(channels) * (view.columns() * Expr(4 * view.taps()) + panels * Expr(4 * panel_width * points));
  return std::move(b.kernel);
}

// True if the trips of `loop` change what `weight` reads, or might.
bool changes_weights(const Schedule& schedule, const LoopStep& loop, const Operand& from, const ScalarNode& weight) {
  if (weight.index.uses(loop.counter)) return true;
  return std::any_of(loop.body.begin(), loop.body.end(), [&](const Step& step) {
    if (!step.is_kernel()) return true;
    const Kernel& kernel = schedule.kernel(step);
    return std::any_of(kernel.operands.begin(), kernel.operands.end(),
                       [&](const Operand& o) { return o.written && o.buffer == from.buffer; });
  });
}

// The number of the kernel that transforms the filters of kernel `index`; nothing if they are constants or have no use. `loop`:
// the loop that the kernel is in, before which its filters are transformed; null outside of loops.
std::optional<int> add_filter_kernel(Schedule& schedule, std::size_t index, const LoopStep* loop, const Target& target) {
  if (!schedule.kernels[index].contraction || filters_of(schedule.kernels[index]) >= 0) return std::nullopt;
  const Kernel product = schedule.kernels[index];
  const StrategyId asked = product.contraction->asked;
  if (asked != StrategyId::winograd_2 && asked != StrategyId::winograd_4) return std::nullopt;
  const auto view = ContractionView::of(product);
  if (!view || !is_plain_load(view->b()) || !view->b().guard.empty() || constant_b_layout(*view, schedule.buffers))
    return std::nullopt;
  if (loop && changes_weights(schedule, *loop, view->operand_of(view->b()), view->b())) return std::nullopt;
  const Problem problem = problem_of(*view, schedule.buffers);
  const auto tiles = choose_winograd(problem, target);
  if (!tiles) return std::nullopt;
  const std::int64_t panel_width = std::int64_t{tiles->vectors} * target.vector_width;
  const std::int64_t taps = problem.window->y.taps, window = tiles->outputs + taps - 1;
  Buffer filters;
  filters.name = product.name + ".filters";
  filters.elements = ceil_div(view->columns(), Expr(panel_width)) * view->inner() * Expr(window * window * panel_width);
  const int buffer = static_cast<int>(schedule.buffers.size());
  schedule.buffers.push_back(std::move(filters));
  schedule.kernels.push_back(filter_kernel(*view, *tiles, taps, panel_width, buffer));
  Operand operand;
  operand.buffer = buffer;
  operand.name = kFilters;
  operand.value = "transformed filters";
  schedule.kernels[index].operands.push_back(operand);
  return static_cast<int>(schedule.kernels.size()) - 1;
}

}  // namespace

int filters_of(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (kernel.operands[i].name == kFilters && !kernel.operands[i].written) return static_cast<int>(i);
  }
  return -1;
}

void transform_filters(Schedule& schedule, const ScheduleContext& context) {
  const Target& target = context.target;
  for (EntrySchedule& entry : schedule.entries) {
    std::vector<Step> all;
    const auto transform = [&](const Step& step, const LoopStep* loop) {
      if (!step.is_kernel()) return;
      if (const auto filter = add_filter_kernel(schedule, static_cast<std::size_t>(step.kernel()), loop, target))
        all.push_back({KernelStep{*filter}});
    };
    for (Step& step : entry.steps) {
      transform(step, nullptr);
      if (const auto* loop = step.as<LoopStep>()) {
        for (const Step& inner : loop->body) transform(inner, loop);
      }
      all.push_back(std::move(step));
    }
    entry.steps = std::move(all);
  }
}

}  // namespace oclc
