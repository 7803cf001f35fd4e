// Kernels that lay out and pack the operands of products when the plan runs. They share launches with others
// (horizontal_fusion.h), so all work-items of a group make the same trips through their loops: where barriers stand behind a
// condition, PoCL loses conditions within other loops (tests/platforms/pocl/condition_lost.c).
#include <fmt/format.h>

#include "compiler/codegen/contraction/gpu/pack_b.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/ir/division.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Columns of a group of the packing kernel, and the quads of neighbouring terms of a step.
constexpr int kColumns = 32, kQuads = 8;
// Words of a column of a step, and from column to column in local memory: neither order of items meets a bank twice.
constexpr int kWords = 16, kPitch = 17;
// A square of the left operand that a group passes through local memory.
constexpr int kSquare = 32, kSquareItems = 256;

// The tile function and the kernel around it, for groups of g.local[0], with an array of `floats` in local memory.
void add_source(GeneratedKernel& g, const Kernel& kernel, const std::string& body, std::string_view qualifier,
                std::string_view array, std::int64_t floats) {
  g.local_floats = std::to_string(floats);
  g.tile_source = fmt::format("void {}_tile({}, const int tile, __local float* {}{}) {{\n{}}}\n\n", g.name,
                              parameter_list(kernel, false), qualifier, array, body);
  g.source = g.tile_source +
             fmt::format(
                 "__attribute__((reqd_work_group_size({0}, 1, 1)))\n__kernel void {1}({2}) {{\n  __local float {5}[{4}];\n"
                 "  {1}_tile({3}, (int)get_group_id(0), {5});\n}}\n",
                 g.local[0], g.name, parameter_list(kernel, true), argument_list(kernel), floats, array);
}

// The four numbers of an item as f16, or as f16 and their rests, to where the template reads them.
std::string words_text(const HalvesLayout& layout) {
  // The second pair of the four lies in the neighbouring piece. Columns of a part lie one after another, and so pass through
  // local memory into whole lines.
  std::string body = fmt::format(
      "  const int first = column * {0} + (quad / 4 * 2 ^ row / 2 % 4) * 4 + quad % 4;\n"
      "  const int second = column * {0} + ((quad / 4 * 2 ^ row / 2 % 4) ^ 1) * 4 + quad % 4;\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < 4; ++i) x[i] *= up;\n"
      "  const uint pair = oclc_half_pair(x[0], x[1]), next = oclc_half_pair(x[2], x[3]);\n"
      "  words[first] = pair;\n"
      "  words[second] = next;\n",
      kPitch);
  if (layout.parts == 2)
    body += fmt::format(
        "  words[first + {0}] = oclc_half_pair_rest(x[0], x[1], pair);\n"
        "  words[second + {0}] = oclc_half_pair_rest(x[2], x[3], next);\n",
        kColumns * kPitch);
  const int all_words = layout.parts * kColumns * kWords, words_at_once = kColumns * kQuads * 4;
  body += fmt::format(
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  __global uint* to = (__global uint*)image + (row - column) * {0};\n"
      "  #pragma unroll\n"
      "  for (int first_word = 0; first_word < {1}; first_word += {2}) {{\n"
      "    const int i = first_word + item * 4, part = i / {3}, word = i % {3};\n"
      "    const __local uint* from = words + part * {4} + word / {0} * {5} + word % {0};\n"
      "    {7}*(__global uint4*)(to + part * {6} + word) = (uint4)(from[0], from[1], from[2], from[3]);\n"
      "  }}\n",
      kWords, all_words, words_at_once, kColumns * kWords, kColumns * kPitch, kPitch, layout.tile_columns * kWords,
      all_words % words_at_once == 0 ? "" : fmt::format("if (i < {}) ", all_words));
  return body;
}

}  // namespace

