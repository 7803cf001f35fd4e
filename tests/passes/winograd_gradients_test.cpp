#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/parse.h"
#include "compiler/ops/evaluate.h"
#include "compiler/ops/op_list.h"
#include "compiler/passes/winograd_gradients.h"

using namespace oclc;

namespace {

constexpr const char* kPlain = "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1, kernel=[3, 3]";

std::unique_ptr<Graph> weight_gradient(const std::string& x, const std::string& y, const std::string& attributes) {
  return parse_graph(
      fmt::format("graph g(%x: f32[{}], %y: f32[{}]) {{\n  %0 = conv_weight_grad(%x, %y) {{{}}}\n  return w=%0\n}}\n", x, y,
                  attributes),
      find_op);
}

ConvolutionOptions options_for(const char* target, const char* precision = "fp32") {
  ConvolutionOptions options;
  options.target = find_target(target);
  options.precision = precision;
  return options;
}

// In [-1, 1).
HostTensor random_tensor(const Shape& shape, std::uint32_t seed) {
  HostTensor tensor(DType::f32, bind_shape(shape, {}));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    seed = seed * 1664525 + 1013904223;
    tensor.set(i, static_cast<double>(seed >> 8) / (1 << 23) - 1);
  }
  return tensor;
}

bool is_rewritten(const std::string& x, const std::string& y, const std::string& attributes,
                  const ConvolutionOptions& options) {
  const auto graph = weight_gradient(x, y, attributes);
  const bool changed = winograd_gradients(*graph, options);
  CHECK(verify(*graph).empty());
  CHECK_FALSE(winograd_gradients(*graph, options));
  return changed;
}

}  // namespace

TEST_CASE("a weight gradient by Winograd is the sum over positions") {
  // Tiles that hang over the edges, padding on one side.
  for (const auto& [x, y, pads] : {std::tuple("2, 32, 28, 28", "2, 48, 28, 28", "1, 1, 1, 1"),
                                   std::tuple("2, 32, 31, 26", "2, 32, 30, 25", "1, 0, 0, 1")}) {
    CAPTURE(pads);
    const auto graph =
        weight_gradient(x, y, fmt::format("strides=[1, 1], dilations=[1, 1], pads=[{}], group=1, kernel=[3, 3]", pads));
    std::vector<HostTensor> inputs;
    for (const auto& input : graph->inputs())
      inputs.push_back(random_tensor(input->type.shape, static_cast<std::uint32_t>(inputs.size())));
    const HostTensor wanted = evaluate(*graph, inputs).at(0);
    REQUIRE(winograd_gradients(*graph, options_for("cpu")));
    const HostTensor found = evaluate(*graph, inputs).at(0);
    REQUIRE(found.shape() == wanted.shape());
    double worst = 0, largest = 0;
    for (std::int64_t i = 0; i < wanted.elements(); ++i) {
      worst = std::max(worst, std::abs(found.at(i) - wanted.at(i)));
      largest = std::max(largest, std::abs(wanted.at(i)));
    }
    // Rounded to floats between the operators alone.
    CHECK(worst < 1e-6 * largest);
  }
}

TEST_CASE("Winograd takes weight gradients where it is legal and saves time") {
  const auto cpu = options_for("cpu");
  CHECK(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28", kPlain, cpu));
  CHECK(is_rewritten("N, 64, 56, 56", "N, 64, 56, 56", kPlain, cpu));
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28", kPlain, options_for("cpu", "strict")));
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28", kPlain, options_for("gpu")));
  // Another strategy is asked for.
  auto implicit = cpu;
  implicit.strategy = "implicit";
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28", kPlain, implicit));
  // Few channels; another stride; other taps; groups; sizes not known.
  CHECK_FALSE(is_rewritten("8, 3, 28, 28", "8, 64, 28, 28", kPlain, cpu));
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 14, 14",
                           "strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1], group=1, kernel=[3, 3]", cpu));
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28",
                           "strides=[1, 1], dilations=[1, 1], pads=[2, 2, 2, 2], group=1, kernel=[5, 5]", cpu));
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28",
                           "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=2, kernel=[3, 3]", cpu));
  CHECK_FALSE(is_rewritten("8, 64, H, 28", "8, 64, H, 28", kPlain, cpu));
  // A launch more costs more than so few positions.
  CHECK_FALSE(is_rewritten("1, 16, 4, 4", "1, 16, 4, 4", kPlain, cpu));
}
