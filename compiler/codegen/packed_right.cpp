#include "compiler/codegen/packed_right.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction_choice.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Columns of a group of the packing kernel, and the quads of neighbouring terms of a step.
constexpr int kColumns = 32, kQuads = 8;
// Estimates are rough, and columns scaled in every step cost the product a part of its time.
constexpr double kWorthwhile = 0.8, kScaling = 1.1;

bool has_numbers(const ContractionView& view) {
  return view.groups().is_constant() && view.columns().is_constant() && view.inner().is_constant() && view.rows().is_constant();
}

// The tiles of a product whose B would be packed when the plan runs.
std::optional<Sm90aTiles> packed_tiles(const ContractionView& view, const Target& target) {
  GpuProduct product = product_of(view);
  product.is_packed = true;
  return choose_sm90a_tiles(product, choose_gpu_tiles(product, target), target);
}

class Packer {
 public:
  Packer(Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  void run(std::vector<Step>& steps) {
    std::vector<Step> all;
    for (Step& step : steps) {
      if (step.kernel >= 0) {
        if (const int kernel = pack(static_cast<std::size_t>(step.kernel)); kernel >= 0) {
          Step before;
          before.kernel = kernel;
          all.push_back(std::move(before));
        }
      }
      all.push_back(std::move(step));
    }
    steps = std::move(all);
  }

 private:
  // The kernel that packs for kernel `index`, -1 if none is worth it.
  int pack(std::size_t index) {
    const Kernel product = schedule_.kernels[index];
    if (!product.contraction) return -1;
    const auto view = ContractionView::of(product);
    if (!view || !has_numbers(*view) || constant_b_layout(*view, schedule_.buffers) || !copies_a(load_of_a(*view))) return -1;
    const auto tiles = packed_tiles(*view, target_);
    if (!tiles) return -1;
    HalvesLayout layout = halves_layout(*view, *tiles, target_);
    layout.step_scales = true;
    const GpuProduct plain = product_of(*view);
    GpuProduct packed = plain;
    packed.is_packed = true;
    const double moved = 2.0 * static_cast<double>(layout.words()) * 4;
    const double seconds =
        sm90a_seconds(packed, *tiles, target_) * kScaling + target_.launch_seconds + moved / target_.bytes_per_second;
    if (seconds > best_gpu_seconds(plain, target_) * kWorthwhile) return -1;

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
    packing.contraction->strategy = kPacks;
    operand.written = true;
    packing.operands.push_back(operand);
    Store store;
    store.operand = static_cast<int>(packing.operands.size()) - 1;
    store.index = Expr(-1);  // no element in particular: all of the buffer is written
    for (std::size_t i = 0; i < packing.nodes.size(); ++i) {
      if (packing.nodes[i].kind == ScalarNode::Kind::reduced) store.value = static_cast<NodeId>(i);
    }
    packing.stores = {store};
    keep_needed(packing, {packing.contraction->b, store.value});
    drop_unused_operands(packing);
    packing.flops = Expr(layout.words());
    packing.bytes = Expr(2 * 4 * layout.words());
    schedule_.kernels.push_back(std::move(packing));
    return static_cast<int>(schedule_.kernels.size()) - 1;
  }

  static void drop_unused_operands(Kernel& kernel) {
    std::vector<int> number(kernel.operands.size(), -1);
    std::vector<Operand> kept;
    const auto keep = [&](int& operand) {
      int& n = number[static_cast<std::size_t>(operand)];
      if (n < 0) {
        n = static_cast<int>(kept.size());
        kept.push_back(kernel.operands[static_cast<std::size_t>(operand)]);
      }
      operand = n;
    };
    for (ScalarNode& node : kernel.nodes) {
      if (node.kind == ScalarNode::Kind::load) keep(node.operand);
    }
    for (Store& store : kernel.stores) keep(store.operand);
    kernel.operands = std::move(kept);
  }

  Schedule& schedule_;
  const Target& target_;
};

}  // namespace

GpuProduct product_of(const ContractionView& view) {
  GpuProduct product;
  product.groups = typical_extent(view.groups());
  product.rows = typical_extent(view.rows());
  product.columns = typical_extent(view.columns());
  product.depth = typical_extent(view.inner()) * view.taps();
  return product;
}

bool copies_a(const GpuLoad& a) { return a.width > 1 ? a.along_k && !a.place.empty() : !a.row.empty(); }

HalvesLayout halves_layout(const ContractionView& view, const Sm90aTiles& tiles, const Target& target) {
  HalvesLayout layout;
  layout.groups = view.groups().value();
  layout.columns = view.columns().value();
  layout.inner = view.inner().value();
  layout.taps = view.taps();
  layout.tile_columns = tiles.columns;
  layout.parts = target.products == Products::split ? 2 : 1;
  layout.flat = layout.taps > 1 && layout.inner % HalvesLayout::kStep != 0;
  layout.step_scales = images_of(view.kernel()) >= 0 || view.roles().strategy == kPacks;
  return layout;
}

int images_of(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (kernel.operands[i].name == kImages && !kernel.operands[i].written) return static_cast<int>(i);
  }
  return -1;
}

