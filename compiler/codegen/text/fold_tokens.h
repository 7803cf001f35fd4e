// What is constant in the expressions of a statement, folded.
#pragma once
#include "compiler/codegen/text/tokens.h"

namespace oclc {

// Operations on numbers of type int become numbers, `1 ? a : b`, `x * 1`, `x + 0`, `1 && x` and the like what they come to;
// each expression of a statement by itself. What is no expression stays. Whether anything changed.
bool fold_expressions(Tokens& tokens);

}  // namespace oclc
