// Dropout from the counter-based generator: the same numbers on the host and on the device, in the forward and the backward
// pass, from a state that each step advances.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/random.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/training/training.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr std::int64_t kRows = 64;

// y = dropout(relu(x w)) v with the mean squared error as loss, trained by gradient descent.
std::shared_ptr<Module> trained_module(double ratio, std::uint32_t seed) {
  auto module = std::make_shared<Module>(parse_module(R"(
    module "m"
    state "w" : f32[20, 50] = f32[20, 50] random 3
    state "v" : f32[50, 3] = f32[50, 3] random 4
    graph predict(%x: f32[64, 20], %w: f32[20, 50], %v: f32[50, 3]) {
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = relu(%0)
      %2 = dropout(%1) {ratio=)" + std::to_string(ratio) + R"(}
      %3 = matmul(%2, %v) {trans_a=0, trans_b=0}
      return y=%3
    })",
                                                      find_op));
  TrainingOptions options{parse_loss("mse"), parse_optimizer("sgd,lr=0.1"), {}, {}, seed};
  build_training(*module, options);
  return module;
}

const HostTensor kX = random_tensor(DType::f32, {kRows, 20}, 1), kLabels = random_tensor(DType::f32, {kRows, 3}, 2);

struct DropoutRun {
  std::shared_ptr<Module> module;
  PlanRunner runner;
  DropoutRun(double ratio, std::uint32_t seed, bool fuse = true)
      : module(trained_module(ratio, seed)), runner(copy(), options(fuse)) {}
  std::shared_ptr<Module> copy() const {
    return std::make_shared<Module>(parse_module(print_module(*module, {INT64_MAX}), find_op));
  }
  static CompileOptions options(bool fuse) {
    CompileOptions o = default_options();
    if (!fuse) o.disabled = {"fuse"};
    return o;
  }
  double step() { return runner.run(std::vector{kX, kLabels}, {}, 1).at(0).at(0); }
  HostTensor read(const StateVariable& state) {
    HostTensor value(state.type.dtype, bind_shape(state.type.shape, {}));
    runner.session().read_variable(state.name, value.mutable_data(), value.bytes());
    return value;
  }
  std::vector<float> parameters() {
    const HostTensor value = read(module->states.at(0));
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < value.elements(); ++i) numbers.push_back(static_cast<float>(value.at(i)));
    return numbers;
  }
};

}  // namespace

TEST_CASE("random bits are those of Philox4x32-10") {
  CHECK(random_bits(0, 0, 0) == 0x6627e8d5);
  CHECK(dropout_limit(0.5) == 0x80000000u);
  CHECK(dropout_limit(1e-12) == 0xffffffffu);
}

TEST_CASE("a device gives the reference's bits, all of them") {
  for (const char* shape : {"3, 1001", "7, 5, 64", "13", ""}) {
    CAPTURE(shape);
    const std::string s(shape);
    const std::string count = s == "3, 1001" ? "3003" : s == "13" ? "13" : s.empty() ? "1" : "2240";
    const auto graph = parse_graph("graph g(%a: u32[], %b: u32[]) {\n  %0 = iota() {axis=0, dtype=u32, shape=(" + count +
                                       "), start=(4294966290), step=(1)}\n  %1 = reshape(%0) {shape=(" + s +
                                       ")}\n  %2 = random_bits(%1, %a, %b)\n  return y=%2\n}\n",
                                   find_op);
    HostTensor a(DType::u32, {}), b(DType::u32, {});
    a.set_int(0, 4294967290), b.set_int(0, 77);
    CompileOptions unfused = default_options();
    unfused.disabled = {"fuse"};
    CHECK(compare_with_reference(*graph, std::vector{a, b}).max_abs == 0);
    CHECK(compare_with_reference(*graph, std::vector{a, b}, unfused).max_abs == 0);
  }
}

TEST_CASE("kept elements are as many as the ratio says, and differ from layer to layer and from step to step") {
  Graph graph;
  Node* node = graph.add(*find_op("dropout"),
                         {graph.add_input("x", {DType::f32, {Expr(200), Expr(500)}}), graph.add_input("step", {DType::u32, {}}),
                          graph.add_input("seed", {DType::u32, {}})},
                         {{"ratio", 0.25}, {"layer", std::int64_t{0}}});
  graph.add_output("y", node->output());
  HostTensor ones(DType::f32, {200, 500});
  for (std::int64_t i = 0; i < ones.elements(); ++i) ones.set(i, 1);
  const auto mask = [&](std::int64_t step, std::int64_t seed, std::int64_t layer) {
    node->attributes["layer"] = layer;
    HostTensor s(DType::u32, {}), k(DType::u32, {});
    s.set_int(0, step), k.set_int(0, seed);
    return evaluate(graph, std::vector{ones, s, k}).at(0);
  };
  const HostTensor first = mask(0, 1, 0);
  constexpr double kCount = 100000;
  const auto kept = [](const HostTensor& m) {
    double count = 0;
    for (std::int64_t i = 0; i < m.elements(); ++i) count += m.at(i) != 0;
    return count;
  };
  const auto alike = [](const HostTensor& a, const HostTensor& b) {
    double count = 0;
    for (std::int64_t i = 0; i < a.elements(); ++i) count += a.at(i) == b.at(i);
    return count / kCount;
  };
  const double deviation = std::sqrt(kCount * 0.25 * 0.75);
  CHECK(std::abs(kept(first) - 0.75 * kCount) < 4 * deviation);
  for (std::int64_t i = 0; i < first.elements(); ++i) REQUIRE((first.at(i) == 0 || std::abs(first.at(i) - 4.0 / 3) < 1e-6));
  // Independent masks agree in 0.75^2 + 0.25^2 of the elements.
  for (const HostTensor& other : {mask(1, 1, 0), mask(0, 2, 0), mask(0, 1, 1)}) {
    CHECK(std::abs(kept(other) - 0.75 * kCount) < 4 * deviation);
    CHECK(alike(first, other) == doctest::Approx(0.625).epsilon(0.01));
  }
  // Neighbours are independent: both kept in 0.75^2 of the pairs.
  double pairs = 0;
  for (std::int64_t i = 0; i + 1 < first.elements(); ++i) pairs += first.at(i) != 0 && first.at(i + 1) != 0;
  CHECK(pairs / kCount == doctest::Approx(0.5625).epsilon(0.01));
}