void pack_right_operands(Schedule& schedule, const Target& target) {
  if (!target.sm90a || target.products == Products::fma) return;
  Packer packer(schedule, target);
  for (EntrySchedule& entry : schedule.entries) packer.run(entry.steps);
}

std::optional<GeneratedKernel> generate_packing(const Kernel& kernel, const Target& target) {
  if (!kernel.contraction || kernel.contraction->strategy != kPacks) return std::nullopt;
  const auto view = ContractionView::of(kernel);
  OCLC_CHECK(view, "a packing kernel without a product");
  const auto tiles = packed_tiles(*view, target);
  OCLC_CHECK(tiles, "a packing kernel without tiles");
  const HalvesLayout layout = halves_layout(*view, *tiles, target);
  const bool along_k = load_of_b(*view).along_k;
  const std::int64_t columns = layout.column_tiles() * layout.tile_columns, blocks = columns / kColumns;
  GeneratedKernel g;
  g.name = kernel.name;
  g.arguments = arguments_of(kernel);
  g.groups = {Expr(layout.groups * blocks * layout.steps())};
  g.local = {kColumns * kQuads};
  g.schedule = fmt::format("{} columns and a step a group, tiles of {} columns", kColumns, layout.tile_columns);
  g.head = kernel_head(kernel, g);
  std::string group;
  for (const std::string& line : view->group_coordinates()) group += "  " + line + "\n";
  std::string body = fmt::format(
      "  const int item = get_local_id(0);\n"
      "  const int quad = {0}, column = {1};\n"
      "  const int step = tile % {2}, n = tile / {2} % {3} * {4} + column, g = tile / {5};\n{6}"
      "  float x[4];\n"
      "  float size = 0x1p-111f;\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < 4; ++i) {{\n",
      along_k ? fmt::format("item % {}", kQuads) : fmt::format("item / {}", kColumns),
      along_k ? fmt::format("item / {}", kQuads) : fmt::format("item % {}", kColumns), layout.steps(), blocks, kColumns,
      layout.steps() * blocks, group);
  if (layout.flat) {
    body += fmt::format(
        "    const int at = step * 32 + quad * 4 + i, tap = at / {0}, k = at % {0};\n    float v = 0.0f;\n    if (at < {1} && "
        "n < {2}) {{\n",
        layout.inner, layout.inner * layout.taps, layout.columns);
  } else {
    const std::int64_t steps_of_tap = layout.steps() / layout.taps;
    body += fmt::format(
        "    const int tap = step / {0}, k = step % {0} * 32 + quad * 4 + i;\n    float v = 0.0f;\n    if (k < {1} && n < {2}) "
        "{{\n",
        steps_of_tap, layout.inner, layout.columns);
  }
  body += element_of_b(*view);
  body += fmt::format(
      "    }}\n    x[i] = v;\n    size = fmax(size, fabs(v));\n  }}\n"
      "  sizes[quad * {0} + column] = size;\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < {1}; ++i) size = fmax(size, sizes[i * {0} + column]);\n"
      "  const uint exponent = as_uint(size) & 0x7f800000u;\n"
      "  const float up = as_float((268u << 23) - exponent);\n"
      "  __global float* image = {2} + ((size_t)(g * {3} + n / {4}) * {5} + step) * {6};\n"
      "  const int row = n % {4};\n"
      "  if (quad == 0) image[{7} + row] = as_float(exponent - (14u << 23));\n",
      kColumns, kQuads, kImages, layout.column_tiles(), layout.tile_columns, layout.steps(), layout.image_words(),
      layout.number_words());
  // The second pair of the four lies in the neighbouring piece.
  const std::string first = "(quad / 4 * 2 ^ row / 2 % 4) * 4 + quad % 4",
                    second = "((quad / 4 * 2 ^ row / 2 % 4) ^ 1) * 4 + quad % 4";
  body += fmt::format(
      "  __global uint* to = (__global uint*)image + row * 16;\n"
      "  const int first = {}, second = {};\n"
      "  ushort h[4];\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < 4; ++i) x[i] *= up, h[i] = oclc_to_f16(x[i]);\n"
      "  to[first] = h[0] | (uint)h[1] << 16;\n"
      "  to[second] = h[2] | (uint)h[3] << 16;\n",
      first, second);
  if (layout.parts == 2)
    body += fmt::format(
        "  #pragma unroll\n"
        "  for (int i = 0; i < 4; ++i) h[i] = oclc_to_f16(x[i] - oclc_from_f16(h[i]));\n"
        "  to[first + {0}] = h[0] | (uint)h[1] << 16;\n"
        "  to[second + {0}] = h[2] | (uint)h[3] << 16;\n",
        layout.tile_columns * 16);
  g.source = fmt::format("void {}_tile({}, const int tile, __local float* restrict sizes) {{\n{}}}\n\n", g.name,
                         parameter_list(kernel, false), body);
  g.source += fmt::format(
      "__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n  __local float sizes[{0}];\n"
      "  {1}_tile({3}, (int)get_group_id(0), sizes);\n}}\n",
      kColumns * kQuads, g.name, parameter_list(kernel, true), argument_list(kernel));
  return g;
}

}  // namespace oclc
