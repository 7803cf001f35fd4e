// Spiking neurons that compute: 256-dimensional vectors are bound by circular convolution, a square is learnt, weights follow a
// rule.
//
//   spiking [--rules FILE] [--neurons N] [--steps N] [--svg FOLDER] [--device SEL]
//
// FILE holds the operators (default: examples/spiking/rules.cl below the present folder). Compiles one step of 1 ms, whose
// states feed themselves, and runs N of them (default: 1000) on the device without the host between them. Prints steps a second
// and how far what the neurons say is from what it should be; draws spikes and decoded values. Ends with 1 if it is too far.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "examples/number.h"
#include "examples/spiking/model.h"
#include "examples/spiking/picture.h"
#include "frontends/cpp/typed/plan.h"

namespace {

using namespace spiking;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string rules = "examples/spiking/rules.cl", neurons = "50", steps = "1000", svg, device;
};

std::vector<float> unit_vector(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> v(kDims);
  double square = 0;
  for (float& x : v) {
    double sum = 0;  // of twelve uniform numbers: nearly a normal one
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    x = static_cast<float>(sum);
    square += sum * sum;
  }
  for (float& x : v) x /= static_cast<float>(std::sqrt(square));
  return v;
}

// Everything of a run that is looked at afterwards.
struct Run {
  std::int64_t steps;
  std::vector<float> a = unit_vector(1), b = unit_vector(2), x, c, raster, learnt, target;
  double seconds = 0;

  explicit Run(std::int64_t count) : steps(count) {
    const auto n = static_cast<std::size_t>(count);
    for (std::size_t t = 0; t < n; ++t)
      x.push_back(static_cast<float>(std::sin(2 * std::numbers::pi * static_cast<double>(t) * kStep)));
    c.resize(n * kDims);
    raster.resize(n * kLearners);
    learnt.resize(n);
    target.resize(n);
  }
};

