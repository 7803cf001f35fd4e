// LSTM and GRU: one matrix product of the whole sequence, then a loop over its steps; while training a step after another,
// since loops have no gradient.
#include <fmt/format.h>

#include <functional>

#include "compiler/support/error.h"
#include "frontends/cpp/nn.h"

namespace oclc::nn {
namespace {

struct Cell {
  std::int64_t gates = 0;
  std::size_t states = 0;
  // The next states, the first of which is the result, of a step's share of the first product [N, gates * H], the states [N,
  // H], the recurrent weight [gates * H, H] and, of a GRU, its bias.
  std::vector<Value*> (*step)(Builder& b, Value* input, const std::vector<Value*>& states, Value* weight, Value* bias,
                              std::int64_t hidden);
};

Value* gate(Builder& b, Value* x, std::int64_t which, std::int64_t hidden) {
  return b.slice_axis(x, -1, Expr(which * hidden), Expr(hidden));
}

// Gates in PyTorch's order: input, forget, cell, output.
std::vector<Value*> lstm_step(Builder& b, Value* input, const std::vector<Value*>& states, Value* weight, Value*,
                              std::int64_t hidden) {
  Value* sums = b.add(input, b.matmul(states[0], weight, false, true));
  Value* memory = b.add(b.mul(b.sigmoid(gate(b, sums, 1, hidden)), states[1]),
                        b.mul(b.sigmoid(gate(b, sums, 0, hidden)), b.tanh(gate(b, sums, 2, hidden))));
  return {b.mul(b.sigmoid(gate(b, sums, 3, hidden)), b.tanh(memory)), memory};
}

// Reset, update, new; the new gate's recurrent share, bias and all, is under the reset gate.
std::vector<Value*> gru_step(Builder& b, Value* input, const std::vector<Value*>& states, Value* weight, Value* bias,
                             std::int64_t hidden) {
  Value* recurrent = b.add(b.matmul(states[0], weight, false, true), bias);
  const auto sum = [&](std::int64_t which) { return b.add(gate(b, input, which, hidden), gate(b, recurrent, which, hidden)); };
  Value* reset = b.sigmoid(sum(0));
  Value* update = b.sigmoid(sum(1));
  Value* fresh = b.tanh(b.add(gate(b, input, 2, hidden), b.mul(reset, gate(b, recurrent, 2, hidden))));
  return {b.add(fresh, b.mul(update, b.sub(states[0], fresh)))};
}

constexpr Cell kLstm{4, 2, lstm_step}, kGru{3, 1, gru_step};

// One layer in one direction over x[T, N, I]; results [T, N, H] and the final states [N, H].
class Direction {
 public:
  Direction(Network& net, const Cell& cell, std::int64_t hidden, bool backwards, const std::string& suffix)
      : net_(net), cell_(cell), hidden_(hidden), backwards_(backwards), suffix_(suffix) {}

  Tensor run(const Tensor& x, std::vector<Tensor>& finals) {
    Builder& b = net_.builder();
    const std::int64_t width = cell_.gates * hidden_;
    const Tensor input_bias = net_.parameter("bias_ih" + suffix_, {width}),
                 recurrent_bias = net_.parameter("bias_hh" + suffix_, {width});
    const Tensor in = matmul(x, net_.parameter("weight_ih" + suffix_, {width, x.size(-1)}), false, true) +
                      (cell_.gates == 4 ? input_bias + recurrent_bias : input_bias);
    weight_ = net_.parameter("weight_hh" + suffix_, {width, hidden_}).value();
    bias_ = recurrent_bias.value();
    Value* zero = b.expand(b.scalar(x.dtype(), 0), {x.dim(1), Expr(hidden_)});
    const std::vector<Value*> initial(cell_.states, zero);
    std::vector<Value*> last;
    Value* results = net_.use() == Use::training ? unrolled(in, initial, last) : looped(in, initial, last);
    for (Value* state : last) finals.push_back(net_.tensor(state));
    return net_.tensor(results);
  }

 private:
  Expr row(const Expr& steps, const Expr& at) const { return backwards_ ? steps - 1 - at : at; }

