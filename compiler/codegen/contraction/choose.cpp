#include "compiler/codegen/contraction/choose.h"

#include <algorithm>

#include "compiler/codegen/contraction/amx/contraction_amx.h"
#include "compiler/codegen/contraction/cpu/contraction_quantized.h"
#include "compiler/codegen/contraction/problem_of.h"
#include "compiler/contraction/cpu/quantized.h"
#include "compiler/contraction/tuned_row.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Why the constant weights have no such form; empty if they have, or where the strategy wants none.
std::string_view refuse_weights(StrategyId strategy, const ContractionView& view, const std::vector<Buffer>& buffers) {
  switch (strategy) {
    case StrategyId::quantized_4:
    case StrategyId::quantized_8:
      return can_store_quantized(view, quantized_bits(strategy), buffers)
                 ? std::string_view()
                 : "weights that are no integers of so few bits times a scale";
    case StrategyId::quantized_20:
    case StrategyId::quantized_24:
      return can_store_quantized(view, quantized_bits(strategy), buffers)
                 ? std::string_view()
                 : "weights that are not finite, or a block's scale is no normal number";
    case StrategyId::amx_limbs:
    case StrategyId::amx_limb_window:
      return can_store_limbs(view, buffers) ? std::string_view()
                                            : "weights that are not finite, or whose columns' largest are many times the usual";
    case StrategyId::amx_rows:
    case StrategyId::amx_window:
    case StrategyId::amx_patches:
      return can_store_parts(view, buffers) ? std::string_view() : "weights that are not finite, or round to infinity";
    default:
      return {};
  }
}

Problem problem_on(const ContractionView& view, const std::vector<Buffer>& buffers, const Target& target) {
  return target.has_group_templates() ? gpu_problem_of(view, buffers) : problem_of(view, buffers);
}

std::optional<Choice> best_of(const std::vector<Candidate>& ranked, const ContractionView& view,
                              const std::vector<Buffer>& buffers) {
  const auto best = std::find_if(ranked.begin(), ranked.end(), [&](const Candidate& c) {
    return c.is_taken() && refuse_weights(c.strategy->id, view, buffers).empty();
  });
  return best == ranked.end() ? std::nullopt : best->choice;
}

// With those that lose; a row whose form the weights do not have has no choice.
std::vector<Candidate> legal_candidates(const Problem& problem, const ContractionView& view, const std::vector<Buffer>& buffers,
                                        const Target& target) {
  std::vector<Candidate> ranked = rank(problem, target, Losers::planned);
  for (Candidate& c : ranked) {
    if (!c.choice) continue;
    const std::string_view why_not = refuse_weights(c.strategy->id, view, buffers);
    if (why_not.empty()) continue;
    c.why_not = why_not;
    c.choice.reset();
  }
  std::stable_partition(ranked.begin(), ranked.end(), [](const Candidate& c) { return c.choice.has_value(); });
  return ranked;
}

// Attention, loops in one kernel and chains have texts of their own for all of their kernels.
void choose_for(std::span<const Step> steps, Schedule& schedule, const Target& target, std::vector<RankedContraction>* ranked) {
  for (const Step& step : steps) {
    if (step.is_kernel()) {
      Kernel& kernel = schedule.kernel(step);
      if (!kernel.contraction) continue;
      kernel.contraction->choice = choose(kernel, schedule.buffers, target);
      if (ranked) ranked->push_back({kernel.name, candidates_of(kernel, schedule.buffers, target)});
    } else if (const auto* loop = step.as<LoopStep>()) {
      choose_for(loop->body, schedule, loop->slots > 0 ? one_core(target) : target, ranked);
    } else if (step.is<ParallelLoopsStep>() || step.is<MegakernelStep>()) {
      choose_for(step.body(), schedule, target, ranked);
    }
  }
}

}  // namespace

Target target_of(const Kernel& kernel, const Target& target) {
  Target own = target;
  if (kernel.contraction && kernel.contraction->integers) own.precision = target.precision.of_integers();
  return own;
}

std::vector<Candidate> candidates_of(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& given) {
  const auto view = ContractionView::of(kernel);
  if (!view) return {{&row_of(StrategyId::loops), Choice{}, {}}};
  const Target target = target_of(kernel, given);
  return legal_candidates(problem_on(*view, buffers, target), *view, buffers, target);
}

Choice choose(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& given) {
  const Target target = target_of(kernel, given);
  const auto view = !target.counts_loops() ? ContractionView::of(kernel) : std::nullopt;
  if (!view) return {};
  const Problem problem = problem_on(*view, buffers, target);
  if (target.tuning)
    if (const std::string key = row_key(problem, target); !key.empty())
      return tuned_row(key, legal_candidates(problem, *view, buffers, target), target);
  const auto best = best_of(rank(problem, target), *view, buffers);
  OCLC_CHECK(best, "loops compute any contraction");
  return *best;
}

std::optional<Choice> choose_part(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& given) {
  const auto view = ContractionView::of(kernel);
  if (!view) return std::nullopt;
  const Target target = target_of(kernel, given);
  Problem problem = gpu_problem_of(*view, buffers);
  problem.is_part = true;
  const auto best = best_of(rank(problem, target), *view, buffers);
  const bool is_small = best && (best->strategy == StrategyId::small_gemm || best->strategy == StrategyId::small_gemm_f16);
  return is_small ? best : std::nullopt;
}

void choose_contractions(Schedule& schedule, const Target& target, std::vector<RankedContraction>* ranked) {
  for (const EntrySchedule& entry : schedule.entries) choose_for(entry.steps, schedule, target, ranked);
}

}  // namespace oclc
