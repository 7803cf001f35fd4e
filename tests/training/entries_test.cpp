// The entries of a training plan beside predict, train_step and eval_step: sums of gradients over batches, and a fresh start.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/training/training.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

std::shared_ptr<Module> trained(const std::string& optimizer, bool accumulate, bool init, std::uint32_t seed = 0) {
  auto module = std::make_shared<Module>(parse_module(R"(
    module "m"
    symbol N
    state "w" : f32[20, 300] = f32[20, 300] random 3
    state "b" : f32[300] = f32[300] splat 0.25
    state "v" : f32[300, 3] = f32[300, 3] random 4
    graph predict(%x: f32[N, 20], %w: f32[20, 300], %b: f32[300], %v: f32[300, 3]) {
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = add(%0, %b)
      %2 = tanh(%1)
      %3 = matmul(%2, %v) {trans_a=0, trans_b=0}
      return y=%3
    })",
                                                      find_op));
  TrainingOptions options{parse_loss("mse"), parse_optimizer(optimizer), {}, {}, seed, accumulate, init};
  build_training(*module, options);
  return module;
}

// The plan is made of the printed module, whose flat states have no parts: they are read whole.
struct Run {
  std::shared_ptr<Module> module;
  PlanRunner runner;
  Run(const std::shared_ptr<Module>& m, bool fuse = true) : module(m), runner(copy(*m), options(fuse)) {}
  static std::shared_ptr<Module> copy(const Module& m) {
    return std::make_shared<Module>(parse_module(print_module(m, {INT64_MAX}), find_op));
  }
  static CompileOptions options(bool fuse) {
    CompileOptions o = default_options();
    if (!fuse) o.disabled = {"fuse"};
    return o;
  }
  std::vector<HostTensor> run(const std::string& entry, const std::vector<HostTensor>& inputs) {
    for (std::uint32_t i = 0; i < module->entries.size(); ++i) {
      if (module->entries[i]->name == entry) return runner.run(inputs, {}, i);
    }
    FAIL("no entry " << entry);
    return {};
  }
  const StateVariable& variable(const std::string& name) const {
    for (const StateVariable& v : module->states) {
      if (v.name == name) return v;
    }
    FAIL("no variable " << name);
    return module->states[0];
  }
  HostTensor read(const std::string& name) {
    const StateVariable& v = variable(name);
    HostTensor value(v.type.dtype, bind_shape(v.type.shape, {}));
    runner.session().read_variable(name, value.mutable_data(), value.bytes());
    return value;
  }
};

HostTensor rows(const HostTensor& t, std::int64_t begin, std::int64_t count) {
  const std::int64_t width = t.shape().at(1);
  HostTensor part(t.dtype(), {count, width});
  for (std::int64_t i = 0; i < count * width; ++i) part.set(i, t.at(begin * width + i));
  return part;
}

}  // namespace

TEST_CASE("accumulated micro-batches are one large batch") {
  for (const char* optimizer : {"sgd,lr=0.1,momentum=0.9", "adam,lr=0.01", "sgd,lr=0.1,clip_norm=0.05"}) {
    for (const bool fuse : {true, false}) {
      CAPTURE(optimizer);
      Run whole(trained(optimizer, false, false), fuse), parts(trained(optimizer, true, false), fuse);
      for (unsigned step = 0; step < 3; ++step) {
        const HostTensor x = random_tensor(DType::f32, {12, 20}, 10 + step), y = random_tensor(DType::f32, {12, 3}, 20 + step);
        const double loss = whole.run("train_step", {x, y}).at(0).at(0);
        double mean = 0;
        for (std::int64_t i = 0; i < 4; ++i) {
          if (i == 3) CHECK(parts.read("gradients.count").at(0) == 3);
          mean += parts.run(i < 3 ? "accumulate_step" : "train_step", {rows(x, 3 * i, 3), rows(y, 3 * i, 3)}).at(0).at(0) / 4;
        }
        CHECK(mean == doctest::Approx(loss).epsilon(1e-5));
        CHECK(parts.read("gradients.count").at(0) == 0);
      }
      CHECK(difference(parts.read("parameters"), whole.read("parameters")).max_rel < 2e-5);
      CHECK(difference(whole.read("parameters"), whole.variable("parameters").initial).max_rel > 3e-4);
    }
  }
}

