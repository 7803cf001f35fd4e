// Mixed precision: activations in 16 bits, parameters and sums in 32, and a loss scale that finds its size.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "compiler/ir/parse.h"
#include "compiler/ir/text.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/training/training.h"
#include "plan_generated.h"
#include "runtime/package/memory.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr std::int64_t kSamples = 48;

DType storage_of(const std::string& mixed) {
  for (const MixedRow& row : mixed_types()) {
    if (!mixed.empty() && mixed.starts_with(row.name)) return row.storage;
  }
  return DType::f32;
}

// Images of [N, 1, 8, 8] in three classes: a convolution with batch normalisation, a pool and a product.
struct Training {
  std::shared_ptr<Module> module;
  std::unique_ptr<PlanRunner> runner;
  HostTensor x{DType::f32, {kSamples, 1, 8, 8}}, labels{DType::i64, {kSamples}};

  explicit Training(const std::string& mixed, const std::string& optimizer = "sgd,lr=0.1,momentum=0.9", bool accumulate = false,
                    const std::string& disabled = "", std::int64_t recompute = kRecomputeNone) {
    auto made = std::make_shared<Module>(parse_module(R"(
      module "m"
      symbol N
      state "w" : f32[16, 1, 3, 3] = f32[16, 1, 3, 3] random 3
      state "s" : f32[16] = f32[16] splat 1
      state "b" : f32[16] = f32[16] splat 0
      state "m" : f32[16] = f32[16] splat 0
      state "v" : f32[16] = f32[16] splat 1
      state "w2" : f32[16, 16, 3, 3] = f32[16, 16, 3, 3] random 5
      state "d" : f32[256, 3] = f32[256, 3] random 4
graph predict(%x: f32[N, 1, 8, 8], %w: f32[16, 1, 3, 3], %s: f32[16], %b: f32[16], %m: f32[16], )"
                                                      R"(%v: f32[16], %w2: f32[16, 16, 3, 3], %d: f32[256, 3]) {
        %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
        %1 = batch_norm(%0, %s, %b, %m, %v) {epsilon=0.001, momentum=0.9}
        %2 = relu(%1)
        %3 = conv(%2, %w2) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}
        %4 = add(%2, %3)
        %5 = tanh(%4)
        %6 = max_pool(%5) {ceil_mode=0, dilations=[1, 1], kernel=[2, 2], pads=[0, 0, 0, 0], strides=[2, 2]}
        %7 = reshape(%6) {shape=(N, 256)}
        %8 = matmul(%7, %d) {trans_a=0, trans_b=0}
        return y=%8
      })",
                                                      find_op));
    // Small first weights: the network starts near the mean.
    for (StateVariable& state : made->states) {
      if (state.name != "d" && state.name != "w2") continue;
      HostTensor small(DType::f32, state.initial.shape());
      for (std::int64_t i = 0; i < small.elements(); ++i) small.set(i, 0.05 * state.initial.at(i));
      state.initial = small;
    }
    TrainingOptions options{parse_loss("cross_entropy"), parse_optimizer(optimizer), {}, {}, 0, accumulate, false};
    if (!mixed.empty()) options.mixed = parse_mixed(mixed);
    build_training(*made, options);
    module = std::make_shared<Module>(parse_module(print_module(*made, {INT64_MAX}), find_op));
    CompileOptions compile = default_options();
    compile.mixed = storage_of(mixed);
    compile.recompute_bytes = recompute;
    if (!disabled.empty()) compile.disabled = {disabled};
    runner = std::make_unique<PlanRunner>(std::make_shared<Module>(parse_module(print_module(*made, {INT64_MAX}), find_op)),
                                          compile);
    const HostTensor noise = random_tensor(DType::f32, x.shape(), 9);
    for (std::int64_t i = 0; i < kSamples; ++i) {
      labels.set_int(i, i % 3);
      for (std::int64_t p = 0; p < 64; ++p) x.set(i * 64 + p, noise.at(i * 64 + p) + (p / 8 % 3 == i % 3 ? 1.0 : 0.0));
    }
  }

  double step(const std::string& entry = "train_step") {
    for (std::uint32_t i = 0; i < module->entries.size(); ++i) {
      if (module->entries[i]->name == entry) return runner->run(std::vector{x, labels}, {}, i).at(0).at(0);
    }
    FAIL("no entry " << entry);
    return 0;
  }
  HostTensor read(const std::string& name) {
    for (const StateVariable& v : module->states) {
      if (v.name != name) continue;
      HostTensor value(v.type.dtype, bind_shape(v.type.shape, {}));
      runner->session().read_variable(name, value.mutable_data(), value.bytes());
      return value;
    }
    FAIL("no variable " << name);
    return {};
  }
  double number(const std::string& name) { return read(name).at(0); }
  std::uint64_t arena_bytes() const {
    const std::int64_t sizes[] = {kSamples};
    return package::plan_memory(*plan::GetPlan(runner->compiled().plan.metadata.data()), 1, sizes).arena_bytes;
  }
  std::size_t arena_buffers(DType dtype) const {
    std::size_t count = 0;
    for (const Buffer& buffer : runner->compiled().schedule.buffers)
      count += buffer.kind == BufferKind::arena && buffer.dtype == dtype ? 1 : 0;
    return count;
  }
};

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

