#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/gradients/winograd_gradients.h"

using namespace oclc;

namespace {

constexpr const char* kPlain = "strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1, kernel=[3, 3]";

std::unique_ptr<Graph> weight_gradient(const std::string& x, const std::string& y, const std::string& attributes) {
  return parse_graph(
      fmt::format("graph g(%x: f32[{}], %y: f32[{}]) {{\n  %0 = conv_weight_grad(%x, %y) {{{}}}\n  return w=%0\n}}\n", x, y,
                  attributes),
      find_op);
}

ConvolutionOptions options_for(const char* target, Contract contract = Contract::fp32) {
  ConvolutionOptions options;
  options.target = find_target(target);
  options.target.precision = precision_under(contract);
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
  CHECK_FALSE(is_rewritten("8, 64, 28, 28", "8, 64, 28, 28", kPlain, options_for("cpu", Contract::strict)));
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

TEST_CASE("on sm_90a Winograd takes weight gradients in single precision, of wide operands") {
  const auto h200 = options_for("h200");
  for (const auto& [channels, features, size] : {std::tuple(64, 64, 56), std::tuple(128, 128, 112), std::tuple(64, 64, 224),
                                                 std::tuple(128, 128, 28), std::tuple(256, 256, 14), std::tuple(512, 512, 7),
                                                 std::tuple(512, 512, 28), std::tuple(128, 32, 28), std::tuple(33, 47, 30)}) {
    CAPTURE(channels);
    CAPTURE(size);
    CHECK(is_rewritten(fmt::format("16, {}, {}, {}", channels, size, size), fmt::format("16, {}, {}, {}", features, size, size),
                       kPlain, h200));
  }
  // Channels of a picture; products of rounded operands, and of floats; so few tiles that sums of points are the work.
  CHECK_FALSE(is_rewritten("16, 3, 224, 224", "16, 64, 224, 224", kPlain, h200));
  const auto rounded = options_for("h200", Contract::tf32), strict = options_for("h200", Contract::strict);
  CHECK_FALSE(is_rewritten("16, 64, 56, 56", "16, 64, 56, 56", kPlain, rounded));
  CHECK_FALSE(is_rewritten("16, 64, 56, 56", "16, 64, 56, 56", kPlain, strict));
  CHECK_FALSE(is_rewritten("1, 512, 7, 7", "1, 512, 7, 7", kPlain, h200));
}
