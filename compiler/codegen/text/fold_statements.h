// Bodies of kernels as trees of statements, and trees as text.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/text/tokens.h"

namespace oclc {

struct Statement {
  enum class Kind { plain, note, block, branch, loop, other };  // other: while, switch
  Kind kind = Kind::plain;
  Tokens head;                             // up to `;`, or keyword and ( ); of a block {
  std::vector<Statement> body, otherwise;  // of a block, or what a head rules, notes before it; and behind `else`
  Tokens tail;                             // of a block }; of a branch `else`

  Token& first() { return head.front(); }
  const Token& first() const { return head.front(); }
};

using Statements = std::vector<Statement>;

// Nothing where brackets do not match, or a line of the preprocessor is no #pragma.
std::optional<Statements> statements_of(const std::string& text);
// Each statement that begins a line at its depth, the lines behind it moved as far.
std::string text_of(const Statements& statements);

}  // namespace oclc
