// Fine-tuning: ResNet-18's body stays as it is, a new head learns to tell pictures of five shapes apart.
//
//   finetune [--index JSON --weights FILE] [--steps N] [--batch N] [--rate LR] [--save PLAN] [--device SEL]
//
// FILE holds the body's parameters (tests/models/resnet18/weights.json, and what oclc-fill-weights writes from it); without
// them the body is random. Pictures are drawn while training; those of the test are others. Prints what trains and what it
// costs, the loss, and the accuracy before and after. Ends with 1 if the frozen body changed or the accuracy stays below 60 %
// (chance: 20 %).
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/error.h"
#include "compiler/training/training.h"
#include "examples/digits/waiting.h"
#include "examples/finetune/shapes.h"
#include "examples/number.h"
#include "examples/resnet18/resnet18.h"
#include "examples/resnet18/weight_file.h"
#include "frontends/cpp/typed/plan.h"
#include "oclc/train.hpp"

namespace {

using Clock = std::chrono::steady_clock;
namespace nn = oclc::nn;

constexpr std::int64_t kSide = 64, kClasses = static_cast<std::int64_t>(finetune::kShapes.size()), kFeatures = 512;
constexpr std::int64_t kTestPictures = 500;
constexpr std::uint64_t kFirstTest = std::uint64_t{1} << 40;  // pictures from here on are for the test
constexpr double kWanted = 0.8;

struct Arguments {
  std::string index, weights, steps = "200", batch = "32", rate = "0.01", save, device;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The body's parameters from the file if there is one, the head's at random.
nn::Parameters parameters(const Arguments& a) {
  const nn::Parameters fresh = nn::initial_parameters(1);
  const nn::Parameters body = a.weights.empty() ? fresh : resnet18::weight_file(a.index, a.weights);
  return [=](const std::string& name, const std::vector<std::int64_t>& shape) {
    return name.starts_with("head.") ? fresh(name, shape) : body(name, shape);
  };
}

oclc::rt::Plan compile(const Arguments& a, const oclc::rt::Context& context) {
  nn::Network net("finetune", parameters(a), nn::Use::training);
  const nn::Tensor image = net.input("image", oclc::DType::f32, {net.symbol("N"), 3, kSide, kSide});
  const nn::Tensor features = resnet18::features(net, image);
  const nn::Network::Scope head(net, "head");
  net.output("logits", linear(net, "linear", batch_norm(net, "norm", features), kClasses));
  net.output("features", features);
  const std::shared_ptr<oclc::Module> module = net.finish();
  std::int64_t all = 0, trained = 0;
  for (const oclc::StateVariable& state : module->states) {
    all += state.initial.elements();
    if (state.name.starts_with("head.")) trained += state.initial.elements();
  }
  oclc::TrainingOptions training;
  training.loss = oclc::parse_loss("cross_entropy");
  training.optimizer = oclc::parse_optimizer("adamw,weight_decay=0.01");
  training.frozen = {"conv1", "bn1", "layer"};
  build_training(*module, training);
  std::printf("%lld parameters, of which %lld train\n", static_cast<long long>(all), static_cast<long long>(trained));
  return plan_for(context, module, oclc::CompileOptions(), nullptr, a.save);
}

struct Test {
  double accuracy = 0;
  std::vector<float> features;
};

Test test(const oclc::rt::Plan& plan, oclc::rt::Session& session, const finetune::ShapeGenerator& shapes) {
  constexpr std::int64_t kPixels = 3 * kSide * kSide, kBatch = 50;
  const std::uint32_t entry = plan.entry("predict");
  std::vector<float> images(static_cast<std::size_t>(kBatch * kPixels)), logits(static_cast<std::size_t>(kBatch * kClasses)),
      features(static_cast<std::size_t>(kBatch * kFeatures));
  session.set_input(entry, "image", images.data(), {kBatch, 3, kSide, kSide});
  session.set_output(entry, "logits", logits.data(), {kBatch, kClasses});
  session.set_output(entry, "features", features.data(), {kBatch, kFeatures});
  Test result;
  int right = 0;
  for (std::int64_t first = 0; first < kTestPictures; first += kBatch) {
    std::vector<std::int64_t> truth;
    for (std::int64_t i = 0; i < kBatch; ++i)
      truth.push_back(
          shapes.draw(kFirstTest + static_cast<std::uint64_t>(first + i), &images[static_cast<std::size_t>(i * kPixels)]));
    session.run(entry);
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto row = logits.begin() + i * kClasses;
      right += std::max_element(row, row + kClasses) - row == truth[static_cast<std::size_t>(i)] ? 1 : 0;
    }
    result.features.insert(result.features.end(), features.begin(), features.end());
  }
  result.accuracy = static_cast<double>(right) / static_cast<double>(kTestPictures);
  return result;
}

void train(const Arguments& a, const oclc::rt::Plan& plan, oclc::rt::Session& session, const finetune::ShapeGenerator& shapes) {
  const std::uint64_t steps = examples::number<std::uint64_t>("--steps", a.steps);
  const std::int64_t batch = examples::number<std::int64_t>("--batch", a.batch, 1);
  const double rate = examples::number<double>("--rate", a.rate);
  const Clock::time_point start = Clock::now();
  oclc::rt::Trainer trainer(session, plan.entry("train_step"));
  const auto told = [&](bool wait) {
    for (const oclc_step_result& result : trainer.results(wait)) {
      if (result.step % 20 != 0 && result.step != steps) continue;
      const double time = seconds_since(start), done = static_cast<double>(result.step);
      std::printf("step %4llu of %llu   loss %.3f   %5.0f pictures/s   %.0f s left\n",
                  static_cast<unsigned long long>(result.step), static_cast<unsigned long long>(steps), result.loss,
                  done * static_cast<double>(batch) / time, static_cast<double>(steps) / done * time - time);
      std::fflush(stdout);
    }
  };
  for (std::uint64_t step = 0; step < steps; ++step) {
    auto* images = static_cast<float*>(trainer.memory("image", OCLC_F32, {batch, 3, kSide, kSide}));
    auto* labels = static_cast<std::int64_t*>(trainer.memory("labels", OCLC_I64, {batch}));
    for (std::int64_t i = 0; i < batch; ++i)
      labels[i] =
          shapes.draw(step * static_cast<std::uint64_t>(batch) + static_cast<std::uint64_t>(i), images + i * 3 * kSide * kSide);
    trainer.set("lr", rate * (1 - static_cast<double>(step) / static_cast<double>(steps)));
    trainer.step();
    told(false);
  }
  told(true);
}

int run(const Arguments& a) {
  const oclc::rt::Context context(a.device);
  const oclc::rt::Plan plan = compile(a, context);
  oclc::rt::Session session(plan, context);
  std::printf("launches of predict %u, of train_step %u; on %s\n", plan.entry_info(plan.entry("predict")).launch_count,
              plan.entry_info(plan.entry("train_step")).launch_count, context.device().name);
  const finetune::ShapeGenerator shapes(kSide);
  std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep for the next time");
  const Test before = test(plan, session, shapes);
  waiting.reset();
  const Clock::time_point start = Clock::now();
  train(a, plan, session, shapes);
  const double time = seconds_since(start);
  const Test after = test(plan, session, shapes);
  const bool same = std::memcmp(before.features.data(), after.features.data(), after.features.size() * sizeof(float)) == 0;
  std::printf("%lld other pictures: %.1f %% right before, %.1f %% after %.1f s; the frozen body's features are %s\n",
              static_cast<long long>(kTestPictures), before.accuracy * 100, after.accuracy * 100, time,
              same ? "the same to the bit" : "CHANGED");
  return same && after.accuracy >= kWanted ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  const std::map<std::string_view, std::string*> options{
      {"--index", &a.index}, {"--weights", &a.weights}, {"--steps", &a.steps},  {"--batch", &a.batch},
      {"--rate", &a.rate},   {"--save", &a.save},       {"--device", &a.device}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 == argc) {
      std::fputs(
          "usage: finetune [--index JSON --weights FILE] [--steps N] [--batch N] [--rate LR] [--save PLAN] [--device SEL]\n",
          stderr);
      return 2;
    }
    *option->second = argv[i + 1];
  }
  try {
    return run(a);
  } catch (const oclc::CompileError& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "finetune: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 6;
  }
}
