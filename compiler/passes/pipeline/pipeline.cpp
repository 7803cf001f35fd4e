#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/pipeline/pass.h"
#include "compiler/support/error.h"
#include "compiler/support/nearest.h"

namespace oclc {
namespace {

constexpr int kMaxRounds = 50;

bool is_disabled(const PassContext& context, std::string_view name) {
  return std::find(context.disabled.begin(), context.disabled.end(), name) != context.disabled.end();
}

bool run(Graph& graph, const PassRow& row, const PassContext& context) {
  bool changed = false;
  for (Node* node : graph.nodes()) {
    for (const auto& body : node->bodies) changed = run(*body, row, context) || changed;
  }
  return row.function(graph, context) || changed;
}

}  // namespace

const std::vector<PassRow>& pipeline() {
  static const std::vector<PassRow> kRows = {
      {"dce", dce, "what reaches no output would be analysed by all that follow"},
      {"expand_gradients", expand_gradients, "the operators of gradients become those that all that follows knows"},
      {"fold_ramps", fold_ramps, "positions and masks are understood while they are still tensor arithmetic on ranges"},
      {"fold_shapes", fold_shapes,
       "the rest of the shape arithmetic becomes constants and expressions, so that later passes see operands they know"},
      {"cse", cse, "exporters repeat; rules that ask for a single user need repeated users joined first"},
      {"simplify_movement", simplify_movement,
       "before constants are folded, so that a transposed weight becomes a flag instead of a copy"},
      {"sink_movement", sink_movement,
       "after movement is simple, so that it moves one step instead of a chain; the next round cancels what met"},
      {"simplify_indexing", simplify_indexing, "needs ramps; leaves slices that movement and concatenation rules take further"},
      {"simplify_concat", simplify_concat, "after slices are in their simplest form"},
      {"fold_constants", fold_constants, "after movement, see there; before the algebra, which looks for constants"},
      {"canonicalize", canonicalize, "one spelling for equal arithmetic"},
      {"sink_scalars", sink_scalars,
       "after canonicalisation, so that factors stand on the right; before fusion sees prologues"},
      {"fold_batchnorm", fold_batchnorm, "after folding, since its scales are computed from four constants"},
      {"multiply_integers", multiply_integers, "behind what folds scales into weights, whose columns it asks for one"},
      {"look_up_products", look_up_products, "behind what folds scales into weights, before products are joined"},
      {"join_products", join_products, "last, since weights and biases should be final: slices keep later factors out of them"},
  };
  return kRows;
}

void check_pass_names(const std::vector<std::string>& disabled, const std::vector<std::string>& others) {
  std::vector<std::string> known = others;
  for (const PassRow& row : pipeline()) known.emplace_back(row.name);
  std::sort(known.begin(), known.end());
  for (const std::string& name : disabled) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw CompileError({.stage = "passes",
                        .wanted = fmt::format("the name of a pass ({})", fmt::join(known, ", ")),
                        .found = "'" + name + "'",
                        .advice = did_you_mean(name, known),
                        .exit_code = ExitCode::usage});
  }
}

bool run_passes(Graph& graph, const PassContext& given) {
  bool changed = false;
  std::int64_t folded_flops = 0;
  PassContext context = given;
  if (!context.folded_flops) context.folded_flops = &folded_flops;
  for (int round = 0;; ++round) {
    OCLC_CHECK(round < kMaxRounds, "passes that undo each other");
    bool again = false;
    for (const PassRow& row : pipeline()) {
      if (is_disabled(context, row.name) || !run(graph, row, context)) continue;
      again = true;
      if (context.verify_each) {
        const std::string problem = verify(graph);
        OCLC_CHECK(problem.empty(), fmt::format("after pass {}: {}", row.name, problem));
      }
      if (context.after) context.after(row.name, graph);
    }
    if (!again) return changed;
    changed = true;
  }
}

}  // namespace oclc
