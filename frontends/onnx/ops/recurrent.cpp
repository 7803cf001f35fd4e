// LSTM, GRU and RNN: one matrix product of the whole sequence, then a loop over its steps.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/assumptions.h"
#include "frontends/onnx/ops/quantization.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Value* activation(OpContext& c, Builder& b, const std::string& name, Value* x) {
  if (name == "Sigmoid") return b.sigmoid(x);
  if (name == "Tanh") return b.tanh(x);
  if (name == "Relu") return b.relu(x);
  if (name == "Softplus") return b.unary("softplus", x);
  if (name == "Softsign") return b.div(x, b.add(b.unary("abs", x), 1));
  c.unsupported("activations Sigmoid, Tanh, Relu, Softplus or Softsign", printable(name));
}

// What all three operators share: W[D, G*H, I], R[D, G*H, H], B[D, 2*G*H] with G gates and D directions.
struct Network {
  std::int64_t gates = 0, directions = 1, hidden = 0;
  bool reverse = false;  // the only direction is the reverse one
  bool batch_first = false;
  double clip = 0;  // 0: none
  Expr steps, batch;
  Value* x = nullptr;        // [steps, batch, I]
  Value* lengths = nullptr;  // [batch, 1]: steps that count of each sequence; null: all
  std::vector<std::string> activations;
};

Network read_network(OpContext& c, std::int64_t gates, const std::vector<std::string>& activations) {
  Network n;
  n.gates = gates;
  const std::string direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    c.fail("direction forward, reverse or bidirectional", printable(direction));
  }
  n.directions = direction == "bidirectional" ? 2 : 1;
  n.reverse = direction == "reverse";
  n.batch_first = c.flag("layout");
  n.x = c.input(0);
  if (c.rank(0) != 3 || c.rank(1) != 3 || c.rank(2) != 3) {
    c.fail("inputs X, W and R of rank 3",
           fmt::format("{}, {} and {}", c.input(0)->type.text(), c.input(1)->type.text(), c.input(2)->type.text()));
  }
  const Shape &w = c.shape(1), &r = c.shape(2);
  if (!r[2].is_constant()) c.fail("weights of known size", c.input(2)->type.text());
  n.hidden = r[2].value();
  if (c.integer("hidden_size", n.hidden) != n.hidden)
    c.fail(fmt::format("hidden_size {}, as the weights have it", n.hidden), std::to_string(c.integer("hidden_size")));
  const Shape wanted_w{Expr(n.directions), Expr(gates * n.hidden), c.shape(0)[2]},
      wanted_r{Expr(n.directions), Expr(gates * n.hidden), Expr(n.hidden)};
  if (!(w == wanted_w)) c.fail("W of " + text_of(wanted_w), text_of(w));
  if (!(r == wanted_r)) c.fail("R of " + text_of(wanted_r), text_of(r));
  if (n.batch_first) n.x = c.b.transpose(n.x, {1, 0, 2});
  // The batch of a state may be a number where that of the sequences is a name.
  for (const std::size_t i : {5, 6}) {
    const Value* state = c.optional_input(i);
    if (!state || state->type.rank() != 3) continue;
    const Expr& batch = state->type.shape[n.batch_first ? 0 : 1];
    Shape shape = n.x->type.shape;
    if (batch.is_constant()) shape[1] = batch;
    n.x = c.b.fit(n.x, shape);
  }
  n.steps = n.x->type.shape[0];
  n.batch = n.x->type.shape[1];
  if (Value* lengths = c.optional_input(4)) {
    lengths = c.b.fit(lengths, {n.batch});
    if (!(lengths->type.shape == Shape{n.batch})) c.fail(fmt::format("{} lengths", n.batch.text()), lengths->type.text());
    const bool all = lengths->content && std::all_of(lengths->content->begin(), lengths->content->end(),
                                                     [&](const Expr& e) { return e == n.steps; });
    if (!all) n.lengths = c.b.reshape(c.b.cast(lengths, DType::i64), {n.batch, Expr(1)});
  }
  std::vector<std::string> defaults;
  for (std::int64_t d = 0; d < n.directions; ++d) defaults.insert(defaults.end(), activations.begin(), activations.end());
  n.activations = c.texts("activations", defaults);
  if (n.activations.size() != defaults.size())
    c.fail(fmt::format("{} activations", defaults.size()), std::to_string(n.activations.size()));
  if (c.has("activation_alpha") || c.has("activation_beta"))
    c.unsupported("activations without parameters", "activation_alpha or activation_beta");
  n.clip = c.has("clip") ? c.real("clip") : 0;
  return n;
}

