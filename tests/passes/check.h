// Text in, text out. `becomes` and `stays` parse a graph, run one pass, verify, compare the printed result, run the pass again
// (it must change nothing more), and compare what both graphs compute on random inputs. With OCLC_UPDATE set, the new text is
// printed to stderr.
#pragma once
#include <string_view>

#include "compiler/passes/pipeline/pass.h"

namespace oclc {

void becomes(PassFunction pass, std::string_view before, std::string_view after);
// The pass changes nothing.
void stays(PassFunction pass, std::string_view text);

}  // namespace oclc
