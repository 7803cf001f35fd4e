// Formulas in index notation: "delta[i, j] = alpha * post[i] * w[i, j] * pre[j]". Text to tree; formula.cpp has the tokens,
// parse.cpp the grammar.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"

namespace oclc::custom {

// Of a file's text; both count from 1, columns in bytes.
struct Place {
  int line = 1, column = 1;
};

// Text inside of a file. `exact`: its characters stand in the file one by one from `begin` on, so that each has a place of its
// own; else (text with escapes) all are at `begin`.
struct Excerpt {
  std::string file, text;
  Place begin;
  bool exact = true;
};

// CompileError "file:line:column: what". Wanted, found and advice as in CompileError::Parts.
[[noreturn]] void fail_at(const std::string& file, const Place& place, std::string wanted, std::string found = {},
                          std::string advice = {}, ExitCode code = ExitCode::bad_model);

enum class Form {
  number,   // 0.5, 3
  text,     // "tanh"
  name,     // alpha
  element,  // w[i, j]: parts are the positions
  padded,   // pad(x, 0)[i - 1]: the first part is the value outside
  call,     // exp(x)
  reduce,   // sum(i, j: x): one part
  unary,    // -x, !x
  binary,   // x + y
  choice    // c ? x : y
};

struct Formula {
  Form form = Form::number;
  Place place;
  std::string name;  // of an operand, a function, a reduction; an operator's sign; a text
  double number = 0;
  bool whole = false;                // a number without a point and an exponent
  std::vector<std::string> indices;  // of a reduction
  std::vector<Formula> parts;
  int depth = 1;
};

// "y[i] = ..", or with += for positions that are computed.
struct Line {
  Formula target;  // a name or an element
  bool adds = false;
  Formula value;
};

// "w: T[..., M, N]?"
struct Operand {
  std::string name, type;
  bool leading = false;       // begins with dimensions that are not named: "..."
  std::vector<Formula> dims;  // the named ones
  bool optional = false, variable = false;
  Place place;
};

// Deepest tree: what recurses over one needs no more of the stack than this.
inline constexpr int kDeepestFormula = 200;

std::vector<Line> parse_lines(const Excerpt& text);
Formula parse_condition(const Excerpt& text);
Operand parse_operand(const Excerpt& text);
// The formula as text, on one line, with no more parentheses than it needs to be read.
std::string text_of(const Formula& formula);

}  // namespace oclc::custom
