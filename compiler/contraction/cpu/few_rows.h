// Few rows beside a right operand that is given at run time and read once, where it lies: along its rows
// (contraction_rows_cpu.cl) or its columns (contraction_dots_cpu.cl). The other templates read it by tiles of few columns, a
// page from term to term, or copy it.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/contraction/problem.h"
#include "compiler/contraction/tiles.h"

namespace oclc {

// Why there are none; empty for such an operand.
std::string_view refuse_few_rows(const Problem& problem);
// Why they lose; empty for few rows of one that is large enough, of columns or terms.
std::string_view few_rows_lose(const Problem& problem);
// Nothing where B's rows, or its columns, do not lie so, or where it is small; `if_small`: there as well.
std::optional<FewRowsTiles> choose_rows(const Problem& problem, const Target& target, bool if_small = false);
std::optional<FewRowsTiles> choose_dots(const Problem& problem, const Target& target, bool if_small = false);

}  // namespace oclc
