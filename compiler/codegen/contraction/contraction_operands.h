// How the templates contraction_*_cpu.cl read A and B: texts of their holes ROW_STATE, A_POINTER, A_ELEMENTS, B_POINTER,
// PACK_B.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/contraction/contraction_view.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// What a choice says of them, and where the elements of a constant B lie that is packed.
struct OperandReads : FmaTiles {
  std::optional<PackedOperand> constant_b;
};

// Fills these holes, and the parameter PV of the template that copies A.
void fill_operands(const ContractionView& view, const OperandReads& reads, const Target& target, TemplateValues& values);
// Lines, `first` before them, that make of `v` the vector of A along `axis` at (row m, tap, k), one element if `lanes` is 1:
// the text of A_ELEMENTS.
std::string elements_of_a(const ContractionView& view, const std::string& axis, int lanes,
                          const std::vector<std::string>& first = {});
// Whether A is floats read in place, unpadded, with one tap and unit stride along k.
bool has_row_pointers(const ContractionView& view);
// The text of ROW_STATE for such an A.
std::optional<std::string> row_pointers(const ContractionView& view);
// The zeros, named `zero` in the code, that pointers of taps in the padding go to; nothing if no pointer does.
std::optional<HostTensor> padding_zeros(const ContractionView& view, const OperandReads& reads);

}  // namespace oclc