void run_steps(oclc::rt::Session& session, Run& run) {
  session.set_input(0, "a", run.a.data(), {1, kDims});
  session.set_input(0, "b", run.b.data(), {1, kDims});
  const std::vector<std::int64_t> one = {run.steps, 1, 1}, dims = {run.steps, 1, kDims}, cells = {run.steps, 1, kLearners};
  // The weights under the voltage rule begin at a half.
  for (const auto& [name, count] : {std::pair("w0", 200 * 100), std::pair("w1", 50 * 100), std::pair("w2", 30 * 30)}) {
    const std::vector<float> half(static_cast<std::size_t>(count), 0.5f);
    session.write_variable(name, half.data(), half.size() * sizeof(float));
  }
  const auto start = Clock::now();
  session.run_steps(0, static_cast<std::uint64_t>(run.steps),
                    {oclc::rt::host_series<const float>(OCLC_INPUT, "x", run.x.data(), one),
                     oclc::rt::host_series<float>(OCLC_OUTPUT, "c", run.c.data(), dims),
                     oclc::rt::host_series<float>(OCLC_OUTPUT, "raster", run.raster.data(), cells),
                     oclc::rt::host_series<float>(OCLC_OUTPUT, "learnt", run.learnt.data(), one),
                     oclc::rt::host_series<float>(OCLC_OUTPUT, "target", run.target.data(), one)});
  run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

// Of the second half of the steps: the cosine between the mean of what the neurons say and the convolution, and the error of
// what was learnt.
struct Found {
  double cosine = 0, error = 0;
  std::vector<float> mean, exact;
};

Found judge(const Run& run) {
  Found found{0, 0, std::vector<float>(kDims), circular_convolution(run.a, run.b)};
  const auto first = static_cast<std::size_t>(run.steps / 2), end = static_cast<std::size_t>(run.steps);
  const auto count = static_cast<double>(end - first);
  for (std::size_t t = first; t < end; ++t) {
    for (std::size_t i = 0; i < kDims; ++i) found.mean[i] += run.c[t * kDims + i] / static_cast<float>(count);
    const double miss = static_cast<double>(run.learnt[t] - run.target[t]);
    found.error += miss * miss / count;
  }
  found.error = std::sqrt(found.error);
  double dot = 0, mm = 0, ee = 0;
  for (std::size_t i = 0; i < kDims; ++i) {
    const auto m = static_cast<double>(found.mean[i]), e = static_cast<double>(found.exact[i]);
    dot += m * e, mm += m * m, ee += e * e;
  }
  found.cosine = dot / std::sqrt(mm * ee);
  return found;
}

// The mean of the weights, of which each lies in [0, 1] and some have moved; an exception otherwise.
double mean_weight(oclc::rt::Session& session) {
  std::vector<float> w(200 * 100);
  session.read_variable("w0", w.data(), w.size() * sizeof(float));
  double sum = 0;
  bool moved = false;
  for (const float v : w) {
    if (!(v >= 0 && v <= 1)) throw std::runtime_error("a weight left [0, 1]: " + std::to_string(v));
    sum += static_cast<double>(v);
    moved = moved || v != 0.5f;
  }
  if (!moved) throw std::runtime_error("no weight moved");
  return sum / static_cast<double>(w.size());
}

void draw(const std::string& folder, const Run& run, const Found& found) {
  draw_spikes(folder + "/spikes.svg", "spikes of the 100 neurons that see x", run.raster, kLearners);
  draw_curves(folder + "/convolution.svg", "circular convolution of two vectors of 256",
              {{"exact", found.exact}, {"by neurons", found.mean}});
  draw_curves(folder + "/learnt.svg", "the square of x, learnt", {{"x squared", run.target}, {"learnt", run.learnt}});
  std::printf("pictures: %s/spikes.svg, convolution.svg, learnt.svg\n", folder.c_str());
}

int spike(const Arguments& arguments) {
  const auto neurons = examples::number<std::int64_t>("--neurons", arguments.neurons, 1);
  const auto steps = examples::number<std::int64_t>("--steps", arguments.steps, 2);
  const auto start = Clock::now();
  const oclc::rt::Context context(arguments.device);
  const oclc_device_info device = context.device();
  const oclc::rt::Plan plan = plan_for(context, spiking_module(arguments.rules, neurons), oclc::CompileOptions());
  oclc::rt::Session session(plan, context);
  std::printf("%s: compiled in %.1f s, %u launches a step, state %.1f MB\n", device.name,
              std::chrono::duration<double>(Clock::now() - start).count(), plan.entry_info(0).launch_count,
              static_cast<double>(session.stats().state_bytes) * 1e-6);
  {
    Run first(2);  // drivers compile kernels when they first run
    run_steps(session, first);
    session.reset_state();
  }
  Run run(steps);
  run_steps(session, run);
  const Found found = judge(run);
  std::printf("%lld steps of 1 ms in %.2f s: %.0f steps/s\n", static_cast<long long>(run.steps), run.seconds,
              static_cast<double>(run.steps) / run.seconds);
  std::printf("convolution: cosine %.4f; learnt square: error %.4f; mean weight %.4f\n", found.cosine, found.error,
              mean_weight(session));
  if (!arguments.svg.empty()) draw(arguments.svg, run, found);
  const bool good = found.cosine > 0.9 && found.error < 0.15;
  if (!good) std::printf("wanted a cosine above 0.9 and an error below 0.15\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  try {
    for (int i = 1; i < argc; i += 2) {
      const std::string_view option = argv[i];
      std::string* value = option == "--rules"     ? &arguments.rules
                           : option == "--neurons" ? &arguments.neurons
                           : option == "--steps"   ? &arguments.steps
                           : option == "--svg"     ? &arguments.svg
                           : option == "--device"  ? &arguments.device
                                                   : nullptr;
      if (!value || i + 1 == argc)
        throw std::invalid_argument("usage: spiking [--rules FILE] [--neurons N] [--steps N] [--svg FOLDER] [--device SEL]");
      *value = argv[i + 1];
    }
    return spike(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spiking: %s\n", error.what());
    return 2;
  }
}
