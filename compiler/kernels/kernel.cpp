#include "compiler/kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace oclc {

std::string dynamic_symbol(NodeId id) { return fmt::format("%{}", id); }

std::optional<NodeId> dynamic_index(std::string_view symbol) {
  if (symbol.empty() || symbol[0] != '%') return std::nullopt;
  NodeId id = 0;
  std::from_chars(symbol.data() + 1, symbol.data() + symbol.size(), id);
  return id;
}

std::vector<std::string> Kernel::model_symbols() const {
  std::set<std::string> all;
  const auto collect = [&](const Expr& e) {
    for (const std::string& s : e.symbols()) {
      if (s[0] != '%') all.insert(s);
    }
  };
  for (const auto* list : {&axes, &reduction}) {
    for (const Axis& axis : *list) collect(axis.extent);
  }
  for (const ScalarNode& node : nodes) {
    collect(node.index);
    for (const Expr& e : node.guard) collect(e);
  }
  for (const Store& store : stores) {
    collect(store.index);
    for (const Expr& e : store.guard) collect(e);
  }
  if (code) {
    for (const Expr& e : code->space.extents) collect(e);
    for (const auto& [name, dim] : code->space.dims) collect(dim);
  }
  for (const auto* list : {&axes, &reduction}) {
    for (const Axis& axis : *list) all.erase(axis.name);
  }
  return {all.begin(), all.end()};
}

std::map<int, int> Schedule::uses() const {
  std::map<int, int> count;
  for (const Kernel& kernel : kernels) {
    for (const Operand& o : kernel.operands) ++count[o.buffer];
  }
  for (const Gemm& g : gemms) {
    for (const int buffer : {g.a, g.b, g.c}) ++count[buffer];
  }
  for (const Reading& r : readings) ++count[r.buffer];
  for (const HostCall& call : hosts) {
    for (const auto* list : {&call.inputs, &call.outputs}) {
      for (const HostOperand& o : *list) ++count[o.buffer];
    }
  }
  return count;
}

std::vector<Step> EntrySchedule::steps_apart() const {
  std::vector<Step> out;
  for (const Step& step : steps) {
    if (const auto* launch = step.as<MegakernelStep>())
      out.insert(out.end(), launch->body.begin(), launch->body.end());
    else
      out.push_back(step);
  }
  return out;
}

Expr at_first(const Kernel& kernel, const Expr& index) {
  Substitution first;
  for (const auto* axes : {&kernel.axes, &kernel.reduction})
    for (const Axis& axis : *axes) first.emplace(axis.name, Expr(0));
  return index.substitute(first);
}

void add_sources(std::vector<std::string>& sources, const std::vector<std::string>& more) {
  for (const std::string& source : more) {
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
  }
}

}  // namespace oclc