TEST_CASE("without micro-batches a step of an accumulating plan is a plain step") {
  Run plain(trained("sgd,lr=0.1", false, false)), accumulating(trained("sgd,lr=0.1", true, false));
  const HostTensor x = random_tensor(DType::f32, {4, 20}, 1), y = random_tensor(DType::f32, {4, 3}, 2);
  for (int i = 0; i < 3; ++i) {
    plain.run("train_step", {x, y});
    accumulating.run("train_step", {x, y});
  }
  CHECK(difference(accumulating.read("parameters"), plain.read("parameters")).max_rel < 1e-6);
}

TEST_CASE("init draws parameters of the seed, on the device as on the host, and clears what training left") {
  for (const bool fuse : {true, false}) {
    Run run(trained("adam,lr=0.01,ema=0.9", true, true, 5), fuse);
    const HostTensor x = random_tensor(DType::f32, {4, 20}, 1), y = random_tensor(DType::f32, {4, 3}, 2);
    run.run("train_step", {x, y});
    run.run("accumulate_step", {x, y});
    const float rate = 0.5f;
    run.runner.session().write_variable("lr", &rate, sizeof rate);
    run.run("init", {});
    const HostTensor drawn = run.read("parameters");

    const Graph& graph = *run.module->entries.back();
    HostTensor seed(DType::u32, {});
    seed.set_int(0, 5);
    const std::vector<HostTensor> wanted = evaluate(graph, std::vector{seed});
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(difference(run.read(graph.outputs()[i].first), wanted[i]).max_rel < 1e-7);
    for (const char* name : {"optimizer.mean", "optimizer.square", "gradients", "gradients.count"}) {
      const HostTensor zero = run.read(name);
      for (std::int64_t i = 0; i < zero.elements(); ++i) REQUIRE(zero.at(i) == 0);
    }
    CHECK(run.read("optimizer.beta1_power").at(0) == 1);
    CHECK(run.read("lr").at(0) == 0.5);
    CHECK(difference(run.read("ema"), drawn).max_abs == 0);

    // Each part has the mean and the deviation it had, and the part of one value keeps it.
    const StateVariable& state = run.variable("parameters");
    CHECK(difference(drawn, state.initial).max_rel > 0.5);
    for (const StatePart& part : state.parts) {
      const auto moments = [&](const HostTensor& t) {
        double n = 1, sum = 0, square = 0;
        for (const std::int64_t d : part.shape) n *= static_cast<double>(d);
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
          sum += t.at(part.offset + i) / n;
          square += std::pow(t.at(part.offset + i), 2) / n;
        }
        return std::pair{sum, std::sqrt(square - sum * sum)};
      };
      const auto [mean, deviation] = moments(drawn);
      const auto [old_mean, old_deviation] = moments(state.initial);
      CAPTURE(part.name);
      CHECK(std::abs(mean - old_mean) < 0.15 * old_deviation + 1e-9);
      CHECK(deviation == doctest::Approx(old_deviation).epsilon(0.05));
      if (part.name == "b") CHECK(drawn.at(part.offset + 7) == 0.25);
    }

    run.run("train_step", {x, y});
    run.run("init", {});
    CHECK(difference(run.read("parameters"), drawn).max_abs == 0);
    const std::uint32_t other = 6;
    run.runner.session().write_variable("random.seed", &other, sizeof other);
    run.run("init", {});
    CHECK(difference(run.read("parameters"), drawn).max_rel > 0.5);
  }
}
