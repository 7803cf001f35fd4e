// Outputs that feed inputs: a network run step by step gives what it gives on the whole sequence.
#include <doctest/doctest.h>

#include "compiler/ir/carry.h"
#include "frontends/cpp/nn.h"
#include "tests/ops/run_op.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;
using nn::Network;
using nn::Tensor;

namespace {

constexpr std::int64_t kSteps = 1000;

Tensor gate_of(const Tensor& sums, std::int64_t index, std::int64_t hidden) {
  return sums.slice(1, Expr(index * hidden), Expr(hidden));
}

// One step of nn::gru's first layer, with the same parameters: x[1, I], h[1, H].
Tensor gru_cell(Network& net, std::string_view name, const Tensor& x, const Tensor& h) {
  const Network::Scope scope(net, name);
  const std::int64_t hidden = h.size(1);
  const Tensor in = matmul(x, net.parameter("weight_ih_l0", {3 * hidden, x.size(1)}), false, true) +
                    net.parameter("bias_ih_l0", {3 * hidden});
  const Tensor back =
      matmul(h, net.parameter("weight_hh_l0", {3 * hidden, hidden}), false, true) + net.parameter("bias_hh_l0", {3 * hidden});
  const Tensor reset = nn::apply("sigmoid", {gate_of(in, 0, hidden) + gate_of(back, 0, hidden)});
  const Tensor update = nn::apply("sigmoid", {gate_of(in, 1, hidden) + gate_of(back, 1, hidden)});
  const Tensor fresh = nn::apply("tanh", {gate_of(in, 2, hidden) + reset * gate_of(back, 2, hidden)});
  return fresh + update * (h - fresh);
}

// One step of nn::lstm's first layer: h and c.
std::pair<Tensor, Tensor> lstm_cell(Network& net, std::string_view name, const Tensor& x, const Tensor& h, const Tensor& c) {
  const Network::Scope scope(net, name);
  const std::int64_t hidden = h.size(1), width = 4 * hidden;
  const Tensor sums = matmul(x, net.parameter("weight_ih_l0", {width, x.size(1)}), false, true) +
                      net.parameter("bias_ih_l0", {width}) + net.parameter("bias_hh_l0", {width}) +
                      matmul(h, net.parameter("weight_hh_l0", {width, hidden}), false, true);
  const auto sigmoid = [&](std::int64_t gate) { return nn::apply("sigmoid", {gate_of(sums, gate, hidden)}); };
  const Tensor memory = sigmoid(1) * c + sigmoid(0) * nn::apply("tanh", {gate_of(sums, 2, hidden)});
  return {sigmoid(3) * nn::apply("tanh", {memory}), memory};
}

struct StepSeries {
  std::vector<float> in, out;
  std::vector<std::int64_t> in_shape, out_shape;
};

// `steps` runs of the module's entry in one call, from input x to output y.
void run_series(PlanRunner& runner, StepSeries& s) {
  const auto steps = static_cast<std::uint64_t>(s.in_shape[0]);
  runner.session().run_steps(0, steps,
                             {rt::host_series<const float>(OCLC_INPUT, "x", s.in.data(), s.in_shape),
                              rt::host_series<float>(OCLC_OUTPUT, "y", s.out.data(), s.out_shape)});
}

double worst(const std::vector<float>& found, const HostTensor& wanted) {
  REQUIRE(static_cast<std::int64_t>(found.size()) == wanted.elements());
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(found[i]) - wanted.at(static_cast<std::int64_t>(i))));
  return most;
}

