#include "compiler/codegen/contraction/cpu/contraction_few_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/codegen/contraction/contraction_epilogue.h"
#include "compiler/codegen/contraction/contraction_operands.h"
#include "compiler/codegen/contraction/tile_kernel.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// More rows pay for a copy of the right operand. One that the second-level cache holds is read by tiles of few columns as fast.
constexpr std::int64_t kMostFewRows = 47, kLeastBytesByRows = 2 << 20, kLeastBytesByColumns = 256 << 10;
constexpr std::int64_t kLeastWidth = 64, kLeastDepth = 64;
// Rows of B that are read side by side: of one set of the first-level cache where they are pages apart. Fewer where several
// tiles of rows read them.
constexpr std::int64_t kRowsTogether = 8, kRowsOfTiles = 4, kOneTile = 2;
// Rows beside one vector of columns, where these fill no two: more load each element of A for a single product.
constexpr std::int64_t kMostRowsOfVector = 8;
// Sums of a work-item: beside what is read, in the first two caches.
constexpr std::int64_t kSumBytes = 64 << 10;
// Floats of A beside columns of B, in the first-level cache; work-items a core, so that cores end together.
constexpr std::int64_t kCopiedFloats = 8192, kStripsOfCore = 2;

// A register tile of `rows` x `vectors`: sums, vectors of B and one of A.
struct FewRowsTile {
  int rows = 1, vectors = 1;
};

// Of the tiles that `allowed` vectors may have, the one that passes over a vector of B in the fewest cycles.
template <class Allowed>
FewRowsTile choose_tile(std::int64_t rows, const Target& target, const Allowed& allowed) {
  FewRowsTile best;
  double best_cycles = 0;
  for (int vectors = 8; vectors >= 1; vectors /= 2) {
    if (!allowed(vectors)) continue;
    for (int height = static_cast<int>(rows); height >= 1; --height) {
      if (height * vectors + vectors + 1 > target.vector_registers) continue;
      const double step = std::max({height * vectors / 2.0, (height + vectors) / 2.0, 4.0}),
                   cycles = static_cast<double>(ceil_div(rows, height)) * step / vectors;
      if (best_cycles > 0 && cycles > best_cycles) continue;
      best_cycles = cycles;
      best = {height, vectors};
    }
  }
  return best;
}

class FewRowsCode {
 public:
  FewRowsCode(const ContractionView& view, const Target& target) : view_(view), target_(target), width_(target.vector_width) {}

  std::optional<GeneratedKernel> run() {
    const Expr& index = view_.b().index;
    const auto column = constant_stride(index, view_.column_axis().name),
               term = constant_stride(index, view_.inner_axis().name);
    if (!column || !term) return std::nullopt;
    const std::int64_t bytes = columns() * typical_extent(view_.inner()) * 4;
    const bool one_vector = columns() % (std::int64_t{2} * width_) != 0;
    if (*column == 1 && bytes >= kLeastBytesByRows && (!one_vector || rows() <= kMostRowsOfVector))
      by_rows(*term);
    else if (*term == 1 && bytes >= kLeastBytesByColumns && view_.inner().is_constant() && view_.inner().value() % width_ == 0)
      by_columns(*column);
    else
      return std::nullopt;
    fill();
    return assemble(view_.kernel(), std::move(out_));
  }

 private:
  std::int64_t rows() const { return view_.rows().value(); }
  std::int64_t columns() const { return view_.columns().value(); }

  void by_rows(std::int64_t step) {
    const FewRowsTile tile = choose_tile(
        rows(), target_, [&](int vectors) { return vectors == 1 || columns() % (std::int64_t{vectors} * width_) == 0; });
    const std::int64_t tile_width = std::int64_t{tile.vectors} * width_, padded = ceil_div(rows(), tile.rows) * tile.rows;
    set("NV", tile.vectors);
    set("KC", kLongestChain);
    set("KT", rows() > kOneTile ? kRowsOfTiles : kRowsTogether);
    set("B_STEP", step);
    finish("contraction_rows_cpu", tile, kSumBytes / (4 * padded), tile_width, tile_width);
  }

  void by_columns(std::int64_t step) {
    const FewRowsTile tile = choose_tile(rows(), target_, [](int) { return true; });
    const std::int64_t padded = ceil_div(rows(), tile.rows) * tile.rows;
    set("CT", tile.vectors);
    set("KC", std::min(std::max(kCopiedFloats / padded / width_ * width_, std::int64_t{width_}), view_.inner().value()));
    set("CHAIN", longest_chain(target_) * width_);
    set("B_STEP", step);
    finish("contraction_dots_cpu", tile, kSumBytes / (4 * padded * width_), std::max<std::int64_t>(width_, tile.vectors), 1);
  }

  // Strips of at most `fitting` columns, a multiple of `step`, as many for each core.
  void finish(const char* name, const FewRowsTile& tile, std::int64_t fitting, std::int64_t step, std::int64_t tile_columns) {
    const std::int64_t cores = target_.compute_units, groups = typical_extent(view_.groups()),
                       least = std::max(ceil_div(columns(), std::max(fitting, step)), ceil_div(kStripsOfCore * cores, groups)),
                       strips = groups % cores == 0 ? least : ceil_div(least, cores) * cores;
    const std::int64_t strip = ceil_div(ceil_div(columns(), strips), step) * step;
    set("MR", tile.rows);
    set("STRIP", strip);
    out_.template_name = name;
    out_.groups = view_.groups() * Expr(ceil_div(columns(), strip));
    out_.schedule = fmt::format("template {}, tile {} x {}, {} columns a group", name, tile.rows,
                                tile_columns == 1 ? tile.vectors : tile_columns, strip);
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
  const Target& target_;
  const int width_;
  TileKernel out_;
};

}  // namespace

std::optional<GeneratedKernel> generate_few_rows(const ContractionView& view, const std::vector<Buffer>& buffers,
                                                 const Target& target) {
  const ScalarNode& b = view.b();
  if (!is_plain_load(b) || !b.guard.empty() || view.stored_type(b) != DType::f32 || view.taps() != 1) return std::nullopt;
  if (buffers[static_cast<std::size_t>(view.operand_of(b).buffer)].kind == BufferKind::constant) return std::nullopt;
  if (!view.rows().is_constant() || !view.columns().is_constant() || view.rows().value() > kMostFewRows) return std::nullopt;
  const std::int64_t terms = typical_extent(view.inner()), columns = view.columns().value();
  if (columns < kLeastWidth || terms < kLeastDepth) return std::nullopt;
  return FewRowsCode(view, target).run();
}

}  // namespace oclc
