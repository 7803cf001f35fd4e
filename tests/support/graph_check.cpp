#include "tests/support/graph_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "compiler/ops/reference/evaluate.h"

namespace oclc {

std::vector<Expr> symbols_of(const Graph& graph) {
  std::vector<Expr> symbols;
  const auto add = [&](const Expr& e) {
    for (const std::string& name : e.symbols()) {
      const auto at = std::find_if(symbols.begin(), symbols.end(), [&](const Expr& s) { return s.symbol_name() == name; });
      Expr& symbol = at != symbols.end() ? *at : symbols.emplace_back(Expr::symbol(name));
      if (e.symbol_name()) symbol = e;
    }
  };
  for (const auto& input : graph.inputs()) std::for_each(input->type.shape.begin(), input->type.shape.end(), add);
  for (const Node* node : graph.nodes()) {
    for (const auto& [name, value] : node->attributes) {
      const auto* exprs = std::get_if<std::vector<Expr>>(&value);
      if (exprs) std::for_each(exprs->begin(), exprs->end(), add);
    }
  }
  return symbols;
}

SymbolValues small_symbols(const Graph& graph) {
  std::map<std::string, Expr> by_name;
  for (const Expr& symbol : symbols_of(graph)) by_name[*symbol.symbol_name()] = symbol;
  constexpr std::int64_t kSizes[] = {2, 3, 5, 4, 7};
  SymbolValues values;
  for (const auto& [name, symbol] : by_name)
    values[name] = std::clamp(kSizes[values.size() % 5], symbol.lower(), symbol.upper());
  return values;
}

std::vector<HostTensor> random_inputs(const Graph& graph, const SymbolValues& symbols, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (const auto& input : graph.inputs()) {
    HostTensor tensor(input->type.dtype, bind_shape(input->type.shape, symbols));
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      const std::uint64_t bits = random();
      if (is_float(tensor.dtype()))
        tensor.set(i, static_cast<double>(bits >> 40) * 0x1p-23 - 1);
      else
        tensor.set_int(i, static_cast<std::int64_t>(bits % (tensor.dtype() == DType::boolean ? 2 : 3)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

std::string difference(const std::vector<HostTensor>& found, const std::vector<HostTensor>& wanted, double tolerance) {
  if (found.size() != wanted.size()) return fmt::format("{} outputs instead of {}", found.size(), wanted.size());
  for (std::size_t t = 0; t < found.size(); ++t) {
    const HostTensor &a = found[t], &b = wanted[t];
    if (!(a.type() == b.type())) return fmt::format("output {} is {} instead of {}", t, a.type().text(), b.type().text());
    double largest = 0;
    for (std::int64_t i = 0; i < b.elements(); ++i) {
      if (std::isfinite(b.at(i))) largest = std::max(largest, std::fabs(b.at(i)));
    }
    for (std::int64_t i = 0; i < b.elements(); ++i) {
      const double x = a.at(i), y = b.at(i);
      if (!is_float(b.dtype()) ? a.int_at(i) == b.int_at(i)
                               : (x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * largest))
        continue;
      return fmt::format("output {}, element {}: {} instead of {} (largest magnitude {})", t, i, x, y, largest);
    }
  }
  return {};
}

}  // namespace oclc
