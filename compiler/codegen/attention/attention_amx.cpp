#include "compiler/codegen/attention/attention_amx.h"

#include <fmt/format.h>

#include "compiler/codegen/attention/attention_parts.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/panel_copy.h"
#include "compiler/ir/division.h"
#include "compiler/schedule/attention.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kTemplate = "attention_amx";
constexpr int kFloats = 16, kPanel = 32;

class AttentionAmx : private AttentionParts {
 public:
  using AttentionParts::AttentionParts;

  SeveralKernels run() {
    const auto scores = ContractionView::of(scores_), product = ContractionView::of(product_);
    OCLC_CHECK(scores && product, "attention is made of products that templates can say");
    const std::int64_t row_blocks = attention_row_blocks(scores_, product_, target_);
    fill_sizes(*scores, *product);
    values_.parameters["PRODUCTS"] = std::to_string(target_.precision.bf16_products);
    values_.parameters["MT"] = std::to_string(row_blocks);
    auto& holes = values_.holes;
    holes["A_ELEMENTS"] = within(*scores, elements_of_a(*scores, scores->inner_axis().name, kFloats));
    holes["PACK_KEYS"] = within(*scores, copy_of_panels(*scores, kFloats, kPanel));
    holes["SCORES"] = within(*scores, epilogue_value(*scores, kFloats, false));
    holes["PACK_VALUES"] = within(*product, copy_of_panels(*product, kFloats, kPanel));
    holes["EPILOGUE"] = within(*product, contraction_epilogue(*product, kFloats, false));
    describe(scores->groups() * ceil_div(scores->rows(), Expr(kPanel * row_blocks)), 1,
             fmt::format("template {}, {} products, {} blocks of 32 rows a group", kTemplate, target_.precision.bf16_products,
                         row_blocks));
    GeneratedKernel& g = out_.kernel;
    g.amx = true;
    g.tile_source = tile_text(kTemplate);
    g.local_floats = expand_macro(kTemplate, "SPACE", values_);
    g.source = g.tile_source + kernel_text(kTemplate);
    return std::move(out_);
  }
};

}  // namespace

SeveralKernels generate_attention_amx(const std::string& name, const Step& step, const Schedule& schedule,
                                      const Target& target) {
  AttentionAmx code(name, step, schedule, target);
  return code.run();
}

}  // namespace oclc
