// Networks built in C++ for training: their entries share one set of parameters.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "compiler/training/training.h"
#include "frontends/cpp/nn.h"
#include "tests/ops/run_op.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;
using nn::Network;
using nn::Tensor;

namespace {

constexpr std::int64_t kBatch = 6, kSide = 6, kClasses = 3;

std::shared_ptr<Module> network(std::vector<std::string> frozen = {},
                                const std::string& optimizer = "sgd,lr=0.1,momentum=0.9") {
  Network net("small", nn::initial_parameters(3), nn::Use::training);
  const Tensor image = net.input("image", DType::f32, {net.symbol("N"), 2, kSide, kSide});
  Tensor x = relu(batch_norm(net, "norm", conv(net, "conv", image, 8, {.kernel = {3, 3}, .padding = {1, 1}})));
  x = flatten(max_pool(x, {.kernel = {2, 2}}));
  net.output("logits", linear(net, "head", x, kClasses));
  auto module = net.finish();
  TrainingOptions options;
  options.loss = parse_loss("cross_entropy");
  options.optimizer = parse_optimizer(optimizer);
  options.frozen = std::move(frozen);
  build_training(*module, options);
  return module;
}

HostTensor labels(std::int64_t count) {
  HostTensor t(DType::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) t.set(i, static_cast<double>(i % kClasses));
  return t;
}

HostTensor images(unsigned seed) { return random_tensor(DType::f32, {kBatch, 2, kSide, kSide}, seed); }

std::uint32_t entry_of(const Module& module, const std::string& name) {
  for (std::uint32_t i = 0; i < module.entries.size(); ++i)
    if (module.entries[i]->name == name) return i;
  FAIL(name);
  return 0;
}

std::vector<float> variable(PlanRunner& runner, const std::string& name, std::size_t count) {
  std::vector<float> values(count);
  runner.session().read_variable(name, values.data(), count * sizeof(float));
  return values;
}

// All parameters, statistics and moments after `steps` steps.
std::vector<float> state_after(int steps, const std::string& optimizer, bool fuse) {
  CompileOptions options = default_options();
  if (!fuse) options.disabled = {"fuse"};
  const auto module = network({}, optimizer);
  const std::uint32_t train = entry_of(*module, "train_step");
  std::vector<std::pair<std::string, std::size_t>> states;
  for (const StateVariable& state : module->states) {
    if (state.parts.empty()) states.emplace_back(state.name, static_cast<std::size_t>(state.type.elements().value()));
    for (const StatePart& part : state.parts) {
      std::size_t count = 1;
      for (const std::int64_t d : part.shape) count *= static_cast<std::size_t>(d);
      states.emplace_back(part.name, count);
    }
  }
  PlanRunner runner(module, options);
  for (int step = 0; step < steps; ++step)
    runner.run(std::vector<HostTensor>{images(static_cast<unsigned>(step)), labels(kBatch)}, {}, train);
  std::vector<float> all;
  for (const auto& [name, count] : states) {
    const std::vector<float> values = variable(runner, name, count);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("parameters of a network for training are state, each once, under PyTorch's names") {
  Network net("shared", nn::initial_parameters(), nn::Use::training);
  const Tensor x = net.input("x", DType::f32, {4, 5});
  net.output("y", linear(net, "same", linear(net, "same", x, 5), 5));
  const auto module = net.finish();
  REQUIRE(module->states.size() == 2);
  CHECK(module->states[0].name == "same.weight");
  CHECK(module->states[1].name == "same.bias");
  CHECK(module->states[0].initial.shape() == Ints{5, 5});
  CHECK(module->entries[0]->inputs().size() == 3);
}

TEST_CASE("dropout and batch norm stay operators for training alone") {
  for (const nn::Use use : {nn::Use::inference, nn::Use::training}) {
    Network net("layers", nn::initial_parameters(), use);
    const Tensor x = net.input("x", DType::f32, {4, 5});
    net.output("y", dropout(batch_norm(net, "norm", x), 0.5));
    const auto module = net.finish();
    int opaque = 0;
    for (const Node* node : module->entries[0]->nodes())
      opaque += node->op->name == "batch_norm" || node->op->name == "dropout";
    CHECK(opaque == (use == nn::Use::training ? 2 : 0));
  }
}

TEST_CASE("predict and eval_step see the weights that train_step moves") {
  const auto module = network();
  const std::uint32_t predict = entry_of(*module, "predict"), train = entry_of(*module, "train_step"),
                      evaluate = entry_of(*module, "eval_step");
  PlanRunner runner(module, default_options());
  const HostTensor x = images(1), y = labels(kBatch);
  const std::vector<double> before = values(runner.run(std::vector<HostTensor>{x}, {}, predict)[0]);
  const double first = runner.run(std::vector<HostTensor>{x, y}, {}, train)[0].at(0);
  double last = first;
  for (int step = 0; step < 60; ++step) last = runner.run(std::vector<HostTensor>{x, y}, {}, train)[0].at(0);
  CHECK(last < 0.1 * first);
  const HostTensor after = runner.run(std::vector<HostTensor>{x}, {}, predict)[0];
  CHECK(values(after) != before);
  const std::vector<HostTensor> judged = runner.run(std::vector<HostTensor>{x, y}, {}, evaluate);
  CHECK(judged[1].at(0) == kBatch);  // all right
  // eval_step's loss is the cross entropy of what predict says.
  double loss = 0;
  for (std::int64_t row = 0; row < kBatch; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < kClasses; ++c) sum += std::exp(after.at(row * kClasses + c));
    loss += (std::log(sum) - after.at(row * kClasses + row % kClasses)) / kBatch;
  }
  CHECK(judged[0].at(0) == doctest::Approx(loss).epsilon(1e-4));
  // Setting the weights of the one sets those of the other.
  runner.session().reset_state();
  CHECK(values(runner.run(std::vector<HostTensor>{x}, {}, predict)[0]) == before);
}

TEST_CASE("twenty steps twice give the same bits") {
  for (const char* optimizer : {"sgd,lr=0.1,momentum=0.9,weight_decay=1e-4", "adamw,lr=0.01"}) {
    for (const bool fuse : {true, false}) {
      CAPTURE(optimizer);
      CAPTURE(fuse);
      const std::vector<float> once = state_after(20, optimizer, fuse), again = state_after(20, optimizer, fuse);
      REQUIRE(once.size() == again.size());
      CHECK(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)) == 0);
      CHECK(once != state_after(19, optimizer, fuse));
    }
  }
}

