// Products of few rows whose weights decide the time: they are stored in 20 bits a number where the contract of precision
// leaves room for the error, else in 24: template contraction_quantized_cpu.cl. Those that are integers of 8 or 4 bits times a
// scale are stored as these: template contraction_quantized_cpu.cl.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// Asks for block-quantized weights for the contractions outside of loops that save most time by them, as long as the squares of
// their errors, relative to the results, add up to at most the square of half the budget. They have constant weights that each
// run reads from memory once: more than the last cache holds, for few rows.
void quantize_weights(Schedule& schedule, const ScheduleContext& context);

// Whether the constant weights can be block-quantized to `bits`.
bool can_store_quantized(const ContractionView& view, int bits, const std::vector<Buffer>& buffers);
GeneratedKernel emit_quantized(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                               const Target& target);

}  // namespace oclc
