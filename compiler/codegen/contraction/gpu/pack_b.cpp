#include "compiler/codegen/contraction/gpu/pack_b.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

bool has_numbers(const ContractionView& view) {
  return view.groups().is_constant() && view.columns().is_constant() && view.inner().is_constant() && view.rows().is_constant();
}

double loads_of_left(const ContractionView& view) {
  const Kernel part = part_for(view.kernel(), view.roles().a);
  return static_cast<double>(std::count_if(part.nodes.begin(), part.nodes.end(),
                                           [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load; }));
}

class Packer {
 public:
  Packer(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& steps) {
    std::vector<Step> all;
    for (Step& step : steps) {
      if (step.is_kernel()) {
        for (const int kernel : pack(static_cast<std::size_t>(step.kernel()))) all.push_back({KernelStep{kernel}});
      }
      all.push_back(std::move(step));
    }
    steps = std::move(all);
  }

 private:
  // The kernels that lay out and pack for kernel `index`; none if it is not worth them.
  std::vector<int> pack(std::size_t index) {
    const Kernel product = schedule_.kernels[index];
    if (!product.contraction) return {};
    const auto view = ContractionView::of(product);
    if (!view || !has_numbers(*view) || constant_b_layout(*view, schedule_.buffers)) return {};
    const GpuLoad left = load_of_a(*view), right = load_of_b(*view);
    const bool lies_right = copies_a(left);
    const auto tiles = packed_tiles(*view, target_);
    if (!tiles) return {};
    HalvesLayout layout = halves_layout(*view, *tiles, target_);
    layout.step_scales = true;
    const GpuProduct plain = product_of(*view);
    const GpuProduct packed = plain.with([](GpuProduct& p) { p.is_packed = p.scaled_steps = true; });
    const double right_bytes = 2.0 * static_cast<double>(layout.words()) * 4;
    const bool is_matrix = view->taps() == 1 && view->index_type() == "int";
    const double left_bytes = 3.0 * static_cast<double>(plain.groups * plain.rows * plain.depth) * 4;
    const double product_seconds = sm90a_seconds(packed, *tiles, target_) * cost::kPackedScaling;
    double as_it_lies = std::numeric_limits<double>::infinity(), laid_out = as_it_lies;
    if (lies_right) as_it_lies = product_seconds * (is_matrix && left.width == 1 ? cost::kPackedSingles : 1);
    if (is_matrix) laid_out = product_seconds + target_.launch_seconds + left_bytes / target_.bytes_per_second;
    const double seconds = std::min(as_it_lies, laid_out) + target_.launch_seconds + right_bytes / target_.bytes_per_second;
    // Elements that are loaded one by one keep a product from these units, and wait on others.
    const double unpacked = left.width > 1 && right.width > 1
                                ? best_gpu_seconds(plain, target_)
                                : gpu_product_seconds(plain, choose_gpu_tiles(plain, target_), target_) * cost::kPackedSingles;
    const double now = unpacked * (lies_right && (left.along_k || left.width == 1)
                                       ? 1
                                       : std::max(cost::kPackedGatheredLeft, cost::kPackedComputedLeft * loads_of_left(*view)));
    if (seconds > now * cost::kPackedGain) return {};
    std::vector<int> before;
    if (laid_out < as_it_lies) before.push_back(lay_out_left(index, *view));

    Buffer images;
    images.name = product.name + ".images";
    images.elements = Expr(layout.words());
    const int buffer = static_cast<int>(schedule_.buffers.size());
    schedule_.buffers.push_back(std::move(images));
    Operand operand;
    operand.buffer = buffer;
    operand.name = kImages;
    operand.value = "the right operand as images of halves";
    schedule_.kernels[index].operands.push_back(operand);

    Kernel packing = product;
    packing.name += "_pack";
    packing.formula = "halves of the right operand of " + product.formula;
    packing.contraction->asked = StrategyId::pack_b;
    operand.written = true;
    packing.operands.push_back(operand);
    replace_stores(packing, packing.contraction->b);
    packing.flops = Expr(layout.words());
    packing.bytes = Expr(2 * 4 * layout.words());
    schedule_.kernels.push_back(std::move(packing));
    before.push_back(static_cast<int>(schedule_.kernels.size()) - 1);
    return before;
  }

