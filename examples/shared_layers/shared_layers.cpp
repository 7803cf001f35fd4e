// One set of weights, two views: what infers sees what the other trains.
//
//   shared_layers [--scale S] [--rows N] [--batch B] [--device SEL]
//
// First the classic 2-4-1 network on exclusive or, whose answer is known. Then a network of 10000-5000-1000-10 neurons, each
// layer but the last divided by S (1, 2, 5, 10, 20, 50; default 2), trains on N made-up rows of ten classes in batches of B;
// fresh rows of the same classes are recognised before and after. Ends with 1 if either does not learn.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/error.h"
#include "examples/digits/waiting.h"
#include "examples/number.h"
#include "frontends/cpp/typed/typed.h"

namespace {

namespace typed = oclc::typed;
using Xor = typed::Sequential<typed::Linear<2, 4>, typed::Tanh, typed::Linear<4, 1>, typed::Logit>;
template <int Scale>
using Large =
    typed::Sequential<typed::Linear<10000 / Scale, 5000 / Scale>, typed::Relu, typed::Linear<5000 / Scale, 1000 / Scale>,
                      typed::Relu, typed::Linear<1000 / Scale, 10>, typed::Softmax>;

constexpr std::size_t kClasses = 10;

struct Arguments {
  std::string scale = "2", rows = "2000", batch = "200", device;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool learn_xor(const std::string& device) {
  typed::Options options;
  options.hyper = {.learning_rate = 0.1f, .momentum = 0.9f, .l2 = 0};
  options.device = device;
  std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep for the next time");
  Xor net(options);
  const Xor::Inference inference = net.inference();
  Xor::Training training = net.training();
  std::vector<float> xs, ys;
  for (int i = 0; i < 4 * 2000; ++i) {
    const int a = i & 1, b = i >> 1 & 1;
    xs.insert(xs.end(), {static_cast<float>(a), static_cast<float>(b)});
    ys.push_back(static_cast<float>(a ^ b));
  }
  const std::span four = std::span(xs).first(8);
  const std::vector<float> before = inference.predict(four);
  training.train(xs, ys);
  const std::vector<float> after = inference.predict(four);
  waiting.reset();
  std::puts("2-4-1, exclusive or, 8000 steps of one row:");
  bool right = true;
  for (std::size_t i = 0; i < 4; ++i) {
    std::printf("  %.0f xor %.0f = %.0f   before %.3f   after %.3f\n", static_cast<double>(xs[2 * i]),
                static_cast<double>(xs[2 * i + 1]), static_cast<double>(ys[i]), static_cast<double>(before[i]),
                static_cast<double>(after[i]));
    right = right && std::abs(after[i] - ys[i]) < 0.1f;
  }
  return right;
}

// Rows of ten classes: a class is a pattern of signs, a row is its pattern under noise three times as strong.
class Rows {
 public:
  explicit Rows(std::size_t width) : width_(width) {}

