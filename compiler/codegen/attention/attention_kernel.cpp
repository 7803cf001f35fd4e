#include "compiler/codegen/attention/attention_kernel.h"

#include <fmt/format.h>

#include "compiler/codegen/attention/attention_amx.h"
#include "compiler/codegen/attention/attention_parts.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/gpu/contraction_gpu_loads.h"
#include "compiler/ir/division.h"
#include "compiler/schedule/attention.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kPlain = "attention_gpu", kMatrix = "attention_mma_gpu";
constexpr int kWidth = 4, kEpilogueUnroll = 4, kItemsOfWarp = 32;

class AttentionCode : private AttentionParts {
 public:
  using AttentionParts::AttentionParts;

  SeveralKernels run() {
    const auto scores = ContractionView::of(scores_), product = ContractionView::of(product_);
    OCLC_CHECK(scores && product, "attention is made of products that templates can say");
    const AttentionTiles tiles = attention_tiles(scores_, product_, target_);
    fill_sizes(*scores, *product);
    auto& p = values_.parameters;
    p["WARPS"] = std::to_string(tiles.warps);
    p["BN"] = std::to_string(tiles.keys);
    p["SPLIT"] = target_.precision.splits_operands() ? "1" : "0";
    p["EPILOGUE_UNROLL"] = std::to_string(has_cheap_epilogue(*product) ? kEpilogueUnroll : 1);
    values_.holes["A_ELEMENTS"] = within(*scores, element_of_a(*scores));
    values_.holes["SCORES"] = within(*scores, epilogue_value(*scores, kWidth, true));
    values_.holes["EPILOGUE"] = within(*product, contraction_epilogue(*product, kWidth, true));
    describe(scores->groups() * ceil_div(scores->rows(), Expr(tiles.rows())), tiles.warps * kItemsOfWarp,
             fmt::format("template {}, {} rows, blocks of {} keys, or template {}", kMatrix, tiles.rows(), tiles.keys, kPlain));
    const std::string matrix = matrix_text(*scores, *product);
    values_.holes["B_ELEMENTS"] = within(*scores, element_of_b(*scores));
    values_.holes["V_ELEMENTS"] = within(*product, element_of_b(*product));
    values_ = values_of(kPlain, values_, {kMatrix, kPlain});
    out_.kernel.source = fmt::format("#if {}\n", target_.matrix_unit->condition) + matrix + "#else\n" + tile_text(kPlain) +
                         kernel_text(kPlain) + "#endif\n";
    return std::move(out_);
  }

 private:
  std::string matrix_text(const ContractionView& scores, const ContractionView& product) {
    const GpuLoad k = load_of_b(scores), v = load_of_b(product);
    auto& p = values_.parameters;
    p["KV"] = std::to_string(k.width);
    p["VV"] = std::to_string(v.width);
    p["K_ALONG_DEPTH"] = k.along_k ? "1" : "0";
    p["V_ALONG_COLUMNS"] = v.along_k ? "0" : "1";
    values_.holes["B_ELEMENTS"] = within(scores, k.text);
    values_.holes["V_ELEMENTS"] = within(product, v.text);
    return tile_text(kMatrix) + kernel_text(kMatrix);
  }
};

}  // namespace

SeveralKernels generate_attention(const std::string& name, const Step& step, const Schedule& schedule, const Target& target) {
  if (!target.has_group_templates()) return generate_attention_amx(name, step, schedule, target);
  AttentionCode code(name, step, schedule, target);
  return code.run();
}

}  // namespace oclc
