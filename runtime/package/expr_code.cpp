#include "runtime/package/expr_code.h"

#include <algorithm>
#include <array>

namespace oclc::package {
namespace {

std::optional<std::int64_t> apply(ExprOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case ExprOp::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case ExprOp::mul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case ExprOp::floor_div:
    case ExprOp::mod: {
      if (b <= 0) return std::nullopt;  // as `evaluate_range` reckons
      std::int64_t quotient = a / b;
      std::int64_t rest = a % b;
      if (rest < 0) {
        --quotient;
        rest += b;
      }
      return op == ExprOp::floor_div ? quotient : rest;
    }
    case ExprOp::min:
      return a < b ? a : b;
    case ExprOp::max:
      return a > b ? a : b;
    default:
      return std::nullopt;
  }
}

// The least and the largest result at the ends of both operands.
std::optional<Range> at_ends(ExprOp op, const Range& a, const Range& b) {
  Range result{INT64_MAX, INT64_MIN};
  for (const std::int64_t x : {a.low, a.high}) {
    for (const std::int64_t y : {b.low, b.high}) {
      const auto value = apply(op, x, y);
      if (!value) return std::nullopt;
      result = {std::min(result.low, *value), std::max(result.high, *value)};
    }
  }
  return result;
}

std::optional<Range> apply(ExprOp op, const Range& a, Range b) {
  if (op != ExprOp::floor_div && op != ExprOp::mod) return at_ends(op, a, b);
  if (a.low == a.high && b.low == b.high) return at_ends(op, a, b);
  if (b.high <= 0) return std::nullopt;
  b.low = std::max<std::int64_t>(b.low, 1);  // what divides by 0 or less is refused when it happens
  if (op == ExprOp::floor_div) return at_ends(op, a, b);
  const auto first = apply(ExprOp::floor_div, a.low, b.low), last = apply(ExprOp::floor_div, a.high, b.low);
  if (b.low == b.high && first == last) return at_ends(op, a, b);
  return Range{0, b.high - 1};
}

// `read` gives the value of a symbol, or nothing.
template <class T, class Read>
std::optional<T> run(std::span<const std::int64_t> code, const Read& read) {
  std::array<T, kExprStackDepth> stack{};
  std::size_t depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto op = static_cast<ExprOp>(code[i]);
    if (op == ExprOp::constant || op == ExprOp::symbol) {
      if (++i == code.size() || depth == stack.size()) return std::nullopt;
      const std::optional<T> value = read(op == ExprOp::symbol, code[i]);
      if (!value) return std::nullopt;
      stack[depth++] = *value;
      continue;
    }
    if (depth < 2) return std::nullopt;
    const std::optional<T> result = apply(op, stack[depth - 2], stack[depth - 1]);
    if (!result) return std::nullopt;
    stack[--depth - 1] = *result;
  }
  return depth == 1 ? std::optional(stack[0]) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> evaluate(std::span<const std::int64_t> code, std::span<const std::int64_t> symbols) {
  return run<std::int64_t>(code, [&](bool symbol, std::int64_t value) -> std::optional<std::int64_t> {
    if (!symbol) return value;
    if (value < 0 || static_cast<std::uint64_t>(value) >= symbols.size()) return std::nullopt;
    return symbols[static_cast<std::size_t>(value)];
  });
}

std::optional<Range> evaluate_range(std::span<const std::int64_t> code, std::span<const Range> symbols) {
  return run<Range>(code, [&](bool symbol, std::int64_t value) -> std::optional<Range> {
    if (!symbol) return Range{value, value};
    if (value < 0 || static_cast<std::uint64_t>(value) >= symbols.size()) return std::nullopt;
    return symbols[static_cast<std::size_t>(value)];
  });
}

}  // namespace oclc::package
