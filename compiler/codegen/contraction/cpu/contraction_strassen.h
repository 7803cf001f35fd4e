// Products of many rows by Strassen's seven products of quadrants instead of eight, where the contract of precision leaves room
// for their rounding errors. Template contraction_strassen_cpu.cl.
#pragma once
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/schedule/pass.h"

namespace oclc {

// Asks for this strategy for the contractions that gain most by it, as long as the squares of their errors, relative to the
// results, add up to at most the square of half the budget. They have constant weights and rows enough to hide their way from
// memory.
void strassen(Schedule& schedule, const ScheduleContext& context);

GeneratedKernel emit_strassen(const ContractionView& view, const Choice& choice, const std::vector<Buffer>& buffers,
                              const Target& target);

}  // namespace oclc
