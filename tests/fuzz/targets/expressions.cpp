// Expressions of sizes: as a plan holds them, as a model names them, as PyTorch writes them. What is read is printed and read
// again; bounds hold for values.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/support/error.h"
#include "frontends/onnx/dim_expression.h"
#include "frontends/pt2/program.h"
#include "runtime/package/expr_code.h"
#include "tests/fuzz/targets/input.h"

namespace {

using namespace oclc;

// Words of 8 bytes: three bounds of symbols, then code, of which every other byte string is an opcode.
void try_code(std::string_view text) {
  std::vector<std::int64_t> words(text.size() / 8);
  if (words.size() < 6) return;
  std::memcpy(words.data(), text.data(), words.size() * 8);
  package::Range ranges[3];
  std::int64_t low[3], high[3];
  for (std::size_t i = 0; i < 3; ++i) {
    low[i] = std::min(words[2 * i], words[2 * i + 1]);
    high[i] = std::max(words[2 * i], words[2 * i + 1]);
    ranges[i] = {low[i], high[i]};
  }
  const std::span<const std::int64_t> code = std::span(words).subspan(6);
  const auto range = package::evaluate_range(code, ranges);
  for (const auto& symbols : {low, high}) {
    const auto value = package::evaluate(code, std::span(symbols, 3));
    if (value && range && (*value < range->low || *value > range->high)) fuzz::found("a value outside of its bounds");
  }
}

// The value of an expression is that of its text and of its code.
void compare(const Expr& expr) {
  const std::string text = expr.text();
  const auto again = parse_expr(text);
  if (!again) fuzz::found("not read again: " + text);
  for (const std::int64_t value : {std::int64_t{1}, std::int64_t{3}, std::int64_t{64}}) {
    SymbolValues values;
    std::vector<std::int64_t> by_index;
    const std::vector<std::string> names = expr.symbols();  // in order
    for (const std::string& name : names) {
      by_index.push_back(value + static_cast<std::int64_t>(by_index.size()));
      values.emplace(name, by_index.back());
    }
    const auto code =
        expr.code([&](std::string_view name) { return std::lower_bound(names.begin(), names.end(), name) - names.begin(); });
    const auto one = expr.evaluate(values), other = again->evaluate(values), third = package::evaluate(code, by_index);
    if (one != other) fuzz::found("another value when read again: " + text + " / " + again->text());
    if (one && third && *one != *third) fuzz::found("another value as code: " + text);
  }
}

void try_name(std::string_view text) {
  if (const auto expr = parse_expr(text)) compare(*expr);
  if (const auto dim = onnx::dim_expression(text))
    if (!parse_expr(dim->text)) fuzz::found("not read: " + dim->text);
}

void try_sympy(std::string_view text) { compare(pt2::parse_sympy(text, {{"s0", {0, 100}}, {"s1", {2, 2}}})); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  try {
    if (data[0] % 3 == 0) try_code(text);
    if (data[0] % 3 == 1) try_name(text);
    if (data[0] % 3 == 2) try_sympy(text);
  } catch (const CompileError& error) {  // numbers beyond 64 bits
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
