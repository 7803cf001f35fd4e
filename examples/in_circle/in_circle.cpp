// Learns which points of the unit square lie in a circle: a 2-40-10-1 network, one point a step, 100,000 steps in one launch.
//
//   in_circle [--steps N] [--compare N] [--png FILE] [--emit FILE] [--device SEL]
//
// Prints the learnt circle, its accuracy on new points and the time of a step; the picture goes to a PNG file too. Then N steps
// (all with --compare 100000) are compared with the plan that launches each kernel of each step: what both predict for the new
// points, and their parameters. Ends with 1 if the circle is not learnt or they differ.
#include <png.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler/support/error.h"
#include "examples/digits/waiting.h"
#include "examples/number.h"
#include "frontends/cpp/typed/typed.h"

namespace {

namespace typed = oclc::typed;
using Net = typed::Sequential<typed::Linear<2, 40>, typed::Tanh, typed::Linear<40, 10>, typed::Relu, typed::Linear<10, 1>,
                              typed::Logit>;

constexpr float kCentre = 0.5f, kRadius = 0.4f;

bool in_circle(float x, float y) { return std::hypot(x - kCentre, y - kCentre) < kRadius; }

struct Points {
  std::vector<float> xs, labels;

  Points(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    for (std::size_t i = 0; i < count; ++i) {
      const auto uniform = [&] { return static_cast<float>(generator() >> 8) * 0x1p-24f; };
      const float x = uniform(), y = uniform();
      xs.insert(xs.end(), {x, y});
      labels.push_back(in_circle(x, y) ? 1.0f : 0.0f);
    }
  }
};

// Probabilities on a grid of points, row by row.
std::vector<float> picture(const Net& net, std::size_t width, std::size_t height) {
  std::vector<float> points;
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      points.push_back((static_cast<float>(column) + 0.5f) / static_cast<float>(width));
      points.push_back((static_cast<float>(row) + 0.5f) / static_cast<float>(height));
    }
  }
  return net.predict(points);
}

void print_picture(const Net& net) {
  constexpr std::size_t kWidth = 60, kHeight = 30;
  const std::vector<float> p = picture(net, kWidth, kHeight);
  for (std::size_t row = 0; row < kHeight; ++row) {
    std::string line;
    for (std::size_t column = 0; column < kWidth; ++column)
      line += " .:+#"[std::min(4, static_cast<int>(p[row * kWidth + column] * 5))];
    std::printf("  %s\n", line.c_str());
  }
}

bool write_png(const Net& net, const std::string& file) {
  constexpr std::size_t kSide = 256;
  std::vector<png_byte> pixels;
  for (const float p : picture(net, kSide, kSide)) pixels.push_back(static_cast<png_byte>(std::lround(p * 255)));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
  image.format = PNG_FORMAT_GRAY;
  return png_image_write_to_file(&image, file.c_str(), 0, pixels.data(), 0, nullptr) != 0;
}

// Percentage of `p` on the same side of one half as `wanted`.
double agreement(const std::vector<float>& p, const std::vector<float>& wanted) {
  int same = 0;
  for (std::size_t i = 0; i < p.size(); ++i) same += (p[i] > 0.5f) == (wanted[i] > 0.5f) ? 1 : 0;
  return same * 100.0 / static_cast<double>(p.size());
}

template <class Work>
double seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

std::vector<float> parameters(const Net& net) {
  std::vector<float> all;
  for (const std::vector<float>& part :
       {net.weight<0>(), net.bias<0>(), net.weight<2>(), net.bias<2>(), net.weight<4>(), net.bias<4>()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct Arguments {
  std::string steps = "100000", compare = "1000", png, emit, device;
};

int run(const Arguments& arguments) {
  const auto steps = examples::number<std::size_t>("--steps", arguments.steps),
             compared = examples::number<std::size_t>("--compare", arguments.compare);
  typed::Options options;
  options.hyper = {.learning_rate = 0.004f, .momentum = 0.9f, .l2 = 1e-6f};
  options.device = arguments.device;
  std::optional<examples::Waiting> waiting("compiling kernels, which drivers keep for the next time");
  Net net(options);
  const Points points(steps, 1), first(compared, 1);
  net.train(first.xs, first.labels);  // builds the kernels where the cache has none
  net.engine().reset();
  waiting.reset();
  const double time = seconds([&] { net.train(points.xs, points.labels); });
  print_picture(net);
  const Points fresh(10000, 2);
  const double right = agreement(net.predict(fresh.xs), fresh.labels);
  std::printf("%zu steps in %.3f s (%.2f us a step) on %s; %.1f %% of 10000 new points right\n", steps, time,
              time * 1e6 / static_cast<double>(steps), net.engine().device_name().c_str(), right);
  if (!arguments.png.empty() && !write_png(net, arguments.png)) {
    std::fprintf(stderr, "in_circle: error: %s: cannot be written\n", arguments.png.c_str());
    return 6;
  }
  if (!arguments.emit.empty()) {
    std::ofstream file(arguments.emit);
    for (const oclc::GeneratedFile& source : net.engine().sources()) file << source.source << "\n";
  }
  bool same = true;
  if (compared > 0) {
    options.disabled = {"loop_kernel"};
    waiting.emplace("compiling the kernels of single steps");
    Net launches(options);
    net.engine().reset();
    std::vector<float> one, other;
    launches.train(std::span(first.xs).first(2), std::span(first.labels).first(1));
    waiting.reset();
    launches.engine().reset();
    const double fast = seconds([&] { one = net.train(first.xs, first.labels); }),
                 slow = seconds([&] { other = launches.train(first.xs, first.labels); });
    const double losses = largest_difference(one, other);
    one = net.predict(fresh.xs);
    other = launches.predict(fresh.xs);
    const double difference = largest_difference(one, other), moved = largest_difference(parameters(net), parameters(launches));
    // Sums are taken in another order; what that changes grows with the steps.
    same = std::max({difference, moved, losses}) < 1e-7 * std::max(static_cast<double>(compared), 100.0);
    net.train_step({0, 0}, {0});
    net.engine().reset();
    const double calls = seconds([&] {
      for (std::size_t i = 0; i < compared; ++i) net.train_step({first.xs[2 * i], first.xs[2 * i + 1]}, {first.labels[i]});
    });
    const double scale = 1e6 / static_cast<double>(compared);
    std::printf("%zu steps: one launch %.2f us a step, a launch a step %.2f, a launch a kernel %.2f (%.0f times)\n", compared,
                fast * scale, calls * scale, slow * scale, slow / fast);
    std::printf(
        "  right %.2f %% and %.2f %%, verdicts alike %.2f %%; largest differences: answers %.1e, parameters %.1e, losses "
        "%.1e\n",
        agreement(one, fresh.labels), agreement(other, fresh.labels), agreement(one, other), difference, moved, losses);
  }
  return same && (right > 95 || steps < 100000) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const std::map<std::string, std::string*> options{{"--steps", &arguments.steps},
                                                    {"--compare", &arguments.compare},
                                                    {"--png", &arguments.png},
                                                    {"--emit", &arguments.emit},
                                                    {"--device", &arguments.device}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 == argc) {
      std::fputs("usage: in_circle [--steps N] [--compare N] [--png FILE] [--emit FILE] [--device SEL]\n", stderr);
      return 2;
    }
    *option->second = argv[i + 1];
  }
  try {
    return run(arguments);
  } catch (const oclc::CompileError& error) {
    std::fprintf(stderr, "in_circle: error: %s\n", error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "in_circle: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "in_circle: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in_circle: error: %s\n", error.what());
    return 2;
  }
}
