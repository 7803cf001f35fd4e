#include "tests/support/random_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "compiler/ir/copy.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"
#include "tests/support/graph_check.h"

namespace oclc {
namespace {

double largest_of(const HostTensor& tensor) {
  double largest = 0;
  for (std::int64_t i = 0; is_float(tensor.dtype()) && i < tensor.elements(); ++i) {
    if (std::isfinite(tensor.at(i))) largest = std::max(largest, std::fabs(tensor.at(i)));
  }
  return largest;
}

// Among all floats that the graph computes, at least 1.
double largest_magnitude(const Graph& graph, const std::vector<HostTensor>& inputs, const SymbolValues& symbols) {
  const auto copy = copy_graph(graph);
  int count = 0;
  for (const Node* node : copy->nodes()) {
    for (const auto& output : node->outputs) copy->add_output(fmt::format("all{}", count++), output.get());
  }
  double largest = 1;
  for (const HostTensor& tensor : evaluate(*copy, inputs, symbols)) largest = std::max(largest, largest_of(tensor));
  return largest;
}

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

std::string RandomCase::problem(const std::vector<HostTensor>& found) const {
  if (found.size() != wanted.size()) return fmt::format("{} outputs instead of {}", found.size(), wanted.size());
  for (std::size_t t = 0; t < wanted.size(); ++t) {
    const double largest = std::max(largest_of(wanted[t]), 1e-300);
    const std::string text = difference({found[t]}, {wanted[t]}, tolerance / largest);
    if (!text.empty()) return fmt::format("output {}: {}", graph->outputs()[t].first, text);
  }
  return {};
}

std::optional<RandomCase> random_case(std::uint64_t seed, const RandomGraphOptions& options) {
  RandomCase made;
  made.seed = seed;
  made.graph = random_graph(seed, options);
  for (const Expr& symbol : symbols_of(*made.graph)) {
    const std::string name = *symbol.symbol_name();
    made.symbols[name] = 1 + static_cast<std::int64_t>(seed % (name == "N" ? 3 : 5));
  }
  made.inputs = random_inputs(*made.graph, made.symbols, seed);
  try {
    made.wanted = evaluate(*made.graph, made.inputs, made.symbols);
  } catch (const CompileError&) {
    return std::nullopt;
  }
  made.tolerance = 1e-4 * largest_magnitude(*made.graph, made.inputs, made.symbols);
  return made;
}

std::vector<std::uint64_t> random_seeds(std::uint64_t count) {
  std::vector<std::uint64_t> seeds(environment("OCLC_RANDOM_GRAPHS", count));
  std::iota(seeds.begin(), seeds.end(), environment("OCLC_RANDOM_SEED", 0));
  return seeds;
}

}  // namespace oclc