  Value* unrolled(const Tensor& in, std::vector<Value*> states, std::vector<Value*>& last) {
    Builder& b = net_.builder();
    const std::int64_t steps = in.size(0);
    std::vector<Value*> results(static_cast<std::size_t>(steps));
    for (std::int64_t t = 0; t < steps; ++t) {
      const Expr at = row(Expr(steps), Expr(t));
      Value* one = b.reshape(b.slice_axis(in.value(), 0, at, Expr(1)), {in.dim(1), in.dim(2)});
      states = cell_.step(b, one, states, weight_, bias_, hidden_);
      results[static_cast<std::size_t>(at.value())] = b.reshape(states[0], {Expr(1), in.dim(1), Expr(hidden_)});
    }
    last = states;
    return results.size() == 1 ? results[0] : b.concat(results, 0);
  }

  Value* looped(const Tensor& in, const std::vector<Value*>& initial, std::vector<Value*>& last) {
    Builder& b = net_.builder();
    const Expr steps = in.dim(0);
    const std::string counter = fmt::format("step_{}", b.graph().size());
    auto body = std::make_unique<Graph>();
    body->name = "step";
    Builder inner(*body, b.source());
    std::vector<Value*> states;
    for (std::size_t i = 0; i < initial.size(); ++i)
      states.push_back(body->add_input(fmt::format("state{}", i), initial[i]->type));
    Value* input = body->add_input("input", in.value()->type);
    Value* weight = body->add_input("weight", weight_->type);
    Value* bias = body->add_input("bias", bias_->type);
    const Expr at = row(steps, Expr::axis(counter, steps));
    Value* one = inner.reshape(inner.slice_axis(input, 0, at, Expr(1)), {in.dim(1), in.dim(2)});
    const std::vector<Value*> next = cell_.step(inner, one, states, weight, bias, hidden_);
    for (std::size_t i = 0; i < next.size(); ++i) body->add_output(fmt::format("state{}", i), next[i]);
    body->add_output("result", next[0]);
    const Node* loop = b.loop(steps, counter, initial, {in.value(), weight_, bias_}, std::move(body));
    for (std::size_t i = 0; i < initial.size(); ++i) last.push_back(loop->output(i));
    Value* results = loop->output(initial.size());
    if (backwards_) results = b.slice(results, {steps - 1, Expr(0), Expr(0)}, results->type.shape, {-1, 1, 1});
    return results;
  }

  Network& net_;
  const Cell& cell_;
  std::int64_t hidden_;
  bool backwards_;
  std::string suffix_;
  Value* weight_ = nullptr;
  Value* bias_ = nullptr;
};

Sequence sequence(Network& net, std::string_view name, const char* kind, const Cell& cell, const Tensor& x,
                  const Recurrent& options) {
  const Network::Scope scope(net, name);
  net.operand(kind, x);
  if (x.rank() != 3 || options.hidden < 1 || options.layers < 1) {
    throw CompileError({.stage = "network",
                        .node = net.path(),
                        .op = kind,
                        .wanted = "a tensor [N, T, I] and a hidden size and a number of layers of at least 1",
                        .found = fmt::format("{}, {} and {}", x.value()->type.text(), options.hidden, options.layers)});
  }
  Tensor y = x.transpose({1, 0, 2});
  Sequence result;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string suffix = fmt::format("_l{}", layer);
    const Tensor forward = Direction(net, cell, options.hidden, false, suffix).run(y, result.states);
    y = options.bidirectional
            ? concat({forward, Direction(net, cell, options.hidden, true, suffix + "_reverse").run(y, result.states)}, 2)
            : forward;
  }
  result.output = y.transpose({1, 0, 2});
  return result;
}

}  // namespace

Sequence lstm(Network& net, std::string_view name, const Tensor& x, const Recurrent& options) {
  return sequence(net, name, "lstm", kLstm, x, options);
}

Sequence gru(Network& net, std::string_view name, const Tensor& x, const Recurrent& options) {
  return sequence(net, name, "gru", kGru, x, options);
}

}  // namespace oclc::nn