// Row `d` of input `i`, without the leading axis; null if the input is absent.
Value* of_direction(OpContext& c, std::size_t i, std::int64_t d, const Shape& wanted) {
  Value* v = c.optional_input(i);
  if (!v) return nullptr;
  const bool fits = v->type.rank() == wanted.size() + 1 && known_less(Expr(d), v->type.shape[0]);
  if (!fits || !(Shape(v->type.shape.begin() + 1, v->type.shape.end()) == wanted))
    c.fail(fmt::format("input {} of D x {}", i, text_of(wanted)), v->type.text());
  return c.b.reshape(c.b.slice_axis(v, 0, Expr(d), Expr(1)), wanted);
}

// The state before the first step, [batch, hidden].
Value* initial_state(OpContext& c, const Network& n, std::size_t i, std::int64_t d) {
  const Shape shape{n.batch, Expr(n.hidden)};
  Value* v = c.optional_input(i);
  if (!v) return c.b.expand(c.b.scalar(n.x->type.dtype, 0), shape);
  const Shape wanted =
      n.batch_first ? Shape{n.batch, Expr(n.directions), Expr(n.hidden)} : Shape{Expr(n.directions), n.batch, Expr(n.hidden)};
  v = c.b.fit(v, wanted);
  if (!(v->type.shape == wanted)) c.fail(fmt::format("input {} of {}", i, text_of(wanted)), v->type.text());
  return c.b.reshape(c.b.slice_axis(v, n.batch_first ? 1 : 0, Expr(d), Expr(1)), shape);
}

Value* clipped(Builder& b, const Network& n, Value* x) {
  if (n.clip <= 0) return x;
  return b.max(b.min(x, b.scalar(x->type.dtype, n.clip)), b.scalar(x->type.dtype, -n.clip));
}

// One step in the loop's body.
struct Step {
  Builder& b;
  Value* input = nullptr;        // [batch, gates * hidden]: the step's share of the first product
  std::vector<Value*> state;     // carried values
  std::vector<Value*> captured;  // as given to run_direction
  std::int64_t hidden = 0;

  // Columns of gate `gate` of x[batch, k * hidden].
  Value* part(Value* x, std::int64_t gate) { return b.slice_axis(x, 1, Expr(gate * hidden), Expr(hidden)); }
};

