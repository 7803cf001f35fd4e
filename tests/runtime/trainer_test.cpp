#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "oclc/train.hpp"
#include "tests/runtime/error_of.h"
#include "tests/runtime/temp_dir.h"
#include "tests/runtime/train_in_c.h"
#include "tests/runtime/train_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr std::uint32_t kTrain = 1;

// Batch number `step` of `n` samples.
struct Batch {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  std::int64_t n;

  explicit Batch(std::int64_t size, std::int64_t step = 0) : n(size) {
    for (std::int64_t i = 0; i < n; ++i) {
      x.push_back(static_cast<float>((7 * i + 3 * step) % 11) / 11);
      x.push_back(static_cast<float>((5 * i + step) % 13) / 13);
      labels.push_back(static_cast<std::int32_t>((i + step) % 3));
    }
  }
  void feed(rt::Trainer& trainer) const {
    trainer.feed("x", x.data(), {n, 2});
    trainer.feed("labels", labels.data(), {n});
  }
};

// The network of train_plan.h on the host.
struct Reference {
  float w[2] = {0, 0};
  float b = 0;
  double step(const Batch& batch, float lr) {
    double loss = 0, gb = 0, gu = 0, gv = 0;
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      const double u = batch.x[2 * i], v = batch.x[2 * i + 1];
      const double e = b + w[0] * u + w[1] * v - batch.labels[i];
      loss += e * e, gb += e, gu += e * u, gv += e * v;
    }
    const double scale = 2.0 * lr / static_cast<double>(batch.n);
    b -= static_cast<float>(scale * gb);
    w[0] -= static_cast<float>(scale * gu);
    w[1] -= static_cast<float>(scale * gv);
    return loss / static_cast<double>(batch.n);
  }
};

}  // namespace

TEST_CASE("a training loop in C") {
  const auto bytes = train_plan_bytes();
  trained result{};
  CHECK(train_in_c(bytes.data(), bytes.size(), &result) == 0);
  CHECK(result.steps == 300);
  CHECK(result.loss < 1e-6);
  CHECK(result.w[0] == doctest::Approx(2).epsilon(1e-3));
  CHECK(result.w[1] == doctest::Approx(-1).epsilon(1e-3));
  CHECK(result.b == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("each step sees its own batch and hyper-parameters, results come in order") {
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{5000}}) {  // by direct writes, by transfers
    rt::Session session(load(train_plan_bytes()), rt::Context());
    rt::Trainer trainer(session, kTrain);
    CHECK(trainer.value_names() == std::vector<std::string>{"loss", "correct"});
    Reference reference;
    std::vector<double> wanted;
    std::vector<oclc_step_result> results;
    for (std::int64_t step = 0; step < 40; ++step) {
      const Batch batch(n, step);
      const float lr = 0.3f / static_cast<float>(1 + step);
      trainer.set("lr", static_cast<double>(lr));
      batch.feed(trainer);
      trainer.step();
      wanted.push_back(reference.step(batch, lr));
      for (const auto& r : trainer.results()) results.push_back(r);
    }
    for (const auto& r : trainer.results(true)) results.push_back(r);
    REQUIRE(results.size() == 40);
    for (std::size_t i = 0; i < 40; ++i) {
      CHECK(results[i].step == i + 1);
      CHECK(results[i].loss == doctest::Approx(wanted[i]).epsilon(1e-4));
      CHECK(results[i].value_count == 2);
      CHECK(results[i].values[0] == results[i].loss);
      CHECK(results[i].values[1] >= 0);
    }
    float w[2] = {};
    session.read_variable("w", w, 8);
    CHECK(w[0] == doctest::Approx(reference.w[0]).epsilon(1e-3));
    CHECK(session.stats().train_steps == 40);
    CHECK(trainer.results(true).empty());
  }
}

TEST_CASE("a resumed run is the same as one without a break") {
  const TempDir folder;
  const auto run = [&](rt::Session& session, std::int64_t from, std::int64_t to) {
    rt::Trainer trainer(session, kTrain);
    for (std::int64_t step = from; step < to; ++step) {
      Batch(6, step).feed(trainer);
      trainer.step();
    }
    return trainer.results(true).back();
  };
  const rt::Plan plan = load(train_plan_bytes());
  const rt::Context context;
  rt::Session whole(plan, context), first(plan, context), second(plan, context);
  const auto wanted = run(whole, 0, 20);
  run(first, 0, 9);
  first.save_state(folder / "c");
  second.load_state(folder / "c");
  const auto found = run(second, 9, 20);
  CHECK(found.step == 20);
  CHECK(found.loss == wanted.loss);
  second.reset_state();
  CHECK(second.stats().train_steps == 0);
}

TEST_CASE("steps that leave the state as it is do not count as training") {
  rt::Session session(load(train_plan_bytes()), rt::Context());
  rt::Trainer predict(session, 0);
  predict.feed("x", Batch(4).x.data(), {4, 2});
  predict.step();
  predict.step();
  const auto results = predict.results(true);
  REQUIRE(results.size() == 2);
  CHECK(results[1].step == 2);
  CHECK(results[1].value_count == 0);
  CHECK(std::isnan(results[1].loss));
  CHECK(session.stats().train_steps == 0);
  CHECK(predict.next_step() == 3);
  CHECK(rt::Trainer(session, kTrain).next_step() == 1);
}

