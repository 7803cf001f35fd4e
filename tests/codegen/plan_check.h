// Graphs of many results whose plans are compared with the reference on every kind of target.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/ir/copy.h"
#include "compiler/ir/text.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/runtime/cached_run.h"
#include "tests/support/graph_check.h"
#include "tests/support/run_plan.h"

namespace oclc::test {

// Whether tools/check --all runs, which has time for every variant.
inline bool tests_all() { return std::getenv("OCLC_TEST_ALL") != nullptr; }

// Wide vectors, and work-groups without vectors: PoCL runs them all. With tests_all() middle and narrow ones too, and
// middle ones unfused, since each takes a fifth of the time of these tests; other stages' tests run unfused plans in any case.
inline const std::vector<std::string>& target_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = {"cpu", "gpu"};
    if (tests_all()) list.insert(list.end(), {"cpu-256", "cpu-128"});
    return list;
  }();
  return names;
}

inline HostTensor ints_of(DType dtype, Ints shape, const Ints& values) {
  HostTensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set_int(i, values[static_cast<std::size_t>(i)]);
  return t;
}

inline std::vector<Expr> exprs(std::initializer_list<std::int64_t> values) { return {values.begin(), values.end()}; }

struct PlanCheck {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Builder b{*graph, "node"};
  std::vector<HostTensor> inputs;
  SymbolValues symbols;

  // An input of random values; dimensions are of `shape`, or symbols of `names` where those are not empty.
  Value* input(DType dtype, const Ints& shape, double low = -1, double high = 1, const std::vector<std::string>& names = {}) {
    return input(random_tensor(dtype, shape, static_cast<unsigned>(inputs.size()) + 7, low, high), names);
  }
  Value* input(const Ints& shape) { return input(DType::f32, shape); }
  Value* input(HostTensor tensor, const std::vector<std::string>& names = {}) {
    TensorType type = tensor.type();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) type.shape[i] = Expr::symbol(names[i]);
    }
    inputs.push_back(std::move(tensor));
    return graph->add_input("x" + std::to_string(inputs.size() - 1), type);
  }
  void out(const std::string& claim, Value* value) { graph->add_output(claim, value); }

  // Empty, or what is wrong: the target, the claim and the element.
  std::string problem(const std::string& target, bool fuse, double tolerance, std::span<const HostTensor> wanted,
                      const std::string& precision = "fp32") const {
    CompileOptions options = default_options();
    options.precision = precision;
    options.target = find_target(target);
    options.target.has.fp64 = true;  // as the device under test has it
    if (!fuse) options.disabled = {"fuse"};
    const std::string where = target + (fuse ? "" : ", unfused") + ": ";
    try {
      PlanRunner runner(module_of(copy_graph(*graph)), options);
      const auto found = runner.run(inputs, symbols);
      std::string all;
      // What answers first, while the driver optimizes, has the same bits.
      if (runner.source().find(" oclc_terms(acc") != std::string::npos ||
          runner.source().find("_merged(") != std::string::npos) {
        const char* flags = std::getenv("POCL_EXTRA_BUILD_FLAGS");
        const Setting unoptimized("POCL_EXTRA_BUILD_FLAGS", (std::string(flags ? flags : "") + " -DOCLC_UNOPTIMIZED").c_str());
        const std::string other =
            oclc::difference(PlanRunner(module_of(copy_graph(*graph)), options).run(inputs, symbols), found, 0);
        if (!other.empty()) all += where + "unoptimized: " + other + "\n";
      }
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string one = oclc::difference({found[i]}, {wanted[i]}, tolerance);
        if (!one.empty()) all += where + graph->outputs()[i].first + ": " + one + "\n";
      }
      return all;
    } catch (const std::exception& error) {
      return where + error.what() + "\n" + print_graph(*graph);
    }
  }

  void check(double tolerance = 2e-6, bool unfused = true) const {
    const auto wanted = evaluate(*graph, inputs, symbols);
    for (const std::string& target : target_names()) CHECK(problem(target, true, tolerance, wanted) == "");
    if (unfused && tests_all()) CHECK(problem("cpu-256", false, tolerance, wanted) == "");
  }
};

}  // namespace oclc::test