// Runs the loop in direction `d`. `cell` gives the next state; its first element is the step's result. Returns the final
// states, then the results of all steps [steps, batch, hidden] in the order of the input.
template <class Cell>
std::vector<Value*> run_direction(OpContext& c, const Network& n, std::int64_t d, Value* product,
                                  const std::vector<Value*>& initial, std::vector<Value*> captured, Cell&& cell) {
  const bool backwards = n.reverse || d == 1;
  const std::string counter = fmt::format("loop_step_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Builder inner(*body, c.b);
  Step step{inner, nullptr, {}, {}, n.hidden};
  for (std::size_t i = 0; i < initial.size(); ++i)
    step.state.push_back(body->add_input(fmt::format("state{}", i), initial[i]->type));
  captured.insert(captured.begin(), product);
  if (n.lengths) captured.push_back(n.lengths);
  std::vector<Value*> inside;
  for (std::size_t i = 0; i < captured.size(); ++i)
    inside.push_back(body->add_input(fmt::format("captured{}", i), captured[i]->type));
  const Expr at = Expr::axis(counter, n.steps);
  const Expr row = backwards ? n.steps - 1 - at : at;
  step.input = inner.reshape(inner.slice_axis(inside[0], 0, row, Expr(1)), {n.batch, Expr(n.gates * n.hidden)});
  step.captured.assign(inside.begin() + 1, inside.end() - (n.lengths ? 1 : 0));
  std::vector<Value*> next = cell(step);
  Value* result = next[0];
  if (n.lengths) {
    // Behind a sequence's end its state stays, and results are 0.
    Value* counts = inner.call("less", {inner.exprs({row}, {}), inside.back()});
    result = inner.where(counts, result, inner.scalar(result->type.dtype, 0));
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = inner.where(counts, next[i], step.state[i]);
  }
  for (std::size_t i = 0; i < next.size(); ++i) body->add_output(fmt::format("state{}", i), next[i]);
  body->add_output("result", result);
  const Node* loop = c.b.loop(n.steps, counter, initial, std::move(captured), std::move(body));
  std::vector<Value*> out;
  for (std::size_t i = 0; i < initial.size(); ++i) out.push_back(loop->output(i));
  Value* results = loop->output(initial.size());
  if (backwards) results = c.b.slice(results, {n.steps - 1, Expr(0), Expr(0)}, results->type.shape, {-1, 1, 1});
  out.push_back(results);
  return out;
}

// x W^T + b for all steps, [steps, batch, gates * hidden].
Value* input_product(OpContext& c, const Network& n, std::int64_t d, Value* bias) {
  Value* w = of_direction(c, 1, d, {Expr(n.gates * n.hidden), n.x->type.shape[2]});
  Value* product = c.b.matmul(n.x, w, false, true);
  return bias ? c.b.add(product, bias) : product;
}

// Y[steps, D, batch, hidden], then each final state [D, batch, hidden], from what run_direction gave per direction.
Outputs collect(OpContext& c, const Network& n, const std::vector<std::vector<Value*>>& directions) {
  const std::size_t states = directions[0].size() - 1;
  const Expr h = n.hidden, one = 1;
  const std::int64_t axis = n.batch_first ? 2 : 1;
  std::vector<Value*> parts;
  for (const auto& direction : directions) {
    Value* results = direction.back();
    if (n.batch_first) results = c.b.transpose(results, {1, 0, 2});
    parts.push_back(c.b.reshape(results, n.batch_first ? Shape{n.batch, n.steps, one, h} : Shape{n.steps, one, n.batch, h}));
  }
  Outputs out{parts.size() == 1 ? parts[0] : c.b.concat(parts, axis)};
  for (std::size_t i = 0; i < states; ++i) {
    parts.clear();
    for (const auto& direction : directions)
      parts.push_back(c.b.reshape(direction[i], n.batch_first ? Shape{n.batch, one, h} : Shape{one, n.batch, h}));
    out.push_back(parts.size() == 1 ? parts[0] : c.b.concat(parts, n.batch_first ? 1 : 0));
  }
  return out;
}

// Input and recurrent bias of direction `d`, [gates * hidden] each; null if there is none.
std::pair<Value*, Value*> biases(OpContext& c, const Network& n, std::int64_t d) {
  const std::int64_t width = n.gates * n.hidden;
  Value* both = of_direction(c, 3, d, {Expr(2 * width)});
  if (!both) return {nullptr, nullptr};
  return {c.b.slice_axis(both, 0, Expr(0), Expr(width)), c.b.slice_axis(both, 0, Expr(width), Expr(width))};
}

Value* recurrent_weights(OpContext& c, const Network& n, std::int64_t d) {
  return of_direction(c, 2, d, {Expr(n.gates * n.hidden), Expr(n.hidden)});
}

Outputs lstm(OpContext& c) {
  const Network n = read_network(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  const bool coupled = c.flag("input_forget");
  std::vector<std::vector<Value*>> directions;
  for (std::int64_t d = 0; d < n.directions; ++d) {
    const auto [input_bias, recurrent_bias] = biases(c, n, d);
    Value* product = input_product(c, n, d, input_bias ? c.b.add(input_bias, recurrent_bias) : nullptr);
    std::vector<Value*> captured{recurrent_weights(c, n, d)};
    if (Value* peepholes = of_direction(c, 7, d, {Expr(3 * n.hidden)})) captured.push_back(peepholes);
    const auto act = [&, d](Step& s, std::size_t which, Value* x) {
      return activation(c, s.b, n.activations[static_cast<std::size_t>(d) * 3 + which], clipped(s.b, n, x));
    };
    // Gates in the order input, output, forget, cell; peepholes for input, output, forget.
    const auto cell = [&](Step& s) -> std::vector<Value*> {
      Value *hidden = s.state[0], *memory = s.state[1];
      Value* sums = s.b.add(s.input, s.b.matmul(hidden, s.captured[0], false, true));
      const auto seen = [&](Value* gate, std::int64_t which, Value* state) {
        if (s.captured.size() < 2) return gate;
        return s.b.add(gate, s.b.mul(s.b.slice_axis(s.captured[1], 0, Expr(which * n.hidden), Expr(n.hidden)), state));
      };
      Value* in = act(s, 0, seen(s.part(sums, 0), 0, memory));
      Value* forget = coupled ? s.b.add(s.b.unary("neg", in), 1) : act(s, 0, seen(s.part(sums, 2), 2, memory));
      Value* fresh = act(s, 1, s.part(sums, 3));
      Value* next = s.b.add(s.b.mul(forget, memory), s.b.mul(in, fresh));
      Value* out = act(s, 0, seen(s.part(sums, 1), 1, next));
      return {s.b.mul(out, activation(c, s.b, n.activations[static_cast<std::size_t>(d) * 3 + 2], next)), next};
    };
    directions.push_back(
        run_direction(c, n, d, product, {initial_state(c, n, 5, d), initial_state(c, n, 6, d)}, captured, cell));
  }
  return collect(c, n, directions);
}

Outputs gru(OpContext& c) {
  const Network n = read_network(c, 3, {"Sigmoid", "Tanh"});
  const bool reset_after = c.flag("linear_before_reset");
  std::vector<std::vector<Value*>> directions;
  for (std::int64_t d = 0; d < n.directions; ++d) {
    const auto [input_bias, recurrent_bias] = biases(c, n, d);
    Value* product = input_product(c, n, d, input_bias);
    std::vector<Value*> captured{recurrent_weights(c, n, d)};
    if (recurrent_bias) captured.push_back(recurrent_bias);
    const auto act = [&, d](Step& s, std::size_t which, Value* x) {
      return activation(c, s.b, n.activations[static_cast<std::size_t>(d) * 2 + which], clipped(s.b, n, x));
    };
    // Gates in the order update, reset, hidden.
    const auto cell = [&](Step& s) -> std::vector<Value*> {
      Value* hidden = s.state[0];
      const auto rows = [&](Value* v, std::int64_t gate) {
        return s.b.slice_axis(v, 0, Expr(gate * n.hidden), Expr(n.hidden));
      };
      const auto recurrent = [&](Value* x, std::int64_t gate) {
        Value* sum = s.b.matmul(x, rows(s.captured[0], gate), false, true);
        return s.captured.size() < 2 ? sum : s.b.add(sum, rows(s.captured[1], gate));
      };
      Value* update = act(s, 0, s.b.add(s.part(s.input, 0), recurrent(hidden, 0)));
      Value* reset = act(s, 0, s.b.add(s.part(s.input, 1), recurrent(hidden, 1)));
      Value* share = reset_after ? s.b.mul(reset, recurrent(hidden, 2)) : recurrent(s.b.mul(reset, hidden), 2);
      Value* fresh = act(s, 1, s.b.add(s.part(s.input, 2), share));
      return {s.b.add(s.b.mul(s.b.add(s.b.unary("neg", update), 1), fresh), s.b.mul(update, hidden))};
    };
    directions.push_back(run_direction(c, n, d, product, {initial_state(c, n, 5, d)}, captured, cell));
  }
  return collect(c, n, directions);
}

Outputs rnn(OpContext& c) {
  const Network n = read_network(c, 1, {"Tanh"});
  std::vector<std::vector<Value*>> directions;
  for (std::int64_t d = 0; d < n.directions; ++d) {
    const auto [input_bias, recurrent_bias] = biases(c, n, d);
    Value* product = input_product(c, n, d, input_bias ? c.b.add(input_bias, recurrent_bias) : nullptr);
    const auto cell = [&](Step& s) -> std::vector<Value*> {
      Value* sum = s.b.add(s.input, s.b.matmul(s.state[0], s.captured[0], false, true));
      return {activation(c, s.b, n.activations[static_cast<std::size_t>(d)], clipped(s.b, n, sum))};
    };
    directions.push_back(run_direction(c, n, d, product, {initial_state(c, n, 5, d)}, {recurrent_weights(c, n, d)}, cell));
  }
  return collect(c, n, directions);
}

// Weights as integers of 8 bits, [directions, input, 4 * hidden], with a scale and a zero point of a direction or of each
// column: what they stand for, as LSTM takes it.
Outputs quantized_lstm(OpContext& c) {
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    Value* w = c.input(i);
    if (w->type.rank() != 3) c.fail("weights of rank 3", w->type.text());
    const auto column = [&](Value* v) {
      if (!v) return v;
      const Expr each = v->type.rank() == 2 ? v->type.shape[1] : Expr(1);
      return c.b.reshape(v, {w->type.shape[0], Expr(1), each});
    };
    const std::size_t at = i == 1 ? 8 : 10;
    w = dequantized(c, w, column(c.input(at)), column(c.optional_input(at + 1)));
    c.set_input(i, c.b.transpose(w, {0, 2, 1}));
  }
  while (c.inputs() > 8) c.drop_last_input();
  return lstm(c);
}

constexpr OpRow kRecurrentRows[] = {
    {"GRU", 1, 3, 6, gru},
    {"LSTM", 1, 3, 8, lstm},
    {"RNN", 1, 3, 6, rnn},
    {"com.microsoft.DynamicQuantizeLSTM", 1, 12, 12, quantized_lstm},
};

}  // namespace

std::span<const OpRow> recurrent_rows() { return kRecurrentRows; }

}  // namespace oclc::onnx