TEST_CASE("frozen layers are constants: no state, no gradient, batch norm by its running statistics") {
  const auto all = network(), head = network({"conv", "norm"});
  CHECK(all->states[0].parts.size() == 6);
  REQUIRE(head->states[0].name == "parameters");
  CHECK(head->states[0].parts.size() == 2);
  for (const StateVariable& state : head->states) CHECK(state.name != "statistics");
  const std::uint32_t train = entry_of(*head, "train_step"), predict = entry_of(*head, "predict");
  for (const Node* node : head->entries[train]->nodes()) {
    CHECK(node->op->name != "moments");
    CHECK(node->op->name != "conv_weight_grad");
  }
  PlanRunner runner(head, default_options());
  const HostTensor x = images(1), y = labels(kBatch);
  // With the running statistics the step's loss is that of the prediction.
  const HostTensor logits = runner.run(std::vector<HostTensor>{x}, {}, predict)[0];
  double loss = 0;
  for (std::int64_t row = 0; row < kBatch; ++row) {
    double sum = 0;
    for (std::int64_t c = 0; c < kClasses; ++c) sum += std::exp(logits.at(row * kClasses + c));
    loss += (std::log(sum) - logits.at(row * kClasses + row % kClasses)) / kBatch;
  }
  const double first = runner.run(std::vector<HostTensor>{x, y}, {}, train)[0].at(0);
  CHECK(first == doctest::Approx(loss).epsilon(1e-4));
  CHECK(runner.run(std::vector<HostTensor>{x, y}, {}, train)[0].at(0) < first);
}
