// Trains the digits network from random weights: a complete training program over the runtime's C++ headers.
//
//   train_digits PLAN FOLDER [--epochs N] [--batch N] [--rate LR] [--seed S] [--steps N] [--resume FILE] [--save FILE]
//                            [--device SEL]
//
// PLAN is model.onnx compiled with `oclc --train cross_entropy,label_smoothing=0.05 --optimizer adamw,weight_decay=0.01`; its
// weights are replaced by random ones. FOLDER holds train_images.npy and train_labels.npy, and test_images.npy and
// test_labels.npy, which never train. --steps stops the program after that step of the whole training, --save writes a
// checkpoint then, --resume goes on from one: which images a step sees, how they are moved and how fast it learns follow from
// the seed and the step's number, so that a training in pieces ends with the same bits. Exit status 7 when a finished training
// recognises fewer than 98 % of the test images.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "examples/digits/npy.h"
#include "examples/digits/waiting.h"
#include "examples/number.h"
#include "oclc/train.hpp"

namespace {

constexpr std::int64_t kSide = 8;
constexpr double kWanted = 0.98;

struct Arguments {
  std::string plan, folder;
  std::string epochs = "30", batch = "32", rate = "0.005", seed = "1", steps, resume, save, device;
};

// Random numbers by place instead of by order: number `index` of the stream `stream` (the finaliser of splitmix64, twice).
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return mix(mix(seed * 0x9E3779B97F4A7C15u + stream) + index * 0xD1B54A32D192ED03u);
}
double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1p-24; }

// Weights uniform in +-sqrt(6 / inputs), scales and variances 1, biases and means 0.
void write_random_weights(const oclc::rt::Plan& plan, oclc::rt::Session& session, std::uint64_t seed) {
  const std::vector<oclc_binding_info> variables = plan.variables();
  for (std::uint32_t v = 0; v < variables.size(); ++v) {
    const std::string name = variables[v].name;
    const std::vector<std::int64_t> shape = plan.variable_shape(v);
    if (name == "random.seed") {  // of dropout
      const auto value = static_cast<std::uint32_t>(seed);
      session.write_variable(name, &value, sizeof value);
    }
    const bool weight = name.ends_with(".weight"), one = name.ends_with(".running_var") || (weight && shape.size() == 1);
    if (!weight && !one && !name.ends_with(".bias") && !name.ends_with(".running_mean")) continue;
    const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<float> values(static_cast<std::size_t>(count), one ? 1.0f : 0.0f);
    if (weight && !one) {
      const double limit = std::sqrt(6 * static_cast<double>(shape[0]) / static_cast<double>(count));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(limit * (2 * uniform(random_bits(seed, 1000 + v, i)) - 1));
    }
    session.write_variable(name, values.data(), values.size() * sizeof(float));
  }
}

class Batches {
 public:
  Batches(const std::string& folder, std::size_t size, std::uint64_t seed)
      : images_(digits::read_npy<std::uint8_t>(folder + "/train_images.npy", "|u1")),
        labels_(digits::read_npy<std::uint8_t>(folder + "/train_labels.npy", "|u1")),
        size_(size),
        seed_(seed) {
    if (labels_.values.size() * kSide * kSide != images_.values.size())
      throw std::runtime_error(folder + ": wanted a label for each training image");
    if (size == 0 || size > labels_.values.size())
      throw std::runtime_error("--batch: wanted 1 to " + std::to_string(labels_.values.size()));
  }

  // The images left over at the end of an epoch are others in each.
  std::size_t steps_per_epoch() const { return labels_.values.size() / size_; }

  // The images of a step, counted from 0, each moved by up to one pixel in each direction, zeros coming in.
  void fill(std::uint64_t step, float* images, std::int64_t* labels) {
    const std::uint64_t epoch = step / steps_per_epoch(), first = step % steps_per_epoch() * size_;
    if (order_.empty() || epoch != epoch_) shuffle(epoch);
    for (std::size_t i = 0; i < size_; ++i, images += kSide * kSide) {
      const std::size_t image = order_[first + i];
      const std::uint64_t move = random_bits(seed_, 1, epoch * labels_.values.size() + image);
      const auto dx = static_cast<std::int64_t>(move % 3) - 1, dy = static_cast<std::int64_t>(move / 3 % 3) - 1;
      for (std::int64_t y = 0; y < kSide; ++y) {
        for (std::int64_t x = 0; x < kSide; ++x) {
          const std::int64_t from_x = x + dx, from_y = y + dy;
          const bool inside = from_x >= 0 && from_x < kSide && from_y >= 0 && from_y < kSide;
          const auto at = static_cast<std::size_t>((static_cast<std::int64_t>(image) * kSide + from_y) * kSide + from_x);
          images[y * kSide + x] = inside ? static_cast<float>(images_.values[at]) / 16.0f : 0.0f;
        }
      }
      labels[i] = labels_.values[image];
    }
  }

