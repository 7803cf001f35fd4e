// Training rounds sums of products less than inference does where that takes time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/training/training.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A product of `inner` terms: of two inputs, or of an input and a parameter that is trained.
std::shared_ptr<Module> product(bool trained, const std::string& rows, const std::string& inner, const std::string& columns) {
  const std::string w = "f32[" + inner + ", " + columns + "]";
  auto module = std::make_shared<Module>(parse_module(
      "module \"m\"\n" + (trained ? "state \"w\" : " + w + " = " + w + " random 3\n" : "") + "graph predict(%x: f32[" + rows +
          ", " + inner + "], %w: " + w + ") {\n%0 = matmul(%x, %w) {trans_a=0, trans_b=0}\nreturn y=%0\n}",
      find_op));
  if (trained) build_training(*module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.001"), {}, {}, 0});
  return module;
}

CompileOptions options_for(const char* target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  return options;
}

// Root of the mean square of the differences, in units of the reference's.
double deviation(const HostTensor& found, const HostTensor& wanted) {
  double error = 0, size = 0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    error += std::pow(found.at(i) - wanted.at(i), 2);
    size += std::pow(wanted.at(i), 2);
  }
  return std::sqrt(error / size);
}

}  // namespace

TEST_CASE("where registers are few, long sums of products are rounded less in training") {
  const auto inference = product(false, "16", "2048", "64"), training = product(true, "16", "2048", "64");
  const HostTensor w = training->states.at(0).initial.reshaped({2048, 64}), x = random_tensor(DType::f32, {16, 2048}, 1);
  const HostTensor wanted = evaluate(*inference->entries.at(0), std::vector{x, w}).at(0);
  PlanRunner usual(inference, options_for("cpu-256")), careful(training, options_for("cpu-256"));
  const double usually = deviation(usual.run(std::vector{x, w}).at(0), wanted),
               carefully = deviation(careful.run(std::vector{x}).at(0), wanted);
  CHECK(usually < 1e-6);
  CHECK(carefully < 0.75 * usually);
}

TEST_CASE("in training Winograd adds up channels in short chains, and those in groups") {
  const auto text = [](bool trained) {
    const std::string conv = " {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n", w = "f32[128, 128, 3, 3]";
    auto module = std::make_shared<Module>(
        parse_module("module \"m\"\n" + (trained ? "state \"w\" : " + w + " = " + w + " random 3\n" : "") +
                         "graph predict(%x: f32[8, 128, 14, 14], %w: " + w + ") {\n%0 = conv(%x, %w)" + conv +
                         "%1 = conv(%0, %w)" + conv + "return y=%1\n}",
                     find_op));
    if (trained) build_training(*module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.001"), {}, {}, 0});
    CompileOptions options = options_for("cpu-256");
    options.disabled = {"megakernel"};
    std::string all;
    for (const GeneratedFile& file : compile(module, options).plan.files) all += file.source;
    CHECK(all.find("F(2x2, 3x3)") != std::string::npos);
    return all;
  };
  CHECK(text(true).find("k0 += 16") != std::string::npos);
  CHECK(text(true).find("k_end % 64") != std::string::npos);
  CHECK(text(false).find("k0 += 16") == std::string::npos);
  CHECK(text(false).find("k_end % 64") == std::string::npos);
}

TEST_CASE("in single precision the matrix unit of sm_90a gets back what it cuts off, in tf32 it does not") {
  const auto text = [](bool trained, const char* precision = "fp32") {
    CompileOptions options = options_for("h200");
    options.precision = precision;
    std::string all;
    for (const GeneratedFile& file : compile(product(trained, "512", "4096", "512"), options).plan.files) all += file.source;
    return all;
  };
  const auto has = [](const std::string& source, std::initializer_list<const char*> calls) {
    return std::any_of(calls.begin(), calls.end(), [&](const char* call) { return source.find(call) != std::string::npos; });
  };
  const auto gives_back = [&](const std::string& source) {
    return has(source, {"oclc_scale_down(exponent0, (step", "oclc_regain((step", "oclc_regain(step *"});
  };
  const auto gives_nothing = [&](const std::string& source) {
    return has(source, {"oclc_scale_down(exponent0, 0)", "oclc_regain(0"});
  };
  CHECK(gives_back(text(true)));
  CHECK(!gives_nothing(text(true)));
  CHECK(gives_back(text(false)));
  CHECK(!gives_nothing(text(false)));
  CHECK(gives_nothing(text(false, "tf32")));
  CHECK(!gives_back(text(false, "tf32")));
}
