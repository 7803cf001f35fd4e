// The text form of a kernel, read back by parse_schedule.h.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/ir/text.h"
#include "compiler/kernels/kernel.h"
#include "compiler/kernels/schedule_names.h"
#include "compiler/kernels/symbol_lines.h"

namespace oclc {
namespace {

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
    case ScalarNode::Kind::bits:
      return fmt::format("bits({}, {} as {})", args[0], name_of(n.bits_from), name_of(n.bits_to));
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

std::string axis_names(const std::vector<Axis>& axes, const std::vector<int>& which) {
  std::vector<std::string> names;
  for (const int i : which) names.push_back(axes[static_cast<std::size_t>(i)].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// What is known of the symbols in the kernel's expressions.
std::string symbols_text(const Kernel& kernel) {
  SymbolLines lines("symbol", "  ");
  for (const auto* list : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *list) lines.leave_out(axis.name);
  }
  const auto all_of = [&](const std::vector<Expr>& list) {
    std::for_each(list.begin(), list.end(), [&](const Expr& e) { lines.add(e); });
  };
  for (const auto* list : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *list) lines.add(axis.extent);
  }
  for (const ScalarNode& node : kernel.nodes) {
    lines.add(node.index);
    all_of(node.guard);
  }
  for (const Store& store : kernel.stores) {
    lines.add(store.index);
    all_of(store.guard);
  }
  lines.add(kernel.flops);
  lines.add(kernel.bytes);
  return lines.text();
}

std::string contraction_text(const Kernel& kernel, const Contraction& c) {
  std::string out = fmt::format("  {}{}: %{} x %{}", name_of(c.asked), c.integers ? " of integers" : "", c.a, c.b);
  for (const auto& [part, axes] : {std::pair("batch", &c.batch), std::pair("m", &c.m), std::pair("n", &c.n)}) {
    if (!axes->empty()) out += fmt::format(", {} ({})", part, axis_names(kernel.axes, *axes));
  }
  if (!c.k.empty()) out += fmt::format(", k ({})", axis_names(kernel.reduction, c.k));
  out += "\n";
  if (c.shares > 1) out += fmt::format("  terms shared by {} work-groups\n", c.shares);
  if (!c.windows.empty()) out += fmt::format("  largest of windows of {}\n", fmt::join(c.windows, " x "));
  if (c.choice) out += fmt::format("  // by {}\n", c.choice->text());
  return out;
}

}  // namespace

std::string Kernel::text() const {
  std::string out = fmt::format("kernel {} {} {{\n", name_of(anchor), name);
  if (!sources.empty()) out += fmt::format(" {}\n", sources_text(sources));
  if (!formula.empty()) out += fmt::format("  formula {}\n", quoted(formula));
  if (is_copy) out += "  copy\n";
  out += symbols_text(*this);
  if (!(flops == Expr(0))) out += fmt::format("  flops {}\n", flops.text());
  if (!(bytes == Expr(0))) out += fmt::format("  bytes {}\n", bytes.text());
  for (const Axis& a : axes) out += fmt::format("  axis {} < {}\n", a.name, a.extent.text());
  for (const Axis& a : reduction) out += fmt::format("  reduce {} < {}\n", a.name, a.extent.text());
  for (const Operand& o : operands)
    out += fmt::format("  {} {}: {} buffer {}{}{}\n", o.written ? "write" : "read", o.name, name_of(o.dtype), o.buffer,
                       o.value.empty() ? "" : " " + quoted(o.value), o.replaced ? " replaced" : "");
  for (std::size_t i = 0; i < nodes.size(); ++i)
    out += fmt::format("  %{}: {} = {}\n", i, name_of(nodes[i].dtype), node_text(*this, nodes[i]));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& s = stages[i];
    out += fmt::format("  stage {}: {} = {} over {} of %{}{}\n", i, name_of(s.accumulator), name_of(s.combine),
                       axis_names(reduction, s.axes), s.body, s.arg_index < 0 ? "" : fmt::format(" at %{}", s.arg_index));
  }
  for (const Store& s : stores) {
    out += fmt::format("  {}[{}] = %{}{}{}\n", operands[static_cast<std::size_t>(s.operand)].name, s.index.text(), s.value,
                       s.row_axes.empty() ? "" : " over " + axis_names(reduction, s.row_axes),
                       s.guard.empty() ? "" : " if " + guard_text(s.guard));
  }
  if (code) out += fmt::format("  code over {}\n", text_of(code->space.extents));
  if (contraction) out += contraction_text(*this, *contraction);
  return out + "}\n";
}

}  // namespace oclc
