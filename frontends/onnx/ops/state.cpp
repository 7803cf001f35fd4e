// Operators of sequence models that keep a state from call to call: writes into a cache, causal convolutions and attention by a
// recurrence.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// cache[b, .., p, ..] becomes update[b, .., p - w[b], ..] where there is such an element.
Outputs tensor_scatter(OpContext& c) {
  Value *cache = c.input(0), *update = c.input(1);
  const std::string mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") c.fail("mode linear or circular", printable(mode));
  const std::size_t axis = c.axis_attribute(-2), rank = cache->type.rank();
  if (axis == 0) c.fail("an axis other than that of the batch", "axis 0");
  Shape wanted = cache->type.shape;
  if (update->type.rank() == rank) wanted[axis] = update->type.shape[axis];
  update = c.b.fit(update, wanted);
  if (!(update->type.shape == wanted)) c.fail("an update of " + text_of(wanted), update->type.text());
  const Expr most = cache->type.shape[axis], count = update->type.shape[axis];
  if (known_less(most, count)) c.fail(fmt::format("at most {} steps of the update", most.text()), count.text());
  Shape ramp(rank, Expr(1)), column(rank, Expr(1));
  ramp[axis] = most;
  column[0] = cache->type.shape[0];
  Value* at = c.b.iota(ramp, static_cast<std::int64_t>(axis), DType::i64);
  if (Value* first = c.optional_input(2)) at = c.b.sub(at, c.b.reshape(c.b.cast(first, DType::i64), column));
  if (mode == "circular") at = c.b.call("mod", {at, c.b.exprs({most}, {})});
  Value* zero = c.b.scalar(DType::i64, 0);
  Value* inside = c.b.call("and", {c.b.call("greater_equal", {at, zero}), c.b.call("less", {at, c.b.exprs({count}, {})})});
  Value* from = c.b.expand(c.b.where(inside, at, zero), cache->type.shape);
  return {c.b.where(inside, c.b.gather_elements(update, from, static_cast<std::int64_t>(axis)), cache)};
}

Outputs causal_conv_with_state(OpContext& c) {
  Value *x = c.input(0), *weights = c.input(1);
  const std::string activation = c.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.fail("activation none, silu or swish", printable(activation));
  if (x->type.rank() != 3) c.fail("an input of rank 3", x->type.text());
  const Shape& s = x->type.shape;
  const bool fits = weights->type.rank() == 3 && s[1].is_constant() && weights->type.shape[0] == s[1] &&
                    weights->type.shape[1] == Expr(1) && weights->type.shape[2].is_constant();
  if (!fits) c.fail(fmt::format("weights [{}, 1, k] of known size", s[1].text()), weights->type.text());
  const Expr kept = weights->type.shape[2].value() - 1;
  const Shape state{s[0], s[1], kept};
  Value* past = c.optional_input(3);
  if (past) past = c.b.fit(past, state);
  if (past && !(past->type.shape == state)) c.fail("a state of " + text_of(state), past->type.text());
  if (!past) past = c.b.expand(c.b.scalar(x->type.dtype, 0), state);
  Value* all = c.b.concat({past, x}, 2);
  Value* y = c.b.conv(all, weights, c.optional_input(2), {.group = s[1].value()});
  if (activation != "none") y = c.b.mul(y, c.b.sigmoid(y));
  return {y, c.b.slice_axis(all, 2, s[2], kept)};
}

// What a step of the recurrence reads: x[B, T, heads * parts] as [T, B, heads, parts, last].
Value* by_steps(OpContext& c, Value* x, const Expr& heads, const Expr& parts, const Expr& last) {
  const Shape& s = x->type.shape;
  if (s.size() != 3) c.fail("operands of rank 3", x->type.text());
  if (!(s[2] == heads * parts * last))
    c.fail(fmt::format("a last dimension of {}", (heads * parts * last).text()), x->type.text());
  return c.b.transpose(c.b.reshape(c.b.cast(x, DType::f32), {s[0], s[1], heads, parts, last}), {1, 0, 2, 3, 4});
}

struct LinearHeads {
  Expr batch, steps, heads, group, keys, values;  // heads of keys; queries of a head; width of keys and of values
};

LinearHeads linear_heads(OpContext& c) {
  const std::int64_t query_heads = c.integer("q_num_heads"), heads = c.integer("kv_num_heads");
  if (heads < 1 || query_heads < 1 || query_heads % heads != 0)
    c.fail("a number of query heads that is a multiple of that of key heads", fmt::format("{} and {}", query_heads, heads));
  if (c.rank(0) != 3 || c.rank(2) != 3 || !c.shape(0)[2].is_constant() || !c.shape(2)[2].is_constant())
    c.fail("queries and values [B, T, width] of known width",
           fmt::format("{} and {}", c.input(0)->type.text(), c.input(2)->type.text()));
  return {c.shape(0)[0],
          c.shape(0)[1],
          heads,
          query_heads / heads,
          c.shape(0)[2].value() / query_heads,
          c.shape(2)[2].value() / heads};
}