std::vector<float> floats_of(const HostTensor& t) {
  std::vector<float> values(static_cast<std::size_t>(t.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(t.at(static_cast<std::int64_t>(i)));
  return values;
}

}  // namespace

TEST_CASE("a GRU cell whose output feeds its state equals the GRU over the whole sequence of 1,000 steps") {
  constexpr std::int64_t kIn = 12, kHidden = 24;
  const HostTensor x = random_tensor(DType::f32, {1, kSteps, kIn}, 5);

  Network whole("whole", nn::initial_parameters(7));
  whole.output("y",
               gru(whole, "gru", whole.input("x", DType::f32, {Expr(1), Expr(kSteps), Expr(kIn)}), {.hidden = kHidden}).output);
  PlanRunner reference(whole.finish(), default_options());
  const HostTensor wanted = reference.run(std::vector<HostTensor>{x})[0];

  for (const bool alone : {false, true}) {
    CAPTURE(alone);
    Network net("cell", nn::initial_parameters(7));
    const Tensor input = net.input("x", DType::f32, {Expr(1), Expr(kIn)}),
                 h = net.input("h", DType::f32, {Expr(1), Expr(kHidden)});
    const Tensor next = gru_cell(net, "gru", input, h);
    net.output(alone ? "h_next" : "y", next);
    if (alone) net.output("y", next * 1.0);
    auto module = net.finish();
    carry_outputs(*module, std::vector<Carry>{{alone ? "h_next" : "y", "h", !alone}});
    PlanRunner cell(module, default_options());
    CHECK(cell.session().stats().state_bytes >= kHidden * sizeof(float));
    StepSeries s{floats_of(x), std::vector<float>(kSteps * kHidden), {kSteps, 1, kIn}, {kSteps, 1, kHidden}};
    run_series(cell, s);
    // Rounding does not grow: the state is a mean of values in (-1, 1).
    CHECK(worst(s.out, wanted) < 2e-5);
    std::vector<float> state(kHidden);
    cell.session().read_variable("h", state.data(), kHidden * sizeof(float));
    CHECK(std::vector<float>(s.out.end() - kHidden, s.out.end()) == state);

    // The same once more after a reset, and from the middle on with the state that was read.
    cell.session().reset_state();
    StepSeries half{floats_of(x), std::vector<float>(kSteps / 2 * kHidden), {kSteps / 2, 1, kIn}, {kSteps / 2, 1, kHidden}};
    half.in.resize(kSteps / 2 * kIn);
    run_series(cell, half);
    CHECK(half.out == std::vector<float>(s.out.begin(), s.out.begin() + kSteps / 2 * kHidden));
    cell.session().reset_state();
    cell.session().write_variable("h", half.out.data() + (kSteps / 2 - 1) * kHidden, kHidden * sizeof(float));
    half.in.assign(s.in.begin() + kSteps / 2 * kIn, s.in.end());
    run_series(cell, half);
    CHECK(half.out == std::vector<float>(s.out.begin() + kSteps / 2 * kHidden, s.out.end()));
  }
}

// A detector of speech in a stream: two convolutions over the chunk and what the one before it left, an LSTM, one probability.
TEST_CASE("a streaming detector over 1,000 chunks equals itself over the whole signal") {
  constexpr std::int64_t kChunk = 16, kPast = 4, kChannels = 8, kHidden = 16;
  const HostTensor signal = random_tensor(DType::f32, {1, kSteps * kChunk}, 9);

  // Kernel 5 at stride 4 over [past, chunk]: four frames a chunk, the same as over the signal with four zeros before it.
  const auto features = [&](Network& net, const Tensor& x, std::int64_t frames) {
    const Tensor wave = x.reshape({Expr(1), Expr(1), Expr(1), x.dim(1)});
    const Tensor rows = relu(conv(net, "conv", wave, kChannels, {.kernel = {1, 5}, .stride = {1, 4}}));
    return rows.reshape({Expr(kChannels), Expr(frames), Expr(4)}).max({2}).transpose({1, 0});  // [frames, channels]
  };

  Network whole("whole", nn::initial_parameters(3));
  const Tensor x = whole.input("x", DType::f32, {Expr(1), Expr(kSteps * kChunk)});
  const Tensor zeros = whole.constant(HostTensor(DType::f32, {1, kPast}));
  const Tensor rows = features(whole, nn::concat({zeros, x}, 1), kSteps);
  const Tensor hidden = lstm(whole, "lstm", rows.reshape({Expr(1), Expr(kSteps), Expr(kChannels)}), {.hidden = kHidden}).output;
  whole.output("y", nn::apply("sigmoid", {linear(whole, "head", hidden, 1)}));
  PlanRunner reference(whole.finish(), default_options());
  const HostTensor wanted = reference.run(std::vector<HostTensor>{signal})[0];

  Network net("chunk", nn::initial_parameters(3));
  const Tensor chunk = net.input("x", DType::f32, {Expr(1), Expr(kChunk)}),
               past = net.input("past", DType::f32, {Expr(1), Expr(kPast)});
  const Tensor h = net.input("h", DType::f32, {Expr(1), Expr(kHidden)}),
               c = net.input("c", DType::f32, {Expr(1), Expr(kHidden)});
  const auto [h_next, c_next] = lstm_cell(net, "lstm", features(net, nn::concat({past, chunk}, 1), 1), h, c);
  net.output("y", nn::apply("sigmoid", {linear(net, "head", h_next, 1)}));
  net.output("h_next", h_next);
  net.output("c_next", c_next);
  net.output("past_next", chunk.slice(1, Expr(kChunk - kPast), Expr(kPast)));
  auto module = net.finish();
  carry_outputs(*module, std::vector<Carry>{{"h_next", "h", false}, {"c_next", "c", false}, {"past_next", "past", false}});
  PlanRunner stream(module, default_options());
  StepSeries s{floats_of(signal), std::vector<float>(kSteps), {kSteps, 1, kChunk}, {kSteps, 1, 1}};
  run_series(stream, s);
  CHECK(worst(s.out, wanted) < 1e-5);
}

TEST_CASE("values that exchange places between runs, and a state read behind its update, keep their order") {
  Network net("swap", nn::initial_parameters(1));
  const Tensor x = net.input("x", DType::f32, {Expr(2)}), a = net.input("a", DType::f32, {Expr(2)}),
               b = net.input("b", DType::f32, {Expr(2)});
  net.output("a_next", b + x);
  net.output("b_next", a);
  net.output("y", a * 10.0 + b);
  auto module = net.finish();
  carry_outputs(*module, std::vector<Carry>{{"a_next", "a", false}, {"b_next", "b", false}});
  PlanRunner runner(module, default_options());
  constexpr std::int64_t kShort = 7;
  StepSeries s{std::vector<float>(2 * kShort), std::vector<float>(2 * kShort), {kShort, 2}, {kShort, 2}};
  std::vector<float> expected;
  float ha[2] = {0, 0}, hb[2] = {0, 0};
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    s.in[i] = static_cast<float>(i % 5);
    float &pa = ha[i % 2], &pb = hb[i % 2];
    expected.push_back(pa * 10 + pb);
    const float next = pb + s.in[i];
    pb = pa;
    pa = next;
  }
  run_series(runner, s);
  CHECK(s.out == expected);
}