  // Adds a kernel that writes A as [g][m][k], zeros behind each row so that rows are whole vectors. Kernel `index` then reads
  // these, and sums over the zeros as well: packed columns end in zeros too.
  int lay_out_left(std::size_t index, const ContractionView& view) {
    Buffer rows;
    rows.name = view.kernel().name + ".rows";
    const Expr pitch(row_pitch(view));
    rows.elements = view.groups() * view.rows() * pitch;
    const int buffer = static_cast<int>(schedule_.buffers.size());
    schedule_.buffers.push_back(std::move(rows));
    Operand operand;
    operand.buffer = buffer;
    operand.name = "left";
    operand.value = "the left operand, row by row";

    Kernel layout = view.kernel();
    layout.name += "_rows";
    layout.formula = "rows of the left operand of " + layout.formula;
    layout.contraction->asked = StrategyId::lay_out_a;
    operand.written = true;
    layout.operands.push_back(operand);
    replace_stores(layout, layout.contraction->a);
    layout.flops = view.groups() * view.rows() * view.inner();
    layout.bytes = layout.flops * Expr(8);
    schedule_.kernels.push_back(std::move(layout));

    Kernel& product = schedule_.kernels[index];
    operand.written = false;
    ScalarNode load;
    load.kind = ScalarNode::Kind::load;
    load.operand = static_cast<int>(product.operands.size());
    product.operands.push_back(operand);
    for (const auto* list : {&product.contraction->batch, &product.contraction->m}) {
      for (const int i : *list) load.index = load.index * view.axis(i).extent + view.axis(i).var;
    }
    Axis& inner = product.reduction[static_cast<std::size_t>(product.contraction->k.back())];
    inner.extent = pitch;
    load.index = load.index * pitch + Expr::axis(inner.name, pitch);
    product.nodes[static_cast<std::size_t>(product.contraction->a)] = std::move(load);
    std::vector<NodeId> needed{product.stages[0].body};
    for (const Store& store : product.stores) needed.push_back(store.value);
    keep_needed(product, needed);
    drop_unused_operands(product);
    return static_cast<int>(schedule_.kernels.size()) - 1;
  }

  // The last operand is all that the kernel writes, from node `source`.
  static void replace_stores(Kernel& kernel, NodeId source) {
    Store store;
    store.operand = static_cast<int>(kernel.operands.size()) - 1;
    store.index = Expr(-1);  // no element in particular: all of the buffer is written
    for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
      if (kernel.nodes[i].kind == ScalarNode::Kind::reduced) store.value = static_cast<NodeId>(i);
    }
    kernel.stores = {store};
    keep_needed(kernel, {source, store.value});
    drop_unused_operands(kernel);
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

GpuProduct product_of(const ContractionView& view) {
  const bool is_known =
      view.groups().is_constant() && view.rows().is_constant() && view.columns().is_constant() && view.inner().is_constant();
  return product_of_sizes(!is_known, [&](std::int64_t dim) {
    GpuProduct product;
    product.groups = extent_at(view.groups(), dim);
    product.rows = extent_at(view.rows(), dim);
    product.columns = extent_at(view.columns(), dim);
    product.depth = terms_at(view.inner(), dim) * view.taps();
    return product;
  });
}

std::int64_t row_pitch(const ContractionView& view) { return ceil_div(view.inner().value(), std::int64_t{4}) * 4; }

std::optional<Sm90aTiles> packed_tiles(const ContractionView& view, const Target& target) {
  const GpuProduct product = product_of(view).with([](GpuProduct& p) { p.is_packed = p.scaled_steps = true; });
  return choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target);
}

bool copies_a(const GpuLoad& a) { return a.width > 1 ? !a.place.empty() : !a.row.empty(); }

HalvesLayout halves_layout(const ContractionView& view, const Sm90aTiles& tiles, const Target& target) {
  HalvesLayout layout;
  layout.groups = view.groups().value();
  layout.columns = view.columns().value();
  layout.inner = view.inner().value();
  layout.taps = view.taps();
  layout.tile_columns = tiles.columns;
  layout.parts = target.precision.splits_operands() ? 2 : 1;
  layout.flat = layout.taps > 1 && layout.inner % HalvesLayout::kStep != 0;
  layout.line = std::max<std::int64_t>(1, tiles.line);
  layout.in_order = tiles.line > 0;
  layout.step_scales = images_of(view.kernel()) >= 0 || view.roles().asked == StrategyId::pack_b;
  return layout;
}

bool packs_halves(const ContractionView& view, const Choice& choice, const Target& target) {
  if (const auto* tiles = std::get_if<ShortTiles>(&choice.tiles)) return tiles->halves;
  const auto* gpu = std::get_if<GpuChoice>(&choice.tiles);
  return gpu && gpu->sm90a && gpu->sm90a->halves && !halves_layout(view, *gpu->sm90a, target).step_scales;
}

int images_of(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (kernel.operands[i].name == kImages && !kernel.operands[i].written) return static_cast<int>(i);
  }
  return -1;
}

void pack_b(Schedule& schedule, const ScheduleContext& context) {
  Packer packer(schedule, context.target);
  for (EntrySchedule& entry : schedule.entries) packer.run(entry.steps);
}

}  // namespace oclc