TEST_CASE("training in mixed precision learns what single precision learns") {
  for (const char* disabled : {"", "fuse"}) {
    CAPTURE(disabled);
    std::map<std::string, double> first, last;
    for (const std::string mixed : {"", "bf16", "f16"}) {
      Training t(mixed, "sgd,lr=0.1,momentum=0.9", false, disabled);
      CHECK((t.arena_buffers(storage_of(mixed)) > 0));
      for (const ScheduledState& state : t.runner->compiled().schedule.states)
        CHECK(!(state.variable.type.dtype == DType::f16));
      for (int i = 0; i < 40; ++i) {
        const double loss = t.step();
        if (i == 0) first[mixed] = loss;
        last[mixed] = loss;
      }
      if (mixed == "f16") CHECK(t.number("loss_scale.good_steps") == 40);
      CHECK(last[mixed] < 0.1 * first[mixed]);
    }
    CHECK(first["bf16"] == doctest::Approx(first[""]).epsilon(0.02));
    CHECK(first["f16"] == doctest::Approx(first[""]).epsilon(0.002));
    CHECK(std::fabs(last["bf16"] - last[""]) < 0.02);
    CHECK(std::fabs(last["f16"] - last[""]) < 0.005);
  }
}

TEST_CASE("mixed precision makes the arena smaller") {
  const std::uint64_t whole = Training("").arena_bytes(), half = Training("f16").arena_bytes(),
                      brain = Training("bf16").arena_bytes();
  CAPTURE(whole);
  CAPTURE(half);
  CHECK(half <= whole * 7 / 10);
  CHECK(brain <= half);
}

TEST_CASE("a step whose scaled gradients overflow changes no parameter and halves the loss scale, until they fit") {
  for (const char* optimizer : {"sgd,lr=0.1,momentum=0.9,clip_norm=1,ema=0.9", "adamw,lr=0.01"}) {
    CAPTURE(optimizer);
    Training t("f16,scale=1099511627776", optimizer);
    double scale = 0x1p40;
    int skipped = 0;
    std::vector<std::string> names;
    for (const StateVariable& v : t.module->states) {
      if (!v.name.starts_with("loss_scale")) names.push_back(v.name);
    }
    std::map<std::string, HostTensor> before;
    for (const std::string& name : names) before[name] = t.read(name);
    for (; skipped < 40; ++skipped) {
      const double loss = t.step();
      CHECK(std::isfinite(loss));
      if (t.number("loss_scale.good_steps") == 1) break;
      scale /= 2;
      CHECK(t.number("loss_scale") == scale);
      for (const std::string& name : names) CHECK_MESSAGE(same_bits(before[name], t.read(name)), name);
    }
    CAPTURE(skipped);
    CHECK(skipped > 3);
    CHECK(skipped < 40);
    CHECK(t.number("loss_scale") == scale);
    CHECK(!same_bits(before["parameters"], t.read("parameters")));
    CHECK(!same_bits(before["statistics"], t.read("statistics")));
    const double first = t.step();
    for (int i = 0; i < 40; ++i) t.step();
    CHECK(t.step() < 0.5 * first);
    for (std::int64_t i = 0; i < before["parameters"].elements(); ++i) REQUIRE(std::isfinite(t.read("parameters").at(i)));
  }
}

TEST_CASE("the loss scale doubles after as many good steps as its interval says") {
  Training t("f16,scale=8,growth_interval=3");
  const std::vector<double> wanted = {8, 8, 16, 16, 16, 32, 32};
  for (const double scale : wanted) {
    t.step();
    CHECK(t.number("loss_scale") == scale);
  }
  const float interval = 1;  // it is state
  t.runner->session().write_variable("loss_scale.growth_interval", &interval, sizeof interval);
  t.step();
  CHECK(t.number("loss_scale") == 64);
}

TEST_CASE("mixed precision with micro-batches, recomputation and checkpoints") {
  Training whole("", "sgd,lr=0.05,momentum=0.9", true), half("f16", "sgd,lr=0.05,momentum=0.9", true, "", 0);
  for (int i = 0; i < 4; ++i) {
    for (const char* entry : {"accumulate_step", "accumulate_step", "train_step"})
      CHECK(half.step(entry) == doctest::Approx(whole.step(entry)).epsilon(0.02));
  }
  CHECK(half.number("loss_scale.good_steps") == 4);
  const std::string file = OCLC_BINARY_DIR "/mixed_test.state";
  half.runner->session().save_state(file);
  Training again("f16", "sgd,lr=0.05,momentum=0.9", true, "", 0);
  again.runner->session().load_state(file);
  CHECK(again.number("loss_scale.good_steps") == 4);
  half.step();
  again.step();
  for (const StateVariable& v : half.module->states) CHECK_MESSAGE(same_bits(half.read(v.name), again.read(v.name)), v.name);
  std::remove(file.c_str());
}

TEST_CASE("an overflow among accumulated gradients leaves the whole step out") {
  Training t("f16,scale=1099511627776", "sgd,lr=0.1", true);
  const HostTensor before = t.read("parameters");
  t.step("accumulate_step");
  const float small = 1024;
  t.runner->session().write_variable("loss_scale", &small, sizeof small);
  t.step();
  CHECK(same_bits(before, t.read("parameters")));
  CHECK(t.number("loss_scale") == 512);
  t.step();
  CHECK(!same_bits(before, t.read("parameters")));
}
