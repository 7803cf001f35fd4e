#include "compiler/codegen/packed_right.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/codegen/contraction_choice.h"
#include "compiler/codegen/kernel_text.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Columns of a group of the packing kernel, and the quads of neighbouring terms of a step.
constexpr int kColumns = 32, kQuads = 8;
// Estimates are rough, and columns scaled in every step cost the product a part of its time.
constexpr double kWorthwhile = 0.8, kScaling = 1.1;
// How much longer than estimated products take whose left operand is computed, or gathered across rows, as it is loaded.
constexpr double kComputedLeft = 1.5;
// How much longer products take an operand of which is loaded or copied element by element, as rows that begin anywhere are.
constexpr double kSingles = 2.0;
// A square of the left operand that a group passes through local memory.
constexpr int kSquare = 32, kSquareItems = 256;

bool has_numbers(const ContractionView& view) {
  return view.groups().is_constant() && view.columns().is_constant() && view.inner().is_constant() && view.rows().is_constant();
}

// Elements from row to row of a left operand that is laid out: whole vectors.
std::int64_t row_pitch(const ContractionView& view) { return ceil_div(view.inner().value(), std::int64_t{4}) * 4; }

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
        for (const int kernel : pack(static_cast<std::size_t>(step.kernel))) {
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
    GpuProduct packed = plain;
    packed.is_packed = true;
    const double right_bytes = 2.0 * static_cast<double>(layout.words()) * 4;
    const bool is_matrix = view->taps() == 1 && view->index_type() == "int";
    const double left_bytes = 3.0 * static_cast<double>(plain.groups * plain.rows * plain.depth) * 4;
    const double product_seconds = sm90a_seconds(packed, *tiles, target_) * kScaling;
    double as_it_lies = std::numeric_limits<double>::infinity(), laid_out = as_it_lies;
    if (lies_right) as_it_lies = product_seconds * (is_matrix && left.width == 1 ? kSingles : 1);
    if (is_matrix) laid_out = product_seconds + target_.launch_seconds + left_bytes / target_.bytes_per_second;
    const double seconds = std::min(as_it_lies, laid_out) + target_.launch_seconds + right_bytes / target_.bytes_per_second;
    // Elements that are loaded one by one keep a product from these units, and wait on others.
    const double unpacked = left.width > 1 && right.width > 1
                                ? best_gpu_seconds(plain, target_)
                                : gpu_product_seconds(plain, choose_gpu_tiles(plain, target_), target_) * kSingles;
    const double now = unpacked * (lies_right ? 1 : kComputedLeft);
    if (seconds > now * kWorthwhile) return {};
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
    packing.contraction->strategy = kPacks;
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
    layout.contraction->strategy = kLaysOut;
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

// A kernel of the strategy kLaysOut.
GeneratedKernel generate_left_layout(const Kernel& kernel) {
  const auto view = ContractionView::of(kernel);
  OCLC_CHECK(view, "a layout of rows without a product");
  const std::int64_t rows = view->rows().value(), inner = view->inner().value(), pitch = row_pitch(*view);
  const std::int64_t row_blocks = ceil_div(rows, kSquare), inner_blocks = ceil_div(inner, kSquare);
  GeneratedKernel g;
  g.name = kernel.name;
  g.arguments = arguments_of(kernel);
  g.groups = {Expr(view->groups().value() * row_blocks * inner_blocks)};
  g.local = {kSquareItems};
  g.schedule = fmt::format("squares of {} rows and terms", kSquare);
  g.head = kernel_head(kernel, g);
  std::string group;
  for (const std::string& line : view->group_coordinates()) group += "  " + line + "\n";
  // Neighbours in memory are read side by side, and written side by side.
  const bool along_k = load_of_a(*view).along_k;
  const std::string body = fmt::format(
      "  const int item = get_local_id(0);\n"
      "  const int m0 = tile / {0} % {1} * {2}, k0 = tile % {0} * {2}, g = tile / {3};\n{4}"
      "  #pragma unroll\n"
      "  for (int i = item / {2}; i < {2}; i += {5}) {{\n"
      "    const int row = {6}, term = {7};\n"
      "    const int m = m0 + row, k = k0 + term, tap = 0;\n"
      "    float v = 0.0f;\n"
      "    if (m < {8} && k < {9}) {{\n{10}    }}\n"
      "    square[row * {11} + term] = v;\n"
      "  }}\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  #pragma unroll\n"
      "  for (int i = item / {2}; i < {2}; i += {5}) {{\n"
      "    const int k = k0 + item % {2};\n"
      "    if (m0 + i < {8} && k < {12}) left[((size_t)g * {8} + m0 + i) * {12} + k] = square[i * {11} + item % {2}];\n"
      "  }}\n",
      inner_blocks, row_blocks, kSquare, inner_blocks * row_blocks, group, kSquareItems / kSquare,
      along_k ? "i" : fmt::format("item % {}", kSquare), along_k ? fmt::format("item % {}", kSquare) : "i", rows, inner,
      element_of_a(*view), kSquare + 1, pitch);
  g.source = fmt::format("void {}_tile({}, const int tile, __local float* restrict square) {{\n{}}}\n\n", g.name,
                         parameter_list(kernel, false), body);
  g.source += fmt::format(
      "__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n  __local float square[{4}];\n"
      "  {1}_tile({3}, (int)get_group_id(0), square);\n}}\n",
      kSquareItems, g.name, parameter_list(kernel, true), argument_list(kernel), kSquare * (kSquare + 1));
  return g;
}

}  // namespace

GpuProduct product_of(const ContractionView& view) {
  GpuProduct product;
  product.groups = typical_extent(view.groups());
  product.rows = typical_extent(view.rows());
  product.columns = typical_extent(view.columns());
  product.depth = typical_terms(view.inner()) * view.taps();
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
  if (kernel.contraction && kernel.contraction->strategy == kLaysOut) return generate_left_layout(kernel);
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