TEST_CASE("a training step drops the same elements on the host and on the device, fused and unfused") {
  for (const bool fuse : {true, false}) {
    DropoutRun run(0.4, 9, fuse);
    std::map<std::string, HostTensor> state;
    for (const StateVariable& variable : run.module->states)
      state[variable.name] =
          variable.initial.data() ? variable.initial : HostTensor(variable.type.dtype, bind_shape(variable.type.shape, {}));
    const Graph& graph = *run.module->entries.at(1);
    for (int step = 0; step < 3; ++step) {
      std::vector<HostTensor> inputs;
      for (const auto& input : graph.inputs())
        inputs.push_back(input->name == "x" ? kX : input->name == "labels" ? kLabels : state.at(input->name));
      const std::vector<HostTensor> wanted = evaluate(graph, inputs);
      const double loss = run.step();
      for (std::size_t o = 0; o < wanted.size(); ++o) {
        const std::string& name = graph.outputs()[o].first;
        if (name == "loss")
          CHECK(loss == doctest::Approx(wanted[o].at(0)).epsilon(1e-5));
        else
          state[name] = wanted[o];
      }
      for (const StateVariable& variable : run.module->states)
        CHECK(difference(run.read(variable), state.at(variable.name)).max_rel < 1e-5);
    }
    CHECK(state.at("random.step").at(0) == 3);
  }
}

TEST_CASE("what was dropped has no gradient") {
  // y = sum of dropout(w): the gradient is the mask itself, divided by what is kept.
  Graph graph;
  Builder b(graph);
  Value* w = graph.add_input("w", {DType::f32, {Expr(40)}});
  Value* step = graph.add_input("step", {DType::u32, {}});
  Value* seed = graph.add_input("seed", {DType::u32, {}});
  Value* y = b.call("dropout", {w, step, seed}, {{"ratio", 0.5}, {"layer", std::int64_t{3}}});
  Value* loss = b.reduce("reduce_sum", y, {0}, false);
  graph.add_output("y", y);
  Node* node = y->producer;
  std::vector<Value*> found = node->op->gradient(b, *node, std::vector{b.expand(b.scalar(DType::f32, 1), {Expr(40)})});
  graph.add_output("g", found.at(0));
  graph.add_output("loss", loss);
  expand_training_layers(graph);
  HostTensor ones(DType::f32, {40}), zero(DType::u32, {});
  for (std::int64_t i = 0; i < 40; ++i) ones.set(i, 1);
  const auto results = evaluate(graph, std::vector{ones, zero, zero});
  CHECK(difference(results.at(0), results.at(1)).max_abs == 0);
  CHECK(results.at(2).at(0) > 0);
  CHECK(results.at(2).at(0) < 80);
}

TEST_CASE("two runs of a seed are bit-identical, another seed is another run, and ratio 0 drops nothing") {
  DropoutRun a(0.4, 9), again(0.4, 9), other(0.4, 10), plain(0, 9), plain_other(0, 10);
  for (int i = 0; i < 5; ++i) {
    const double loss = a.step();
    CHECK(loss == again.step());
    CHECK(loss != other.step());
    CHECK(plain.step() == plain_other.step());
  }
  CHECK(a.parameters() == again.parameters());
  CHECK(a.parameters() != other.parameters());
}

TEST_CASE("prediction and evaluation drop nothing") {
  DropoutRun run(0.4, 9), plain(0, 9);
  const auto y = run.runner.run(std::vector{kX}, {}, 0), y_plain = plain.runner.run(std::vector{kX}, {}, 0);
  CHECK(difference(y, y_plain).max_abs == 0);
  const auto loss = run.runner.run(std::vector{kX, kLabels}, {}, 2),
             loss_plain = plain.runner.run(std::vector{kX, kLabels}, {}, 2);
  CHECK(loss.at(0).at(0) == loss_plain.at(0).at(0));
}

TEST_CASE("a resumed run goes on with the sequence of masks") {
  DropoutRun whole(0.4, 9), first(0.4, 9), second(0.4, 1234);
  for (int i = 0; i < 5; ++i) whole.step();
  for (int i = 0; i < 2; ++i) first.step();
  const std::string path = std::string(OCLC_BINARY_DIR) + "/dropout_state.bin";
  first.runner.session().save_state(path);
  second.runner.session().load_state(path);
  for (int i = 0; i < 3; ++i) second.step();
  CHECK(second.parameters() == whole.parameters());
}
