// Compiles a graph, runs its plan through the runtime and compares the results with the reference evaluation of the graph.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "oclc/oclc.hpp"

namespace oclc::plan {
struct PlanT;
}

namespace oclc::test {

// Options for the target that fits the device under test.
CompileOptions default_options();

// Uniform in [low, high), the same for the same seed; integers are rounded down, bools are value >= (low + high) / 2.
HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape, unsigned seed, double low = -1, double high = 1);

struct Difference {
  double max_abs = 0;
  double max_rel = 0;  // max|y - reference| / max|reference|; infinite where only one of both is NaN
};

Difference difference(const HostTensor& y, const HostTensor& reference);
// The worst of all outputs.
Difference difference(std::span<const HostTensor> y, std::span<const HostTensor> reference);

// A module of one entry that takes the graph over, with the graph's symbols.
std::shared_ptr<Module> module_of(std::unique_ptr<Graph> graph);

// A compiled graph on a device. The device is the first CPU, or what the environment variable OCLC_TEST_DEVICE selects.
class PlanRunner {
 public:
  PlanRunner(std::shared_ptr<Module> module, const CompileOptions& options);
  // Of a plan that was changed by `edit`.
  PlanRunner(std::shared_ptr<Module> module, const CompileOptions& options, const std::function<void(plan::PlanT&)>& edit);

  // The results of one run; symbols are bound from the inputs' shapes and by `symbols`. State is neither input nor result.
  std::vector<HostTensor> run(std::span<const HostTensor> inputs, const SymbolValues& symbols = {}, std::uint32_t entry = 0);

  const Compiled& compiled() const { return compiled_; }
  rt::Session& session() { return *session_; }
  // Source of all kernels, for failing tests.
  std::string source() const;

 private:
  void begin_session();

  Compiled compiled_;
  std::vector<std::byte> package_;
  rt::Plan plan_;
  std::unique_ptr<rt::Session> session_;
};

// Compiles a copy of `graph`, runs it and compares with evaluate(graph).
Difference compare_with_reference(const Graph& graph, std::span<const HostTensor> inputs,
                                  const CompileOptions& options = default_options(), const SymbolValues& symbols = {});

}  // namespace oclc::test