// One step: the state before it and the step's rows of the operands give the state after it and the result [B, heads, group,
// values].
std::pair<Value*, Value*> linear_step(Builder& b, Value* state, Value* q, Value* k, Value* v, Value* decay, Value* rate) {
  if (decay) state = b.mul(state, b.exp(decay));
  if (rate) v = b.mul(rate, b.sub(v, b.matmul(k, state)));
  state = b.add(state, b.mul(b.transpose(k, {0, 1, 3, 2}), v));
  return {state, b.matmul(q, state)};
}

// The operands as [T, B, heads, .., ..]: queries, keys, values, decay and rate; the last two null where the rule has none.
std::vector<Value*> linear_operands(OpContext& c, const LinearHeads& n) {
  const std::string rule = c.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    c.fail("update_rule linear, gated, delta or gated_delta", printable(rule));
  const bool gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
  for (const auto& [i, wanted] : {std::pair{4, gated}, std::pair{5, corrected}}) {
    const bool given = c.optional_input(static_cast<std::size_t>(i)) != nullptr;
    if (given != wanted)
      c.fail(fmt::format("{} {} for rule {}", wanted ? "an" : "no", i == 4 ? "input decay" : "input beta", rule),
             given ? "one" : "none");
  }
  std::vector<Value*> rows{by_steps(c, c.input(0), n.heads, n.group, n.keys), by_steps(c, c.input(1), n.heads, Expr(1), n.keys),
                           by_steps(c, c.input(2), n.heads, Expr(1), n.values), nullptr, nullptr};
  if (gated) {
    const bool by_head = c.rank(4) == 3 && c.shape(4)[2] == n.heads;
    rows[3] = by_steps(c, c.input(4), n.heads, by_head ? Expr(1) : n.keys, Expr(1));
  }
  if (corrected) {
    const bool shared = c.rank(5) == 3 && c.shape(5)[2] == Expr(1);
    rows[4] = by_steps(c, c.input(5), shared ? Expr(1) : n.heads, Expr(1), Expr(1));
  }
  return rows;
}

Outputs linear_attention(OpContext& c) {
  c.ignore({"chunk_size"});  // how the work may be cut
  const LinearHeads n = linear_heads(c);
  const std::vector<Value*> rows = linear_operands(c, n);
  const Shape shape{n.batch, n.heads, n.keys, n.values};
  Value* past = c.optional_input(3);
  if (past) past = c.b.fit(past, shape);
  if (past && !(past->type.shape == shape)) c.fail("a state of " + text_of(shape), past->type.text());
  const DType kept = past ? past->type.dtype : c.input(0)->type.dtype;
  Value* initial = past ? c.b.cast(past, DType::f32) : c.b.expand(c.b.scalar(DType::f32, 0), shape);
  const std::string counter = fmt::format("linear_step_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Builder inner(*body, c.b);
  Value* state = body->add_input("state", initial->type);
  const Expr at = Expr::axis(counter, n.steps);
  std::vector<Value*> captured, step;
  for (Value* row : rows) {
    if (!row) {
      step.push_back(nullptr);
      continue;
    }
    Value* inside = body->add_input(fmt::format("captured{}", captured.size()), row->type);
    captured.push_back(row);
    Shape one(row->type.shape.begin() + 1, row->type.shape.end());
    step.push_back(inner.reshape(inner.slice_axis(inside, 0, at, Expr(1)), std::move(one)));
  }
  const auto [next, result] = linear_step(inner, state, step[0], step[1], step[2], step[3], step[4]);
  body->add_output("state", next);
  body->add_output("result", result);
  const Node* loop = c.b.loop(n.steps, counter, {initial}, std::move(captured), std::move(body));
  const double scale = c.real("scale", 0.0);
  Value* y = c.b.mul(loop->output(1), scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(n.keys.value())));
  y = c.b.reshape(c.b.transpose(y, {1, 0, 2, 3, 4}), {n.batch, n.steps, n.heads * n.group * n.values});
  return {c.b.cast(y, c.input(0)->type.dtype), c.b.cast(loop->output(0), kept)};
}

constexpr OpRow kStateRows[] = {
    {"CausalConvWithState", 27, 2, 4, causal_conv_with_state},
    {"LinearAttention", 27, 3, 6, linear_attention},
    {"TensorScatter", 24, 2, 3, tensor_scatter},
};

}  // namespace

std::span<const OpRow> state_rows() { return kStateRows; }

}  // namespace oclc::onnx
