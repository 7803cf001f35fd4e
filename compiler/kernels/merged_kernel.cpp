#include "compiler/kernels/merged_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/kernels/kernel_part.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

void mark_kernels(std::span<const Step> steps, std::vector<bool>& used) {
  for (const Step& step : steps) {
    if (step.is_kernel()) used[static_cast<std::size_t>(step.kernel())] = true;
    mark_kernels(step.body(), used);
  }
}

void renumber(std::span<Step> steps, const std::vector<int>& number) {
  for (Step& step : steps) {
    if (auto* launched = step.as<KernelStep>()) launched->kernel = number[static_cast<std::size_t>(launched->kernel)];
    renumber(step.body(), number);
  }
}

// The expression with numbers of nodes that are larger by `more`; nothing if one is no summand times a constant, whose bounds
// say those of the number.
std::optional<Expr> renumbered(Expr e, NodeId more) {
  Substitution by;
  for (const std::string& symbol : e.symbols()) {
    const auto id = dynamic_index(symbol);
    if (!id) continue;
    const auto step = e.coefficient(symbol);
    if (!step || !step->is_constant() || step->value() <= 0) return std::nullopt;
    const Expr part = e - e.substitute({{symbol, Expr(0)}});
    const std::int64_t last = part.upper();
    by.emplace(symbol, Expr::symbol(dynamic_symbol(*id + more), part.lower() / step->value(),
                                    last == kUnbounded ? kUnbounded : last / step->value()));
  }
  return by.empty() ? e : e.substitute(by);
}

}  // namespace

bool has_linear_values(const Kernel& kernel) {
  const auto all = indices_of(kernel);
  return std::all_of(all.begin(), all.end(), [](const Expr& e) { return renumbered(e, 0).has_value(); });
}

bool has_dynamic_indices(const Kernel& kernel) {
  const auto all = indices_of(kernel);
  return std::any_of(all.begin(), all.end(), reads_values);
}

Appended append_kernel(Kernel& kernel, const Kernel& from, const Substitution& by) {
  OCLC_CHECK(has_linear_values(from), "numbers of nodes in what is appended can change");
  Appended out{static_cast<NodeId>(kernel.nodes.size()), static_cast<int>(kernel.stages.size()), {}};
  for (const Operand& operand : from.operands) {
    const auto same = std::find_if(kernel.operands.begin(), kernel.operands.end(), [&](const Operand& known) {
      return known.buffer == operand.buffer && !known.written && !operand.written;
    });
    out.operands.push_back(static_cast<int>(same - kernel.operands.begin()));
    if (same == kernel.operands.end()) kernel.operands.push_back(operand);
  }
  const auto moved = [&](Expr& e) { e = renumbered(e.substitute(by), out.first_node).value(); };
  for (ScalarNode node : from.nodes) {
    moved(node.index);
    for (Expr& e : node.guard) moved(e);
    for (NodeId& arg : node.args) arg += out.first_node;
    if (node.kind == ScalarNode::Kind::load) node.operand = out.operands[static_cast<std::size_t>(node.operand)];
    if (node.stage >= 0) node.stage += out.first_stage;
    kernel.nodes.push_back(std::move(node));
  }
  for (Stage stage : from.stages) {
    stage.body += out.first_node;
    if (stage.arg_index >= 0) stage.arg_index += out.first_node;
    kernel.stages.push_back(std::move(stage));
  }
  for (const Store& store : from.stores) {
    kernel.stores.push_back(store);
    kernel.stores.back().operand = out.operands[static_cast<std::size_t>(store.operand)];
    kernel.stores.back().value += out.first_node;
    moved(kernel.stores.back().index);
    for (Expr& e : kernel.stores.back().guard) moved(e);
  }
  add_sources(kernel.sources, from.sources);
  return out;
}

void number_operands(Kernel& kernel) {
  std::vector<int> number(kernel.operands.size(), -1);
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind == ScalarNode::Kind::load) number[static_cast<std::size_t>(node.operand)] = 0;
  }
  for (const Store& store : kernel.stores) number[static_cast<std::size_t>(store.operand)] = 0;
  std::vector<Operand> kept;
  int reads = 0, writes = 0;
  for (const bool written : {false, true}) {
    for (std::size_t i = 0; i < number.size(); ++i) {
      if (number[i] < 0 || kernel.operands[i].written != written) continue;
      number[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(kernel.operands[i]));
      kept.back().name = written ? fmt::format("y{}", writes++) : fmt::format("x{}", reads++);
    }
  }
  for (ScalarNode& node : kernel.nodes) {
    if (node.kind == ScalarNode::Kind::load) node.operand = number[static_cast<std::size_t>(node.operand)];
  }
  for (Store& store : kernel.stores) store.operand = number[static_cast<std::size_t>(store.operand)];
  kernel.operands = std::move(kept);
}

std::set<int> buffers_of(const Kernel& kernel, bool written) {
  std::set<int> all;
  for (const Operand& operand : kernel.operands) {
    if (operand.written == written) all.insert(operand.buffer);
  }
  return all;
}

bool can_pass(const Kernel& kernel, const Schedule& schedule, const Step* first, const Step* last) {
  const auto storage = [&](int buffer) { return storage_of(schedule.buffers, buffer); };
  const auto meet = [&](const std::set<int>& a, const std::set<int>& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](int x) { return std::any_of(b.begin(), b.end(), [&](int y) { return storage(x) == storage(y); }); });
  };
  const std::set<int> reads = buffers_of(kernel, false), writes = buffers_of(kernel, true);
  return std::all_of(first, last, [&](const Step& step) {
    if (!step.is_kernel()) return false;
    const Kernel& other = schedule.kernel(step);
    const std::set<int> written = buffers_of(other, true);
    return !meet(reads, written) && !meet(writes, written) && !meet(writes, buffers_of(other, false));
  });
}

void drop_unused_kernels(Schedule& schedule) {
  std::vector<bool> used(schedule.kernels.size(), false);
  for (const EntrySchedule& entry : schedule.entries) mark_kernels(entry.steps, used);
  std::vector<int> number(used.size(), -1);
  std::vector<Kernel> kept;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    number[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(schedule.kernels[i]));
  }
  schedule.kernels = std::move(kept);
  for (EntrySchedule& entry : schedule.entries) renumber(entry.steps, number);
}

}  // namespace oclc
