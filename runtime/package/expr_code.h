// Evaluates the integer expressions of a plan. Code is reverse Polish notation: an opcode, `constant` and `symbol` followed by
// their operand. Shared by the compiler (which writes code) and the runtime (which evaluates it when a session binds symbols).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace oclc::package {

enum class ExprOp : std::int64_t { constant = 0, symbol = 1, add = 2, mul = 3, floor_div = 4, mod = 5, min = 6, max = 7 };

// Deepest operand stack that valid code may need; the verifier refuses more.
inline constexpr std::size_t kExprStackDepth = 64;

// Value of `code`, or nothing if it is malformed, overflows int64, or divides by what is not positive. Division and modulo
// round down (floor), as in the compiler. `symbols[i]` is the value of plan symbol i. Thread-safe.
std::optional<std::int64_t> evaluate(std::span<const std::int64_t> code, std::span<const std::int64_t> symbols);

struct Range {
  std::int64_t low = 0, high = 0;
};

// Bounds of the value while symbol i lies in `symbols[i]`: exact where the range of every symbol is one value, else possibly
// wider than what occurs. Nothing if the code is malformed, a bound overflows or no divisor is positive. Thread-safe.
std::optional<Range> evaluate_range(std::span<const std::int64_t> code, std::span<const Range> symbols);

}  // namespace oclc::package