TEST_CASE("the batch size may change between steps, for all inputs at once") {
  rt::Session session(load(train_plan_bytes()), rt::Context());
  rt::Trainer trainer(session, kTrain);
  Reference reference;
  for (const std::int64_t n : {4, 9, 2, 2, 700}) {
    const Batch batch(n, n);
    batch.feed(trainer);
    trainer.step();
    CHECK(trainer.results(true).at(0).loss == doctest::Approx(reference.step(batch, 0.1f)).epsilon(1e-4));
  }
  trainer.feed("x", Batch(3).x.data(), {3, 2});
  CHECK(error_of([&] { trainer.step(); }) ==
        "dimension 'N' is inconsistent: input 'x' dimension 0 is 3, but input 'labels' dimension 0 is 700");
  trainer.feed("labels", Batch(3).labels.data(), {3});
  trainer.step();
  CHECK(trainer.results(true).size() == 1);
}

TEST_CASE("what does not fit is refused and names the input") {
  rt::Session session(load(train_plan_bytes()), rt::Context());
  CHECK(error_of([&] { rt::Trainer(session, 9); }, OCLC_E_ARGUMENT) == "entry point 9 of 2");
  rt::Trainer trainer(session, kTrain);
  CHECK(error_of([&] { trainer.step(); }) == "entry point 'train_step' has no value for input 'x', 'labels'");
  const float x[8] = {};
  CHECK(error_of([&] { trainer.feed("x", x, {2, 3}); }) == "input 'x': wanted shape [N, 2], found [2, 3]");
  CHECK(error_of([&] { trainer.feed("x", x, {4}); }) == "input 'x': wanted shape [N, 2], found rank 1");
  CHECK(error_of([&] { trainer.feed("labels", x, {4}); }) == "input 'labels': wanted int32, found float32");
  CHECK(error_of([&] { trainer.feed<float>("x", nullptr, {4, 2}); }) == "input 'x': its host pointer is NULL");
  CHECK(error_of(
            [&] {
              trainer.feed("z", x, {4, 2});
            },
            OCLC_E_ARGUMENT) == "entry point 'train_step' has no input 'z'; it has: x, labels");
  CHECK(error_of([&] { trainer.set("momentum", 1); }, OCLC_E_ARGUMENT) ==
        "no scalar input or variable 'momentum'; the plan's scalars: b, lr");
  CHECK(error_of([&] { trainer.set("w", 1); }, OCLC_E_ARGUMENT) == "variable 'w' is no scalar: its shape is [2]");
  CHECK(error_of([&] { trainer.set("x", 1); }) == "input 'x': wanted shape [N, 2], found rank 0");
  oclc_tensor small = OCLC_INIT(oclc_tensor);
  const std::int64_t shape[] = {4, 2};
  small.rank = 2;
  small.shape = shape;
  small.host = const_cast<float*>(x);
  small.bytes = 31;
  CHECK(error_of([&] { trainer.feed("x", small); }) == "input 'x': shape [4, 2] needs 32 bytes, found 31");
  CHECK(oclc_trainer_step(nullptr) == OCLC_E_ARGUMENT);
  oclc_trainer_release(nullptr);
}

TEST_CASE("case 111: an infinite loss is told as it is") {
  rt::Session session(load(train_plan_bytes()), rt::Context());
  rt::Trainer trainer(session, kTrain);
  trainer.set("lr", 1e30);
  Batch(4, 2).feed(trainer);
  for (int i = 0; i < 3; ++i) trainer.step();
  const auto results = trainer.results(true);
  CHECK(std::isfinite(results[0].loss));
  CHECK(!std::isfinite(results[2].loss));
}

TEST_CASE("the NaN check names the launch that made it, or the input or variable that held it") {
  rt::Session session(load(train_plan_bytes()), rt::Context());
  session.enable_nan_check(true);
  rt::Trainer trainer(session, kTrain);
  Batch batch(4);
  batch.feed(trainer);
  trainer.step();
  CHECK(std::isfinite(trainer.results(true).at(0).loss));
  Batch bad(4);
  bad.x[5] = std::nanf("");
  bad.feed(trainer);
  CHECK(error_of([&] { trainer.step(); }, OCLC_E_NAN) == "input 'x' holds a NaN at element 5 (1 of 8), before anything ran");
  batch.feed(trainer);
  const float w[2] = {1, std::nanf("")};
  session.write_variable("w", w, 8);
  CHECK(error_of([&] { trainer.step(); }, OCLC_E_NAN) == "variable 'w' holds a NaN at element 1 (1 of 3), before anything ran");
  // Infinity times zero.
  const float infinite[2] = {HUGE_VALF, 0};
  session.write_variable("w", infinite, 8);
  CHECK(
      error_of([&] { trainer.step(); }, OCLC_E_NAN) ==
      "node backward_node, kernel 'backward', launch 0 of entry point 'train_step', made a NaN: buffer 'loss' at element 0 (1 "
      "of 1); what it read holds no NaN");
  // The step that makes infinity goes through, the next one meets it.
  session.reset_state();
  trainer.set("lr", HUGE_VAL);
  trainer.step();
  const std::string text = error_of([&] { trainer.step(); }, OCLC_E_NAN);
  CHECK(text.find("made a NaN") != text.npos);
}
