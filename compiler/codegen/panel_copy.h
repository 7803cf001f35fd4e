// Texts of the holes by which templates copy operands of run time to local memory, and ask for them before.
#pragma once
#include <string>

#include "compiler/codegen/contraction_view.h"

namespace oclc {

// PACK_B: fills to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] for panel_begin <= panel < panel_end and k0 <= k <
// k_end with f(B)[tap, k, min(panel * PW + j, N - 1)], panels of `panel_width` columns, by vectors of columns, or by squares of
// vectors of terms that are transposed, or one element after the other.
std::string copy_of_panels(const ContractionView& view, int width, std::int64_t panel_width);
// A_LAST_ROWS: fills to[l], l < PV, with f(A)[min(m + l, M - 1), tap, k] along the innermost row axis.
std::string last_rows_of_a(const ContractionView& view);
// Lines that ask for what `root`, an operand, loads at (tap, k) and row m or column n, where `lanes` are neighbours; empty:
// nowhere.
std::string lines_ahead(const ContractionView& view, NodeId root, const Axis& lanes);

}  // namespace oclc
