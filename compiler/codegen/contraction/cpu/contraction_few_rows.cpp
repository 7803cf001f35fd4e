#include "compiler/codegen/contraction/cpu/contraction_few_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/contraction/prefetch.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Rows of B that one pass streams: rows that are pages apart map to one set of the L1 cache. Several row tiles stream fewer.
constexpr std::int64_t kRowsTogether = 8, kRowsOfTiles = 4, kOneTile = 2;
// Floats of A beside columns of B, in the first-level cache.
constexpr std::int64_t kCopiedFloats = 8192;

class FewRowsCode {
 public:
  FewRowsCode(const ContractionView& view, const FewRowsTiles& tiles, const Target& target)
      : view_(view), tiles_(tiles), target_(target), width_(target.vector_width) {}

  // With the template that reads B by its rows, or its columns.
  GeneratedKernel run(StrategyId strategy) {
    out_.template_name = row_of(strategy).text_template;
    if (strategy == StrategyId::few_rows)
      by_rows();
    else
      by_columns();
    fill();
    return assemble(view_.kernel(), std::move(out_));
  }

 private:
  std::int64_t rows() const { return view_.rows().value(); }
  std::int64_t columns() const { return view_.columns().value(); }

  void by_rows() {
    set("NV", tiles_.vectors);
    set("KC", kLongestChain);
    set("KT", rows() > kOneTile ? kRowsOfTiles : kRowsTogether);
    set("B_STEP", constant_stride(view_.b().index, view_.inner_axis().name).value());
    finish(std::int64_t{tiles_.vectors} * width_);
  }

  void by_columns() {
    const std::int64_t padded = ceil_div(rows(), tiles_.rows) * tiles_.rows;
    set("CT", tiles_.vectors);
    set("KC", std::min(std::max(kCopiedFloats / padded / width_ * width_, std::int64_t{width_}), view_.inner().value()));
    set("CHAIN", longest_chain(target_) * width_);
    set("B_STEP", constant_stride(view_.b().index, view_.column_axis().name).value());
    finish(tiles_.vectors);
  }

  void finish(std::int64_t tile_columns) {
    set("MR", tiles_.rows);
    set("STRIP", tiles_.strip);
    out_.groups = view_.groups() * Expr(ceil_div(columns(), tiles_.strip));
    out_.schedule = fmt::format("template {}, tile {} x {}, {} columns a group", out_.template_name, tiles_.rows, tile_columns,
                                tiles_.strip);
    out_.local_name = "block";
    out_.local_macro = "BLOCK_FLOATS";
  }

  void set(const char* parameter, std::int64_t value) { out_.values.parameters[parameter] = std::to_string(value); }

  void fill() {
    view_.fill_sizes(out_.values);
    const Axis& inner = view_.inner_axis();
    const bool vectors = inner.extent.is_constant() && inner.extent.value() % width_ == 0 &&
                         can_vectorize(part_for(view_.kernel(), view_.roles().a), inner.name, width_);
    const int lanes = vectors ? width_ : 1;
    set("VW", width_);
    set("PV", lanes);
    auto& holes = out_.values.holes;
    holes["GROUP"] = fmt::format("{}\n", fmt::join(view_.group_coordinates(), "\n"));
    holes["A_ELEMENTS"] = elements_of_a(view_, inner.name, lanes);
    Substitution first{{view_.column_axis().name, Expr(0)}};
    for (const int i : view_.roles().k) first[view_.reduction(i).name] = Expr(0);
    holes["B_POINTER"] = fmt::format("const __global float* w = {} + {};\n", view_.operand_of(view_.b()).name,
                                     view_.c_text(view_.b().index.substitute(first)));
    holes["EPILOGUE"] = contraction_epilogue(view_, width_, false);
    holes["STORE"] = "";
    holes["C_ROW"] = "";
  }

  const ContractionView& view_;
  const FewRowsTiles& tiles_;
  const Target& target_;
  const int width_;
  TileKernel out_;
};

}  // namespace

GeneratedKernel emit_few_rows(const ContractionView& view, const Choice& choice, const std::vector<Buffer>&,
                              const Target& target) {
  return FewRowsCode(view, std::get<FewRowsTiles>(choice.tiles), target).run(choice.strategy);
}

}  // namespace oclc
