#include "compiler/passes/layout/gathered_conv_cost.h"

#include <algorithm>

#include "compiler/ir/division.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

// Terms of a step.
constexpr std::int64_t kGatheredStepTerms = 32;

// Windows that small GEMMs compute, as parts of a megakernel's launch in most networks: what a launch of its own takes says
// nothing of them.
bool is_plain_window(const Node& conv) {
  return conv.get<std::int64_t>("group") == 1 && all_ones(conv.get<Ints>("strides")) && all_ones(conv.get<Ints>("dilations"));
}

}  // namespace

std::optional<GatheredSeconds> gathered_seconds(const Node& conv, const Target& target) {
  const TensorType &w = conv.inputs[1]->type, &y = conv.output()->type;
  if (!target.has_group_templates() || !y.is_static() || !w.is_static() || w.rank() < 3 || is_plain_window(conv))
    return std::nullopt;
  const std::int64_t features = w.shape[0].value(), terms = w.elements().value() / std::max<std::int64_t>(1, features),
                     taps = terms / std::max<std::int64_t>(1, w.shape[1].value());
  if (taps <= 1) return std::nullopt;
  const double flops = 2.0 * static_cast<double>(y.elements().value()) * static_cast<double>(terms);
  const auto steps = static_cast<double>(ceil_div(terms, kGatheredStepTerms)), waited = std::min(steps, cost::kGatheredSteps);
  const double step = cost::kWgmmaStepSeconds * (conv.get<std::int64_t>("group") > 1 ? cost::kGatheredGroupStep : 1);
  return GatheredSeconds{cost::kGatheredStartSeconds + waited * step + (steps - waited) * cost::kCutStepSeconds +
                             flops / (cost::kGatheredShare * target.flops),
                         cost::kSharedSumsStartSeconds + flops / (cost::kSharedSumsShare * target.flops)};
}

}  // namespace oclc