GeneratedKernel emit_lay_out_a(const ContractionView& view, const Choice&, const std::vector<Buffer>&, const Target&) {
  const Kernel& kernel = view.kernel();
  const std::int64_t rows = view.rows().value(), inner = view.inner().value(), pitch = row_pitch(view);
  const std::int64_t row_blocks = ceil_div(rows, kSquare), inner_blocks = ceil_div(inner, kSquare);
  GeneratedKernel g;
  g.name = kernel.name;
  g.arguments = arguments_of(kernel);
  g.groups = {Expr(view.groups().value() * row_blocks * inner_blocks)};
  g.local = {kSquareItems};
  g.schedule = fmt::format("squares of {} rows and terms", kSquare);
  g.head = kernel_head(kernel, g);
  std::string group;
  for (const std::string& line : view.group_coordinates()) group += "  " + line + "\n";
  // Neighbours in memory are read side by side, and written side by side.
  const bool along_k = load_of_a(view).along_k;
  const std::string body = fmt::format(
      "  const int item = get_local_id(0);\n"
      "  const int m0 = tile / {0} % {1} * {2}, k0 = tile % {0} * {2}, g = tile / {3};\n{4}"
      "  #pragma unroll\n"
      "  for (int from = 0; from < {2}; from += {5}) {{\n"
      "    const int i = from + item / {2}, row = {6}, term = {7};\n"
      "    const int m = m0 + row, k = k0 + term, tap = 0;\n"
      "    float v = 0.0f;\n"
      "    if (m < {8} && k < {9}) {{\n{10}    }}\n"
      "    square[row * {11} + term] = v;\n"
      "  }}\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  #pragma unroll\n"
      "  for (int from = 0; from < {2}; from += {5}) {{\n"
      "    const int i = from + item / {2}, k = k0 + item % {2};\n"
      "    if (m0 + i < {8} && k < {12}) left[((size_t)g * {8} + m0 + i) * {12} + k] = square[i * {11} + item % {2}];\n"
      "  }}\n",
      inner_blocks, row_blocks, kSquare, inner_blocks * row_blocks, group, kSquareItems / kSquare,
      along_k ? "i" : fmt::format("item % {}", kSquare), along_k ? fmt::format("item % {}", kSquare) : "i", rows, inner,
      element_of_a(view), kSquare + 1, pitch);
  add_source(g, kernel, body, "restrict ", "square", kSquare * (kSquare + 1));
  return g;
}

GeneratedKernel emit_pack_b(const ContractionView& view, const Choice& choice, const std::vector<Buffer>&,
                            const Target& target) {
  const Kernel& kernel = view.kernel();
  const HalvesLayout layout = halves_layout(view, std::get<GpuChoice>(choice.tiles).sm90a.value(), target);
  const GpuLoad right = load_of_b(view);
  const bool along_k = right.along_k;
  const std::int64_t columns = layout.column_tiles() * layout.tile_columns, blocks = columns / kColumns;
  GeneratedKernel g;
  g.name = kernel.name;
  g.arguments = arguments_of(kernel);
  g.groups = {Expr(layout.groups * blocks * layout.steps())};
  g.local = {kColumns * kQuads};
  g.schedule = fmt::format("{} columns and a step a group, tiles of {} columns", kColumns, layout.tile_columns);
  g.head = kernel_head(kernel, g);
  std::string group;
  for (const std::string& line : view.group_coordinates()) group += "  " + line + "\n";
  // Whole vectors of neighbours in k lie in memory, and a vector is of one tap.
  const bool vectors = along_k && right.width == 4;
  std::string body = fmt::format(
      "  __local uint* const words = (__local uint*)(sizes + {7});\n"
      "  const int item = get_local_id(0);\n"
      "  const int quad = {0}, column = {1};\n"
      "  const int step = tile % {2}, n = tile / {2} % {3} * {4} + column, g = tile / {5};\n{6}"
      "  float x[4];\n",
      along_k ? fmt::format("item % {}", kQuads) : fmt::format("item / {}", kColumns),
      along_k ? fmt::format("item / {}", kQuads) : fmt::format("item % {}", kColumns), layout.steps(), blocks, kColumns,
      layout.steps() * blocks, group, kColumns * kQuads);
  if (!vectors) body += "  #pragma unroll\n  for (int i = 0; i < 4; ++i)\n";
  const std::string_view first_term = vectors ? "quad * 4" : "quad * 4 + i";
  if (layout.flat)
    body += fmt::format("  {{\n    const int at = step * 32 + {0}, tap = at / {1}, k = at % {1};\n", first_term, layout.inner);
  else
    body += fmt::format("  {{\n    const int tap = step / {0}, k = step % {0} * 32 + {1};\n", layout.steps() / layout.taps,
                        first_term);
  body += fmt::format("    {0} v = 0.0f;\n    if ({1} < {2} && n < {3}) {{\n{4}    }}\n    {5}\n  }}\n",
                      vectors ? "float4" : "float", layout.flat ? "at" : "k",
                      layout.flat ? layout.inner * layout.taps : layout.inner, layout.columns,
                      vectors ? right.text : element_of_b(view), vectors ? "vstore4(v, 0, x);" : "x[i] = v;");
  body += fmt::format(
      "  float size = fmax(fmax(fmax(fabs(x[0]), fabs(x[1])), fmax(fabs(x[2]), fabs(x[3]))), 0x1p-111f);\n"
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
  body += words_text(layout);
  add_source(g, kernel, body, "", "sizes", kColumns * kQuads + layout.parts * kColumns * kPitch);
  return g;
}

}  // namespace oclc
