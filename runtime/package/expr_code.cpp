#include "runtime/package/expr_code.h"

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
      if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
      std::int64_t quotient = a / b;
      std::int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
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

}  // namespace

std::optional<std::int64_t> evaluate(std::span<const std::int64_t> code, std::span<const std::int64_t> symbols) {
  std::array<std::int64_t, kExprStackDepth> stack{};
  std::size_t depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto op = static_cast<ExprOp>(code[i]);
    if (op == ExprOp::constant || op == ExprOp::symbol) {
      if (++i == code.size() || depth == stack.size()) return std::nullopt;
      std::int64_t value = code[i];
      if (op == ExprOp::symbol) {
        if (value < 0 || static_cast<std::uint64_t>(value) >= symbols.size()) return std::nullopt;
        value = symbols[static_cast<std::size_t>(value)];
      }
      stack[depth++] = value;
      continue;
    }
    if (depth < 2) return std::nullopt;
    const auto result = apply(op, stack[depth - 2], stack[depth - 1]);
    if (!result) return std::nullopt;
    stack[--depth - 1] = *result;
  }
  return depth == 1 ? std::optional(stack[0]) : std::nullopt;
}

}  // namespace oclc::package
