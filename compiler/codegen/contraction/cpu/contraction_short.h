// Products of few rows whose weights decide the time: they are stored in 20 bits a number where the contract of precision
// leaves room for the error, else in 24. Template contraction_short_cpu.cl.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_choice.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// The strategies of contractions whose weights are stored so.
inline constexpr std::string_view kShortWeights = "short_weights_20", kLongerWeights = "short_weights_24";

// Gives one of them to the contractions outside of loops that save most time by it, as long as the squares of their errors,
// relative to the results, add up to at most the square of half the budget. They have constant weights that each run reads from
// memory once: more than the last cache holds, for few rows.
void shorten_weights(Schedule& schedule, const ScheduleContext& context);

// Code for a contraction of such a strategy; nothing for others, and for weights that have no such form.
std::optional<GeneratedKernel> generate_short(const ContractionView& view, const std::vector<Buffer>& buffers,
                                              const Target& target);

}  // namespace oclc
