#include "compiler/passes/layout/gathered_conv_cost.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Terms of a step, and columns of the narrowest tile.
constexpr std::int64_t kGatheredStepTerms = 32, kNarrowTile = 32;

// Windows and products that small GEMMs compute where launches are joined, as parts of one: what a launch of its own takes says
// nothing of them.
bool is_plain(const Node& conv, std::int64_t groups, std::int64_t taps) {
  return taps <= 1 || (groups == 1 && all_ones(conv.get<Ints>("strides")) && all_ones(conv.get<Ints>("dilations")));
}

double product_seconds(std::int64_t terms, std::int64_t groups, std::int64_t features, double results) {
  const auto steps = static_cast<double>(ceil_div(terms, kGatheredStepTerms)), waited = std::min(steps, cost::kGatheredSteps);
  if (groups > 1) {
    const bool narrow = features / groups <= kNarrowTile;
    return cost::kGatheredGroupsStartSeconds + results * cost::kGatheredGroupsResultSeconds +
           steps * (narrow ? cost::kNarrowGroupsStepSeconds : cost::kWideGroupsStepSeconds);
  }
  return cost::kGatheredStartSeconds + waited * cost::kGatheredStepSeconds + (steps - waited) * cost::kCutStepSeconds +
         results * cost::kGatheredResultSeconds;
}

double sums_seconds(std::int64_t terms, std::int64_t taps, double results, double seconds_of_peak) {
  if (taps <= 1) return cost::kSharedSumsStartSeconds + seconds_of_peak / cost::kOneTapSumsShare;
  return cost::kSharedSumsStartSeconds + results * cost::kSharedSumsResultSeconds +
         static_cast<double>(terms) * cost::kSharedSumsTermSeconds + seconds_of_peak / cost::kSharedSumsShare;
}

}  // namespace

std::optional<GatheredSeconds> gathered_seconds(const Node& conv, const ConvolutionOptions& options) {
  const Target& target = options.target;
  const TensorType &w = conv.inputs[1]->type, &y = conv.output()->type;
  if (!target.has_group_templates() || !y.is_static() || !w.is_static() || w.rank() < 3) return std::nullopt;
  const std::int64_t features = w.shape[0].value(), terms = w.elements().value() / std::max<std::int64_t>(1, features),
                     taps = terms / std::max<std::int64_t>(1, w.shape[1].value());
  const std::int64_t groups = conv.get<std::int64_t>("group");
  if (options.launches_join && is_plain(conv, groups, taps)) return std::nullopt;
  // Sums of one tap read planes; beside groups, and of channels that are innermost, tiles are faster.
  if (taps <= 1 && (groups > 1 || becomes_channels_last(conv.inputs[0]))) return std::nullopt;
  const auto results = static_cast<double>(y.elements().value());
  const double seconds_of_peak = 2 * results * static_cast<double>(terms) / target.flops;
  GatheredSeconds seconds{product_seconds(terms, groups, features, results) + seconds_of_peak / cost::kGatheredShare,
                          sums_seconds(terms, taps, results, seconds_of_peak),
                          {}};
  if (groups > 1 && target.precision.rounds_operands())
    seconds.patches =
        cost::kPatchesStartSeconds + results * cost::kPatchesResultSeconds + seconds_of_peak / cost::kPatchesShare;
  return seconds;
}

}  // namespace oclc
