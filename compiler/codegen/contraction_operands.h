// How the templates contraction_*_cpu.cl read A and B: texts of their holes ROW_STATE, A_POINTER, A_ELEMENTS, B_POINTER,
// PACK_B.
#pragma once
#include <optional>

#include "compiler/codegen/contraction_choice.h"
#include "compiler/codegen/contraction_view.h"
#include "compiler/codegen/template_text.h"

namespace oclc {

// Fills these holes, and the parameter PV of the template that copies A.
void fill_operands(const ContractionView& view, const ContractionChoice& choice, const Target& target, TemplateValues& values);
// The zeros, named `zero` in the code, that pointers of taps in the padding go to; nothing if no pointer does.
std::optional<HostTensor> padding_zeros(const ContractionView& view, const ContractionChoice& choice);

}  // namespace oclc
