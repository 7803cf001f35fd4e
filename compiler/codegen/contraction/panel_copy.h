// Texts of the holes by which templates copy operands of run time to local memory, and ask for them before.
#pragma once
#include <string>

#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

// PACK_B: fills to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] for panel_begin <= panel < panel_end and k0 <= k <
// k_end with f(B)[tap, k, min(panel * PW + j, N - 1)], panels of `panel_width` columns, by vectors of columns, or by squares of
// vectors of terms that are transposed, or one element after the other. k0 goes in steps of `chunk`, k_end is the next or the
// last term; 0: unknown.
std::string copy_of_panels(const ContractionView& view, int width, std::int64_t panel_width, std::int64_t chunk = 0);
// A_LAST_ROWS: fills to[l], l < PV, with f(A)[min(m + l, M - 1), tap, k] along the innermost row axis.
std::string last_rows_of_a(const ContractionView& view);
// NEXT_A and NEXT_B, lines that ask for what the operands load at (tap, k) and row m or column n, whose neighbours are rows or
// terms of A, and columns of B or, with the parameter B_BY_TERMS, terms. False, and nothing filled, where one operand has none.
bool ask_for_lines(const ContractionView& view, bool rows_innermost, int width, TemplateValues& values);

}  // namespace oclc