  void fill(std::vector<float>& xs, std::vector<float>& ys) {
    std::fill(ys.begin(), ys.end(), 0.0f);
    for (std::size_t row = 0; row < ys.size() / kClasses; ++row) {
      const std::size_t label = next() % kClasses;
      ys[row * kClasses + label] = 1;
      for (std::size_t i = 0; i < width_; ++i) {
        const float sign = (mix(label * 0x10001 + i * 97) & 1) != 0 ? 0.5f : -0.5f;
        xs[row * width_ + i] = sign + static_cast<float>(static_cast<std::int64_t>(next() & 0xFFFF) - 0x8000) * 0x1p-14f;
      }
    }
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {  // the finaliser of splitmix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }

  std::size_t width_;
  std::uint64_t state_ = 1;
};

double accuracy(const std::vector<float>& p, const std::vector<float>& wanted) {
  std::size_t right = 0;
  for (std::size_t at = 0; at < p.size(); at += kClasses) {
    const auto best = [&](const std::vector<float>& v) {
      const auto row = v.begin() + static_cast<std::ptrdiff_t>(at);
      return std::max_element(row, row + kClasses) - row;
    };
    right += best(p) == best(wanted) ? 1 : 0;
  }
  return static_cast<double>(right * kClasses) / static_cast<double>(p.size());
}

template <int Scale>
bool learn_large(std::size_t rows, std::size_t batch, const std::string& device) {
  using Net = Large<Scale>;
  constexpr auto kWidth = static_cast<std::size_t>(Net::kInputs);
  typed::Options options;
  options.hyper = {.learning_rate = 0.01f, .momentum = 0.9f, .l2 = 1e-5f};
  options.batch = static_cast<std::int64_t>(batch);
  options.device = device;
  Net net(options);
  const typename Net::Inference inference = net.inference();
  typename Net::Training training = net.training();
  const double parameters = static_cast<double>(net.engine().parameter_count());
  std::printf("%d-%d-%d-10, %.2f million parameters, %zu rows in batches of %zu on %s:\n", 10000 / Scale, 5000 / Scale,
              1000 / Scale, parameters * 1e-6, rows, batch, net.engine().device_name().c_str());
  Rows source(kWidth);
  std::vector<float> xs(batch * kWidth), ys(batch * kClasses), new_xs(batch * kWidth), new_ys(batch * kClasses);
  source.fill(new_xs, new_ys);
  std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep for the next time");
  const double before = accuracy(inference.predict(new_xs), new_ys);
  double busy = 0, first = 0;
  float loss = 0;
  const std::size_t steps = std::max<std::size_t>(rows / batch, 1);
  for (std::size_t step = 0; step < steps; ++step) {
    source.fill(xs, ys);
    const auto start = std::chrono::steady_clock::now();
    loss = training.train_step(xs, ys);
    waiting.reset();
    const double time = seconds_since(start);
    (step == 0 ? first : busy) += time;  // the first step builds the kernels
    if ((step + 1) % std::max<std::size_t>(steps / 10, 1) != 0 && step != 0) continue;
    std::printf("  step %zu of %zu: loss %.4f, %.2f s\n", step + 1, steps, static_cast<double>(loss), time);
    std::fflush(stdout);
  }
  const double after = accuracy(inference.predict(new_xs), new_ys);
  const double rate = steps > 1 ? static_cast<double>((steps - 1) * batch) / busy : static_cast<double>(batch) / first;
  std::printf("  %.0f rows a second, %.1f GFLOP/s; new rows right: before %.1f %%, after %.1f %%\n", rate,
              rate * parameters * 6e-9, before * 100, after * 100);
  return std::isfinite(loss) && after > 0.9;
}

bool learn_large(int scale, std::size_t rows, std::size_t batch, const std::string& device) {
  switch (scale) {
    case 1:
      return learn_large<1>(rows, batch, device);
    case 2:
      return learn_large<2>(rows, batch, device);
    case 5:
      return learn_large<5>(rows, batch, device);
    case 10:
      return learn_large<10>(rows, batch, device);
    case 20:
      return learn_large<20>(rows, batch, device);
    case 50:
      return learn_large<50>(rows, batch, device);
    default:
      throw std::invalid_argument("--scale: wanted 1, 2, 5, 10, 20 or 50");
  }
}

int run(const Arguments& arguments) {
  const std::size_t rows = examples::number<std::size_t>("--rows", arguments.rows),
                    batch = examples::number<std::size_t>("--batch", arguments.batch, 1);
  const bool small = learn_xor(arguments.device);
  const bool large = learn_large(examples::number<int>("--scale", arguments.scale), rows, batch, arguments.device);
  return small && large ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const std::map<std::string, std::string*> options{{"--scale", &arguments.scale},
                                                    {"--rows", &arguments.rows},
                                                    {"--batch", &arguments.batch},
                                                    {"--device", &arguments.device}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 == argc) {
      std::fputs("usage: shared_layers [--scale S] [--rows N] [--batch B] [--device SEL]\n", stderr);
      return 2;
    }
    *option->second = argv[i + 1];
  }
  try {
    return run(arguments);
  } catch (const oclc::CompileError& error) {
    std::fprintf(stderr, "shared_layers: error: %s\n", error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "shared_layers: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "shared_layers: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shared_layers: error: %s\n", error.what());
    return 2;
  }
}
