#include "compiler/ops/elementwise_content.h"

#include <algorithm>

#include "compiler/ops/reference/host_index.h"

namespace oclc {
namespace {

using Known = std::optional<Expr>;

bool known_positive(const Expr& e) { return known_less(Expr(0), e); }

Known quotient(const Expr& a, const Expr& b, const Expr&) {
  return known_nonnegative(a) && known_positive(b) ? Known(floor_div(a, b)) : std::nullopt;
}
Known remainder(const Expr& a, const Expr& b, const Expr&) {
  return known_nonnegative(a) && known_positive(b) ? Known(floor_mod(a, b)) : std::nullopt;
}
Known floor_remainder(const Expr& a, const Expr& b, const Expr&) {
  return known_positive(b) ? Known(floor_mod(a, b)) : std::nullopt;
}
Known equal(const Expr& a, const Expr& b, const Expr&) {
  if (a == b) return Expr(1);
  return known_less(a, b) || known_less(b, a) ? Known(Expr(0)) : std::nullopt;
}
Known less(const Expr& a, const Expr& b, const Expr&) {
  if (known_less(a, b)) return Expr(1);
  return known_less_equal(b, a) ? Known(Expr(0)) : std::nullopt;
}
Known less_equal(const Expr& a, const Expr& b, const Expr&) {
  if (known_less_equal(a, b)) return Expr(1);
  return known_less(b, a) ? Known(Expr(0)) : std::nullopt;
}
Known where(const Expr& condition, const Expr& a, const Expr& b) {
  if (a == b || (condition.is_constant() && condition.value() != 0)) return a;
  return condition.is_constant() ? Known(b) : std::nullopt;
}
Known magnitude(const Expr& a, const Expr&, const Expr&) {
  if (known_nonnegative(a)) return a;
  return known_less_equal(a, Expr(0)) ? Known(-a) : std::nullopt;
}

struct ContentRow {
  std::string_view op;
  Known (*apply)(const Expr& a, const Expr& b, const Expr& c);
};

// What can be said of symbolic operands. Overflow aside: sizes are far below 2^63.
constexpr ContentRow kContentRows[] = {
    {"neg", [](const Expr& a, const Expr&, const Expr&) { return Known(-a); }},
    {"abs", magnitude},
    {"relu", [](const Expr& a, const Expr&, const Expr&) { return Known(max(a, Expr(0))); }},
    {"add", [](const Expr& a, const Expr& b, const Expr&) { return Known(a + b); }},
    {"sub", [](const Expr& a, const Expr& b, const Expr&) { return Known(a - b); }},
    {"mul", [](const Expr& a, const Expr& b, const Expr&) { return Known(a * b); }},
    {"fma", [](const Expr& a, const Expr& b, const Expr& c) { return Known(a * b + c); }},
    {"max", [](const Expr& a, const Expr& b, const Expr&) { return Known(max(a, b)); }},
    {"min", [](const Expr& a, const Expr& b, const Expr&) { return Known(min(a, b)); }},
    {"div", quotient},
    {"fmod", remainder},
    {"mod", floor_remainder},
    {"equal", equal},
    {"less", less},
    {"less_equal", less_equal},
    {"greater", [](const Expr& a, const Expr& b, const Expr& c) { return less(b, a, c); }},
    {"greater_equal", [](const Expr& a, const Expr& b, const Expr& c) { return less_equal(b, a, c); }},
    {"where", where},
};

// Result on constants: the operator's own reference, wrapped to the type by a round trip through it.
Expr on_constants(const Node& node, std::int64_t a, std::int64_t b, std::int64_t c) {
  const DType dtype = node.inputs.back()->type.dtype;
  const ScalarOp& scalar = *node.op->scalar;
  HostTensor result(scalar.result_is_bool ? DType::boolean : dtype, {});
  result.set_int(0, (dtype == DType::u64 && scalar.on_u64 ? scalar.on_u64 : scalar.on_int)(a, b, c));
  return result.int_at(0);
}

}  // namespace

std::optional<std::vector<Expr>> elementwise_content(const Node& node) {
  const TensorType& type = node.output(0)->type;
  if (!type.is_static() || is_float(type.dtype) || is_narrow(type.dtype)) return std::nullopt;
  Sizes shape;
  for (const Expr& dim : type.shape) shape.push_back(dim.value());
  std::vector<Sizes> strides;
  for (const Value* input : node.inputs) {
    if (!input->content) return std::nullopt;
    Sizes own;
    for (const Expr& dim : input->type.shape) own.push_back(dim.value());
    strides.push_back(broadcast_strides(own, shape));
  }
  const auto row = std::find_if(std::begin(kContentRows), std::end(kContentRows),
                                [&](const ContentRow& r) { return r.op == node.op->name; });
  std::vector<Expr> values;
  bool known = true;
  walk(shape, strides, [&](std::int64_t, const Sizes& at) {
    Expr v[3];
    bool constants = true;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      v[k] = node.inputs[k]->content->at(static_cast<std::size_t>(at[k]));
      constants = constants && v[k].is_constant();
    }
    Known value;
    if (constants) {
      value = on_constants(node, v[0].value(), v[1].value(), v[2].value());
    } else if (row != std::end(kContentRows)) {
      value = row->apply(v[0], v[1], v[2]);
    }
    known = known && value;
    if (known) values.push_back(*value);
  });
  return known ? std::optional(std::move(values)) : std::nullopt;
}

}  // namespace oclc
