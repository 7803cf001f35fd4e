#include "compiler/codegen/contraction/gpu/contraction_row_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/ir/division.h"
#include "compiler/schedule/row_product.h"

namespace oclc {
namespace {

constexpr std::string_view kRowTemplate = "contraction_row_gpu";
constexpr const char* kRowWeights = "weights";
// Work-items of a group at most, and about as many as one has; those that keep a compute unit busy.
constexpr std::int64_t kMostItemsOfRows = 256, kItemsOfRows = 160, kItemsOfUnit = 1024;
constexpr std::int64_t kItemsOfSubGroup = 32, kItemsOfChunk = 8, kRoundsOfRow = 5;

// Work-items that share a result: few of them wait for others in the last round, and they have some rounds each, so that memory
// is asked ahead, if all together keep the device busy.
std::int64_t sharers_of(const RowProduct& p, const Target& target) {
  const std::int64_t chunks = p.terms / kTermsOfChunk,
                     most = std::max(chunks * kItemsOfChunk / kItemsOfSubGroup, std::int64_t{1}),
                     busy = kItemsOfUnit * std::max(1, target.compute_units);
  std::int64_t best = kItemsOfSubGroup;
  double least = 0;
  for (std::int64_t n = 1; n <= std::min(most, kMostItemsOfRows / kItemsOfSubGroup); ++n) {
    const std::int64_t sharers = n * kItemsOfSubGroup, rounds = ceil_div(chunks * kItemsOfChunk, sharers);
    const double idle = static_cast<double>(rounds * sharers) / static_cast<double>(chunks * kItemsOfChunk),
                 waits = 1 + 0.01 * static_cast<double>(std::abs(rounds - kRoundsOfRow)),
                 unused = std::max(1.0, static_cast<double>(busy) / static_cast<double>(p.results * sharers));
    const double cost = idle * waits * unused;
    if (n == 1 || cost < least) best = sharers, least = cost;
  }
  return best;
}

class RowCode {
 public:
  RowCode(const Kernel& kernel, const RowProduct& product, const Target& target)
      : kernel_(kernel),
        product_(product),
        sharers_(sharers_of(product, target)),
        rows_(std::max(kItemsOfRows / sharers_, std::int64_t{1})) {
    mode_.wide_index = needs_wide_index(kernel);
    mode_.aligned = true;
  }

  GeneratedKernel run(const std::string& name, HostTensor packed) {
    kernel_.operands[static_cast<std::size_t>(node(product_.weights).operand)].replaced = true;
    TemplateValues values;
    const auto set = [&](const char* parameter, std::int64_t value) { values.parameters[parameter] = std::to_string(value); };
    set("N", product_.results);
    set("K", product_.terms);
    set("SHARERS", sharers_);
    set("ROWS", rows_);
    values.holes["X"] = row();
    values.holes["EPILOGUE"] = epilogue();
    GeneratedKernel g;
    g.name = kernel_.name;
    g.groups = {Expr(ceil_div(product_.results, rows_))};
    g.local = {static_cast<std::uint32_t>(rows_ * sharers_)};
    g.schedule = fmt::format("template {}, {} results a group, {} work-items each", kRowTemplate, rows_, sharers_);
    g.arguments = arguments_of(kernel_);
    g.arguments.push_back({.operand = static_cast<int>(kernel_.operands.size())});
    g.packed.push_back(own_constant(kRowWeights, name + ".twelve_bits", std::move(packed)).buffer);
    g.head = kernel_head(kernel_, g);
    g.local_floats = std::to_string(g.local[0]);
    g.tile_source = fmt::format("void {}_tile({}, __global const uint* {}, const int tile, __local float* parts) {{\n{}}}\n\n",
                                g.name, parameter_list(kernel_, false), kRowWeights, expand_tile_body(kRowTemplate, values));
    g.source =
        g.tile_source + fmt::format(
                            "__attribute__((reqd_work_group_size({0}, 1, 1)))\n"
                            "__kernel void {1}({2}, __global const uint* {3}, const long {3}_at) {{\n"
                            "  __local float parts[{0}];\n  {1}_tile({4}, {3} + {3}_at, (int)get_group_id(0), parts);\n}}\n",
                            g.local[0], g.name, parameter_list(kernel_, true), kRowWeights, argument_list(kernel_));
    return g;
  }

 private:
  const ScalarNode& node(NodeId id) const { return kernel_.nodes[static_cast<std::size_t>(id)]; }

  std::string row() const {
    const std::string& term = kernel_.reduction[0].name;
    Emitter e(kernel_, mode_);
    e.set_vector_axis(term, 4);
    e.open("", {term});
    e.line(fmt::format("const {} {} = k;", e.index_type(), term));
    e.line(fmt::format("v = {};", e.vector_value(product_.row)));
    e.close();
    return e.text();
  }

  std::string epilogue() const {
    const std::string& result = kernel_.axes.back().name;
    Emitter e(kernel_, mode_);
    e.open("", {result});
    e.line(fmt::format("const {} {} = n;", e.index_type(), result));
    e.stage_done(0, "v", false);
    for (const Store& store : kernel_.stores) e.store(store);
    e.close();
    return e.text();
  }

  Kernel kernel_;  // with the operands that the code has
  const RowProduct& product_;
  const std::int64_t sharers_, rows_;
  EmitMode mode_;
};

}  // namespace

std::optional<GeneratedKernel> generate_row_gpu(const Kernel& kernel, const std::vector<Buffer>& buffers,
                                                const Target& target) {
  const auto product = row_product(kernel, buffers, target);
  if (!product) return std::nullopt;
  const int operand = kernel.nodes[static_cast<std::size_t>(product->weights)].operand;
  const Buffer& weights = buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(operand)].buffer)];
  auto packed = in_twelve_bits(weights.constant, *product);
  if (!packed) return std::nullopt;
  return RowCode(kernel, *product, target).run(weights.name, std::move(*packed));
}

}  // namespace oclc
