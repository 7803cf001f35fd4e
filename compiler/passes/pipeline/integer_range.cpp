#include "compiler/passes/pipeline/integer_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

constexpr int kDeepest = 24;                     // operators one above the other
constexpr std::int64_t kMostElements = 1 << 16;  // of a constant
constexpr double kNone = std::numeric_limits<double>::infinity();

using Range = std::optional<IntegerRange>;

Range join(const Range& a, const Range& b) {
  if (!a || !b) return std::nullopt;
  return IntegerRange{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Range range_of_constant(const HostTensor& tensor) {
  if (tensor.dtype() == DType::string || tensor.elements() == 0 || tensor.elements() > kMostElements) return std::nullopt;
  IntegerRange range{kNone, -kNone};
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = tensor.at(i);
    if (!(std::nearbyint(x) == x)) return std::nullopt;
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
  }
  return range;
}

Range range_at(const Value* value, int depth);

Range range_of_node(const Node& node, int depth) {
  const std::string_view op = node.op->name;
  const auto of = [&](std::size_t i) { return range_at(node.inputs[i], depth + 1); };
  if (op == "cast" || op == "reshape" || op == "transpose" || op == "slice" || op == "expand" || op == "store" ||
      op == "max_pool")
    return of(0);
  if (op == "pad")
    return node.get<std::string>("mode") != "constant" ? of(0)
           : std::nearbyint(node.get<double>("value")) == node.get<double>("value")
               ? join(of(0), IntegerRange{node.get<double>("value"), node.get<double>("value")})
               : std::nullopt;
  if (op == "round" || op == "floor" || op == "ceil") return of(0) ? of(0) : IntegerRange{-kNone, kNone};
  if (op == "relu") {
    const Range x = of(0);
    return x ? Range(IntegerRange{std::max(x->low, 0.0), std::max(x->high, 0.0)}) : std::nullopt;
  }
  if (op != "add" && op != "sub" && op != "max" && op != "min") return std::nullopt;
  const Range a = of(0), b = of(1);
  if (!a || !b) return std::nullopt;
  if (op == "max") return IntegerRange{std::max(a->low, b->low), std::max(a->high, b->high)};
  if (op == "min") return IntegerRange{std::min(a->low, b->low), std::min(a->high, b->high)};
  const IntegerRange sum =
      op == "add" ? IntegerRange{a->low + b->low, a->high + b->high} : IntegerRange{a->low - b->high, a->high - b->low};
  // Sums of floats beyond are rounded, those of infinite bounds stay integers.
  return std::isnan(sum.low) || std::isnan(sum.high) ? IntegerRange{-kNone, kNone} : sum;
}

Range range_at(const Value* value, int depth) {
  if (!value || depth > kDeepest) return std::nullopt;
  Range found;
  if (const HostTensor* tensor = constant_of(value))
    found = range_of_constant(*tensor);
  else if (value->producer)
    found = range_of_node(*value->producer, depth);
  const Range type = range_of_type(value->type.dtype);
  if (!type) return is_float(value->type.dtype) ? found : std::nullopt;
  // Numbers outside of the type wrap or saturate, anywhere within it.
  return found && found->is_within(type->low, type->high) ? found : type;
}

}  // namespace

std::optional<IntegerRange> range_of_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return IntegerRange{0, 1};
    case DType::u4:
      return IntegerRange{0, 15};
    case DType::i4:
      return IntegerRange{-8, 7};
    case DType::u2:
      return IntegerRange{0, 3};
    case DType::i2:
      return IntegerRange{-2, 1};
    case DType::u8:
      return IntegerRange{0, 255};
    case DType::i8:
      return IntegerRange{-128, 127};
    case DType::u16:
      return IntegerRange{0, 65535};
    case DType::i16:
      return IntegerRange{-32768, 32767};
    default:
      return std::nullopt;
  }
}

std::optional<IntegerRange> integer_range(const Value* value) { return range_at(value, 0); }

}  // namespace oclc