 private:
  void shuffle(std::uint64_t epoch) {
    epoch_ = epoch;
    order_.resize(labels_.values.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (std::size_t i = order_.size() - 1; i > 0; --i)
      std::swap(order_[i], order_[random_bits(seed_, 2 + epoch * 8, i) % (i + 1)]);
  }

  const digits::Array<std::uint8_t> images_, labels_;
  const std::size_t size_;
  const std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::vector<std::size_t> order_;
};

// Up to the peak over the first third, down to a thousandth of it along a cosine over the rest.
double learning_rate(double peak, std::uint64_t step, std::uint64_t steps) {
  const double at = static_cast<double>(step + 1) / static_cast<double>(steps), rise = 0.3;
  const double share = at < rise ? (1 - std::cos(std::numbers::pi * at / rise)) / 2
                                 : (1 + std::cos(std::numbers::pi * (at - rise) / (1 - rise))) / 2;
  return peak * std::max(share, 1e-3);
}

class Progress {
 public:
  void show(const oclc_step_result& result, std::uint64_t steps, std::size_t batch) {
    ++done_;
    loss_ = loss_ == 0 ? result.loss : 0.98 * loss_ + 0.02 * result.loss;
    const bool line = result.step == steps || result.step % std::max<std::uint64_t>(steps / 10, 1) == 0;
    if (!line) return;
    const double time = seconds(), rate = static_cast<double>(done_) / time;
    std::printf("step %5llu of %llu   loss %.4f   %6.0f images/s   %.1f s left\n", static_cast<unsigned long long>(result.step),
                static_cast<unsigned long long>(steps), loss_, rate * static_cast<double>(batch),
                static_cast<double>(steps - result.step) / rate);
    std::fflush(stdout);
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::uint64_t done_ = 0;
  double loss_ = 0;  // running mean
};

struct Test {
  std::size_t right = 0, count = 0;
  double share() const { return static_cast<double>(right) / static_cast<double>(count); }
};

Test test(const oclc::rt::Plan& plan, oclc::rt::Session& session, const std::string& folder) {
  const auto images = digits::read_npy<float>(folder + "/test_images.npy", "<f4");
  const auto labels = digits::read_npy<std::int64_t>(folder + "/test_labels.npy", "<i8");
  const std::uint32_t entry = plan.entry("eval_step");
  std::int64_t correct = 0;
  session.set_input(entry, "image", images.values.data(), images.shape);
  session.set_input(entry, "labels", labels.values.data(), labels.shape);
  session.set_output(entry, "correct", &correct, {});
  session.run(entry);
  return {static_cast<std::size_t>(correct), labels.values.size()};
}

int run(const Arguments& a) {
  const auto batch = examples::number<std::size_t>("--batch", a.batch, 1);
  const std::uint64_t seed = examples::number<std::uint64_t>("--seed", a.seed);
  const double peak = examples::number<double>("--rate", a.rate);
  Batches batches(a.folder, batch, seed);
  const std::uint64_t steps = examples::number<std::uint64_t>("--epochs", a.epochs, 1) * batches.steps_per_epoch();
  const std::uint64_t last = a.steps.empty() ? steps : std::min(examples::number<std::uint64_t>("--steps", a.steps), steps);

  const Progress progress_of_all;
  const oclc::rt::Plan plan = oclc::rt::Plan::load(a.plan);
  const oclc::rt::Context context(a.device);
  std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep for the next time");
  oclc::rt::Session session(plan, context);
  if (a.resume.empty())
    write_random_weights(plan, session, seed);
  else
    session.load_state(a.resume);
  const Test before = test(plan, session, a.folder);
  std::uint64_t step = 0;
  {
    oclc::rt::Trainer trainer(session, plan.entry("train_step"));
    Progress progress;
    const auto n = static_cast<std::int64_t>(batch);
    for (step = trainer.next_step() - 1; step < last; ++step) {
      // Written while the steps before are running.
      auto* images = static_cast<float*>(trainer.memory("image", OCLC_F32, {n, 1, kSide, kSide}));
      auto* labels = static_cast<std::int64_t*>(trainer.memory("labels", OCLC_I64, {n}));
      batches.fill(step, images, labels);
      trainer.set("lr", learning_rate(peak, step, steps));
      trainer.step();
      waiting.reset();
      for (const oclc_step_result& result : trainer.results()) progress.show(result, steps, batch);
    }
    for (const oclc_step_result& result : trainer.results(true)) progress.show(result, steps, batch);
  }
  if (!a.save.empty()) session.save_state(a.save);
  const Test after = test(plan, session, a.folder);
  std::printf("%zu of %zu held-out digits right (%.1f %%), %.1f %% before; %.1f s on %s\n", after.right, after.count,
              100 * after.share(), 100 * before.share(), progress_of_all.seconds(), context.device().name);
  return step < steps || after.share() >= kWanted ? 0 : 7;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  const std::map<std::string_view, std::string*> options{
      {"--epochs", &a.epochs}, {"--batch", &a.batch},   {"--rate", &a.rate}, {"--seed", &a.seed},
      {"--steps", &a.steps},   {"--resume", &a.resume}, {"--save", &a.save}, {"--device", &a.device}};
  bool good = argc >= 3 && argc % 2 == 1;
  for (int i = 3; i + 1 < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end())
      good = false;
    else
      *option->second = argv[i + 1];
  }
  if (!good) {
    std::fputs(
        "usage: train_digits PLAN FOLDER [--epochs N] [--batch N] [--rate LR] [--seed S] [--steps N] [--resume FILE] [--save "
        "FILE] [--device SEL]\n",
        stderr);
    return 2;
  }
  a.plan = argv[1];
  a.folder = argv[2];
  try {
    return run(a);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "train_digits: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "train_digits: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: error: %s\n", error.what());
    return 6;
  }
}
