// What one launch of many kernels of one text takes, beside a launch each: w_k += alpha_k * (x_k - w_k) over states of random
// sizes, as many small parts of one kind as a model of spiking neurons has; as a user's body, and of the core's operators.
//
//   oclc-bench-grouping [DEVICE] [ROUNDS] [MEMBERS..]
//
// Three plans of the same module take turns on one device: grouped, with --disable=ragged_groups, and with a launch for each
// kernel. Prints, for 3, 10, 100 and 1000 members, or so many, of 1 to 4096 elements, launches of a run, texts of kernels,
// seconds to compile and to build, and the median, smallest and largest time of a run, with the ratio to the grouped plan;
// whether the states have the same bits in the end.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ops/builder.h"
#include "frontends/cpp/typed/device_target.h"
#include "frontends/op/custom_op.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace {

using namespace oclc;
using Clock = std::chrono::steady_clock;

// clang-format off
const char* const kBody = R"op(/*! oclc-op 1
name      = "bench.Decay"
in        = ["w: T[N]", "x: T[N]"]
out       = ["y: T[N]"]
attr      = { alpha = 1e-3 }
kernel    = "decay"
each      = ["N"]
reference = "y[i] = w[i] + alpha * (x[i] - w[i])"
*/
OP(decay) { STORE(y, ID(0), LOAD(w, ID(0)) + alpha * (LOAD(x, ID(0)) - LOAD(w, ID(0)))); }
)op";
// clang-format on

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

HostTensor random_state(std::int64_t elements, std::mt19937& random) {
  HostTensor tensor(DType::f32, {elements});
  for (std::int64_t i = 0; i < elements; ++i) tensor.set(i, static_cast<double>(random()) / 4294967296.0 - 0.5);
  return tensor;
}

std::vector<std::int64_t> sizes_of(int members) {
  std::mt19937 random(11);
  std::vector<std::int64_t> sizes;
  for (int k = 0; k < members; ++k) sizes.push_back(1 + static_cast<std::int64_t>(random() % 4096));
  return sizes;
}

std::shared_ptr<Module> module_of(const std::vector<std::int64_t>& sizes, bool as_body) {
  static const CustomOps ops = parse_ops(kBody, "decay.cl");
  auto module = std::make_shared<Module>();
  auto graph = std::make_unique<Graph>();
  graph->name = "step";
  std::mt19937 random(7);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::int64_t elements = sizes[k];
    const TensorType type{DType::f32, {Expr(elements)}};
    const std::string w = "w" + std::to_string(k), x = "x" + std::to_string(k);
    for (const std::string& name : {w, x}) module->states.push_back({name, type, random_state(elements, random), {}});
    Builder b(*graph, "rule" + std::to_string(k));
    Value *from = graph->add_input(w, type), *to = graph->add_input(x, type);
    const double alpha = 1e-3 * static_cast<double>(1 + k % 17);
    if (as_body)
      graph->add_output(w, custom::build(b, *ops.find("bench.Decay"), {from, to}, {{"alpha", alpha}})[0]);
    else
      graph->add_output(w, b.add(from, b.mul(b.scalar(DType::f32, alpha), b.sub(to, from))));
  }
  module->entries.push_back(std::move(graph));
  return module;
}

struct Plan {
  Plan(std::string name, int members, bool as_body, const rt::Context& context, std::vector<std::string> disabled)
      : name(std::move(name)) {
    const auto begin = Clock::now();
    CompileOptions options;
    options.target = target_of(context.device());
    options.disabled = std::move(disabled);
    const Compiled compiled = compile(module_of(sizes_of(members), as_body), options);
    package = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
    texts = compiled.plan.files.size();
    compile_seconds = seconds_since(begin);
    plan = rt::Plan::load(package.data(), package.size());
    session = std::make_unique<rt::Session>(plan, context);
    session->run(0);
    start_seconds = seconds_since(begin) - compile_seconds;
  }

  std::vector<std::byte> states(int members) const {
    std::vector<std::byte> all;
    const std::vector<std::int64_t> sizes = sizes_of(members);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      std::vector<std::byte> one(static_cast<std::size_t>(sizes[k]) * sizeof(float));
      session->read_variable("w" + std::to_string(k), one.data(), one.size());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  std::string name;
  std::vector<std::byte> package;
  rt::Plan plan;
  std::unique_ptr<rt::Session> session;
  std::size_t texts = 0;
  double compile_seconds = 0, start_seconds = 0;
  std::vector<double> times;
};

// Plans in turns.
void measure(int members, bool as_body, const rt::Context& context, int rounds) {
  std::vector<Plan> plans;
  const auto add = [&](const char* name, std::vector<std::string> disabled) {
    plans.emplace_back(name, members, as_body, context, std::move(disabled));
  };
  add("grouped", {});
  add("ungrouped", {"ragged_groups"});
  if (members <= 100) add("a launch each", {"ragged_groups", "megakernel", "horizontal_fusion"});
  constexpr int kRuns = 10;
  for (int round = -2; round < rounds; ++round) {
    for (Plan& plan : plans) {
      const auto begin = Clock::now();
      for (int i = 0; i < kRuns; ++i) plan.session->run(0);
      if (round >= 0) plan.times.push_back(seconds_since(begin) / kRuns);
    }
  }
  for (Plan& plan : plans) std::sort(plan.times.begin(), plan.times.end());
  const std::vector<std::byte> wanted = plans.front().states(members);
  for (const Plan& plan : plans) {
    const double median = plan.times[plan.times.size() / 2];
    std::printf(
        "%4d members  %-14s %5u launches %4zu texts  compile %6.2f s  start %6.2f s  %9.1f us [%.1f .. %.1f]  ratio %.2f%s\n",
        members, plan.name.c_str(), plan.session->stats().launches, plan.texts, plan.compile_seconds, plan.start_seconds,
        median * 1e6, plan.times.front() * 1e6, plan.times.back() * 1e6,
        median / plans.front().times[plans.front().times.size() / 2], plan.states(members) == wanted ? "" : "  DIFFERENT BITS");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const rt::Context context(argc > 1 ? argv[1] : "cpu");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  std::vector<int> counts;
  for (int i = 3; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {3, 10, 100, 1000};
  std::printf("%s, %d rounds\n", context.device().name, rounds);
  for (const bool as_body : {true, false}) {
    std::printf("%s\n", as_body ? "a user's body" : "operators of the core");
    for (const int members : counts) measure(members, as_body, context, rounds);
  }
}
