#include "compiler/kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace oclc {
namespace {

constexpr std::array<std::string_view, 8> kAnchorNames = {"pointwise",      "reduce",          "row", "contraction", "scan",
                                                          "winograd_input", "winograd_output", "code"};
constexpr std::array<std::string_view, 8> kCombineNames = {"sum",          "product",     "max",          "min",
                                                           "argmax_first", "argmax_last", "argmin_first", "argmin_last"};

std::string guard_text(const std::vector<Expr>& guard) {
  std::vector<std::string> parts;
  for (const Expr& e : guard) parts.push_back(e.text() + " >= 0");
  return fmt::format("{}", fmt::join(parts, " && "));
}

std::string node_text(const Kernel& kernel, const ScalarNode& n) {
  std::vector<std::string> args;
  for (const NodeId a : n.args) args.push_back(fmt::format("%{}", a));
  switch (n.kind) {
    case ScalarNode::Kind::constant:
      return fmt::format("{}", n.number);
    case ScalarNode::Kind::index:
      return fmt::format("index({})", n.index.text());
    case ScalarNode::Kind::load: {
      const std::string load = fmt::format("{}[{}]", kernel.operands[static_cast<std::size_t>(n.operand)].name, n.index.text());
      return n.guard.empty() ? load : fmt::format("{} if {} else {}", load, guard_text(n.guard), n.number);
    }
    case ScalarNode::Kind::apply:
      return fmt::format("{}({})", n.op_name, fmt::join(args, ", "));
    case ScalarNode::Kind::cast:
      return fmt::format("cast({})", args[0]);
    case ScalarNode::Kind::select:
      return fmt::format("{} if {} else {}", args[0], guard_text(n.guard), n.number);
    case ScalarNode::Kind::choose:
      return fmt::format("{} if {} else {}", args[0], guard_text(n.guard), args[1]);
    case ScalarNode::Kind::reduced:
      return fmt::format("stage {}", n.stage);
    case ScalarNode::Kind::given:
      return "given";
  }
  return {};
}

}  // namespace

std::string_view name_of(Anchor anchor) { return kAnchorNames.at(static_cast<std::size_t>(anchor)); }

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

std::string Kernel::text() const {
  std::string out = fmt::format("kernel {} {} {{\n", name_of(anchor), name);
  for (const Axis& a : axes) out += fmt::format("  axis {} < {}\n", a.name, a.extent.text());
  for (const Axis& a : reduction) out += fmt::format("  reduce {} < {}\n", a.name, a.extent.text());
  for (const Operand& o : operands)
    out += fmt::format("  {} {}: {} buffer {}\n", o.written ? "write" : "read", o.name, name_of(o.dtype), o.buffer);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    out += fmt::format("  %{}: {} = {}\n", i, name_of(nodes[i].dtype), node_text(*this, nodes[i]));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::vector<std::string> over;
    for (const int a : stages[i].axes) over.push_back(reduction[static_cast<std::size_t>(a)].name);
    out += fmt::format("  stage {} = {} over {} of %{}\n", i, kCombineNames.at(static_cast<std::size_t>(stages[i].combine)),
                       fmt::join(over, ", "), stages[i].body);
  }
  for (const Store& s : stores) {
    out += fmt::format("  {}[{}] = %{}{}\n", operands[static_cast<std::size_t>(s.operand)].name, s.index.text(), s.value,
                       s.guard.empty() ? "" : " if " + guard_text(s.guard));
  }
  if (code) out += fmt::format("  code over {}\n", text_of(code->space.extents));
  if (contraction)
    out += fmt::format("  {}{}: %{} x %{}\n", name_of(contraction->asked), contraction->integers ? " of integers" : "",
                       contraction->a, contraction->b);
  if (contraction && contraction->shares > 1) out += fmt::format("  terms shared by {} work-groups\n", contraction->shares);
  if (contraction && contraction->choice) out += fmt::format("  by {}\n", contraction->choice->text());
  if (contraction && !contraction->windows.empty())
    out += fmt::format("  largest of windows of {}\n", fmt::join(contraction->windows, " x "));
  return out + "}\n";
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

std::size_t steps_of_launch(std::span<const Step> steps) {
  std::size_t n = 1;
  while (n < steps.size() && steps[n].beside) ++n;
  return n;
}

std::vector<Step> EntrySchedule::steps_apart() const {
  std::vector<Step> out;
  for (const Step& step : steps) {
    if (step.megakernel)
      out.insert(out.end(), step.body.begin(), step.body.end());
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
