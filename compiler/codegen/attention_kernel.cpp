#include "compiler/codegen/attention_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/c_numbers.h"
#include "compiler/codegen/contraction_epilogue.h"
#include "compiler/codegen/contraction_gpu_loads.h"
#include "compiler/codegen/contraction_view.h"
#include "compiler/codegen/template_text.h"
#include "compiler/ir/division.h"
#include "compiler/kernels/attention.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kPlain = "attention_gpu", kMatrix = "attention_mma_gpu";
constexpr int kWidth = 4, kEpilogueUnroll = 4, kItemsOfWarp = 32;

class AttentionCode {
 public:
  AttentionCode(const std::string& name, const Step& step, const Schedule& schedule, const Target& target)
      : name_(name), schedule_(schedule), target_(target), scores_(kernel(step.body[0])), product_(kernel(step.body[2])) {
    for (const Step& part : step.body) take(kernel(part));
    name_operands(scores_, scores_.stores[0].operand);
    name_operands(product_, product_.nodes[static_cast<std::size_t>(product_.contraction->a)].operand);
    for (const PersistentKernel::Argument& b : out_.buffers) {
      const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(b.buffer)];
      out_.bytes += buffer.elements * Expr(static_cast<std::int64_t>(size_bytes(buffer.dtype)));
    }
  }

  PersistentKernel run() {
    const auto scores = ContractionView::of(scores_), product = ContractionView::of(product_);
    OCLC_CHECK(scores && product, "attention is made of products that templates can say");
    const AttentionTiles tiles = attention_tiles(scores_, product_, target_);
    fill_sizes(*scores, *product, tiles);
    values_.holes["A_ELEMENTS"] = within(*scores, element_of_a(*scores));
    values_.holes["SCORES"] = within(*scores, epilogue_value(*scores, kWidth));
    values_.holes["EPILOGUE"] = within(*product, contraction_epilogue(*product, kWidth, true));
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {scores->groups() * ceil_div(scores->rows(), Expr(tiles.rows()))};
    g.local = {static_cast<std::uint32_t>(tiles.warps * kItemsOfWarp)};
    g.schedule =
        fmt::format("template {}, {} rows, blocks of {} keys, or template {}", kMatrix, tiles.rows(), tiles.keys, kPlain);
    g.head = fmt::format("// {}: {}, softmax, {}\n// launch    {} groups of {}; {}\n", name_, scores_.formula, product_.formula,
                         g.groups[0].text(), g.local[0], g.schedule);
    out_.add_arguments(symbols_);
    const std::string matrix = matrix_text(*scores, *product);
    values_.holes["B_ELEMENTS"] = within(*scores, element_of_b(*scores));
    values_.holes["V_ELEMENTS"] = within(*product, element_of_b(*product));
    g.source = "#if OCLC_NV_SM >= 80\n" + matrix + "#else\n" + text(kPlain) + "#endif\n";
    return std::move(out_);
  }

 private:
  const Kernel& kernel(const Step& step) const { return schedule_.kernels[static_cast<std::size_t>(step.kernel)]; }

  void take(const Kernel& kernel) {
    add_sources(out_.sources, kernel.sources);
    out_.flops += kernel.flops;
    for (const std::string& s : kernel.model_symbols()) symbols_.insert(s);
  }

  // Operands that the launch has, under the names of its arguments; the scores and their softmax are none.
  void name_operands(Kernel& kernel, int left_out) {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (static_cast<int>(i) != left_out) kernel.operands[i].name = fmt::format("b{}", out_.argument(kernel.operands[i]));
    }
  }

  void fill_sizes(const ContractionView& scores, const ContractionView& product, const AttentionTiles& tiles) {
    TemplateValues sizes;
    scores.fill_sizes(sizes);
    values_.holes["SIZES"] = sizes.holes["SIZES"];
    auto& p = values_.parameters;
    p["G"] = sizes.parameters["G"];
    p["ROWS"] = sizes.parameters["M"];
    p["KEYS"] = sizes.parameters["N"];
    p["DEPTH"] = sizes.parameters["K"];
    p["COLUMNS"] = std::to_string(product.columns().value());
    p["WARPS"] = std::to_string(tiles.warps);
    p["BN"] = std::to_string(tiles.keys);
    p["SPLIT"] = target_.products == Products::split ? "1" : "0";
    p["EPILOGUE_UNROLL"] = std::to_string(has_cheap_epilogue(product) ? kEpilogueUnroll : 1);
  }

  // Lines about one of the two products, whose names for sizes and coordinates end with them.
  static std::string within(const ContractionView& view, const std::string& lines) {
    TemplateValues sizes;
    view.fill_sizes(sizes);
    std::string out = "{\n" + sizes.holes["SIZES"];
    for (const char* size : {"M", "N", "K"}) out += fmt::format("const int {} = {};\n", size, sizes.parameters[size]);
    out += "const int tap = 0;\n";
    for (const std::string& line : view.group_coordinates()) out += line + "\n";
    return out + lines + "}\n";
  }

  std::string matrix_text(const ContractionView& scores, const ContractionView& product) {
    const GpuLoad k = load_of_b(scores), v = load_of_b(product);
    auto& p = values_.parameters;
    p["KV"] = std::to_string(k.width);
    p["VV"] = std::to_string(v.width);
    p["K_ALONG_DEPTH"] = k.along_k ? "1" : "0";
    p["V_ALONG_COLUMNS"] = v.along_k ? "0" : "1";
    values_.holes["B_ELEMENTS"] = within(scores, k.text);
    values_.holes["V_ELEMENTS"] = within(product, v.text);
    return text(kMatrix);
  }

  // Tile function and kernel.
  std::string text(std::string_view name) const {
    std::vector<std::string> pointers, parameters, arguments;
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
      pointers.push_back(out_.pointer(i, schedule_));
      parameters.push_back(fmt::format("{}, const long b{}_at", pointers.back(), i));
      arguments.push_back(fmt::format("b{0} + b{0}_at", i));
    }
    for (const std::string& s : symbols_) {
      pointers.push_back(fmt::format("const long dim_{}", s));
      parameters.push_back(pointers.back());
      arguments.push_back(fmt::format("dim_{}", s));
    }
    return fmt::format(
        "void {0}_tile({1}, const int tile, __local float* restrict space) {{\n{2}}}\n\n"
        "__attribute__((reqd_work_group_size({3}, 1, 1)))\n__kernel void {0}({4}) {{\n"
        "  __local float space[{5}] __attribute__((aligned(16)));\n  {0}_tile({6}, (int)get_group_id(0), space);\n}}\n",
        name_, fmt::join(pointers, ", "), expand_tile_body(name, values_), out_.kernel.local[0], fmt::join(parameters, ", "),
        expand_macro(name, "SPACE", values_), fmt::join(arguments, ", "));
  }

  const std::string name_;
  const Schedule& schedule_;
  const Target& target_;
  Kernel scores_, product_;  // with operands named as the launch's arguments
  PersistentKernel out_;
  std::set<std::string> symbols_;
  TemplateValues values_;
};

}  // namespace

PersistentKernel generate_attention(const std::string& name, const Step& step, const Schedule& schedule, const Target& target) {
  AttentionCode code(name, step, schedule, target);
  return code.run();
}

}  // namespace oclc
