// Builds ResNet-18 in C++, compiles it for the machine's device and runs it: the whole path in one program.
//
//   resnet18 [--index JSON --weights FILE] [--output PLAN] [--device SEL]
//
// FILE holds the parameters as float32 at the places that JSON gives (tests/models/resnet18/weights.json, and what
// oclc-fill-weights writes from it); without them the parameters are random. Prints the five largest logits of an image and the
// time of a run for one and for four images.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "examples/digits/waiting.h"
#include "examples/resnet18/resnet18.h"
#include "examples/resnet18/weight_file.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace {

constexpr std::int64_t kSide = 224, kClasses = 1000;

struct Arguments {
  std::string index, weights, output, device;
};

std::vector<std::byte> compile_resnet18(const Arguments& arguments) {
  const oclc::nn::Parameters parameters =
      arguments.weights.empty() ? oclc::nn::initial_parameters() : resnet18::weight_file(arguments.index, arguments.weights);
  oclc::nn::Network net("resnet18", parameters);
  const oclc::nn::Tensor image = net.input("input", oclc::DType::f32, {net.symbol("N"), 3, kSide, kSide});
  net.output("output", resnet18::resnet18(net, image, kClasses));
  oclc::CompileOptions options;
  options.target = oclc::find_target("cpu");
  const oclc::Compiled compiled = oclc::compile(net.finish(), options);
  std::printf("%zu kernels, %d launches, %.1f MB of constants\n", compiled.plan.files.size(), compiled.plan.launches,
              static_cast<double>(compiled.plan.constants.bytes()) * 1e-6);
  const auto metadata = std::as_bytes(std::span(compiled.plan.metadata));
  if (!arguments.output.empty()) oclc::package::write_package(arguments.output, metadata, compiled.plan.constants);
  return oclc::package::package_to_memory(metadata, compiled.plan.constants);
}

void classify(oclc::rt::Session& session, std::uint32_t entry, std::int64_t count) {
  std::vector<float> images(static_cast<std::size_t>(count * 3 * kSide * kSide)),
      logits(static_cast<std::size_t>(count * kClasses));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 251) / 125.0f - 1.0f;
  session.set_input(entry, "input", images.data(), {count, 3, kSide, kSide});
  session.set_output(entry, "output", logits.data(), {count, kClasses});
  {
    const examples::Waiting waiting("compiling kernels, which drivers keep for the next time");
    session.run(entry);
  }
  double best = 1e9;
  const auto first = std::chrono::steady_clock::now();
  do {
    const auto start = std::chrono::steady_clock::now();
    session.run(entry);
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  } while (std::chrono::steady_clock::now() - first < std::chrono::seconds(1));
  std::vector<std::size_t> order(static_cast<std::size_t>(kClasses));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + 5, order.end(),
                    [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::printf("%lld image%s: %.2f ms; first image:", static_cast<long long>(count), count == 1 ? "" : "s", best);
  for (std::size_t i = 0; i < 5; ++i)
    std::printf(" class %zu %.3f%s", order[i], static_cast<double>(logits[order[i]]), i < 4 ? "," : "\n");
}

int run(const Arguments& arguments) {
  const std::vector<std::byte> package = compile_resnet18(arguments);
  const oclc::rt::Plan plan = oclc::rt::Plan::load(package.data(), package.size());
  const oclc::rt::Context context(arguments.device);
  oclc::rt::Session session(plan, context);
  std::printf("on %s\n", context.device().name);
  for (const std::int64_t count : {1, 4}) classify(session, plan.entry("predict"), count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const std::map<std::string, std::string*> options{{"--index", &arguments.index},
                                                    {"--weights", &arguments.weights},
                                                    {"--output", &arguments.output},
                                                    {"--device", &arguments.device}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 == argc) {
      std::fputs("usage: resnet18 [--index JSON --weights FILE] [--output PLAN] [--device SEL]\n", stderr);
      return 2;
    }
    *option->second = argv[i + 1];
  }
  try {
    return run(arguments);
  } catch (const oclc::CompileError& error) {
    std::fprintf(stderr, "resnet18: error: %s\n", error.what());
    return static_cast<int>(error.parts().exit_code);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "resnet18: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resnet18: error: %s\n", error.what());
    return 6;
  }
}
