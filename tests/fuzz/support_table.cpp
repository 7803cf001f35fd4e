#include "tests/fuzz/support_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/model/tensors.h"
#include "frontends/onnx/table.h"
#include "tests/fuzz/generate.h"
#include "tests/support/run_plan.h"

namespace oclc::fuzz {
namespace {

constexpr int kTrials = 3 * kUsualTypes + kNarrowTypes;
constexpr std::size_t kOpsShown = 4;

struct Facts {
  std::set<DType> types;
  std::set<std::string_view> core;  // operators of the graph
  std::size_t most = 0;             // of them in one use
  bool kernels = false, reads = false;
  bool floats = false, gradient = true;
};

// Where elements come from, and what the compiler does by itself.
bool is_leaf(const Node& node) { return node.inputs.empty(); }

bool is_copied(const Node& node) { return node.op->kind == OpKind::movement; }

void add(Facts& facts, const Graph& graph) {
  std::size_t computing = 0;
  std::set<const Value*> varying;  // floats that depend on the inputs
  for (const auto& input : graph.inputs()) {
    if (is_float(input->type.dtype)) varying.insert(input.get());
  }
  for (const Node* node : graph.nodes()) {
    if (is_leaf(*node)) continue;
    if (!is_copied(*node) || graph.nodes().size() == 1) facts.core.insert(node->op->name);
    computing += !is_copied(*node);
    const bool depends =
        std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Value* v) { return varying.count(v); });
    if (!depends || !is_float(node->output()->type.dtype)) continue;
    facts.gradient = facts.gradient && node->op->gradient != nullptr;
    for (const auto& output : node->outputs) varying.insert(output.get());
  }
  facts.most = std::max(facts.most, computing);
  const bool result = std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                  [&](const auto& output) { return varying.count(output.second) != 0; });
  facts.floats = facts.floats || result;
}

// The type of the first operand, or of the result if there is none or it only chooses.
DType subject_of(const Case& c) {
  const DType result = c.results.at(0).wanted.dtype();
  const auto& graph = c.model.graph();
  if (graph.node(0).input_size() == 0) return result;
  const std::string& first = graph.node(0).input(0);
  std::optional<DType> found;
  for (const auto& [name, value] : c.inputs) {
    if (name == first) found = value.dtype();
  }
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() == first) found = onnx::element_type(tensor.data_type(), first);
  }
  return !found || *found == DType::boolean ? (graph.node(0).input_size() > 1 ? result : found.value_or(result)) : *found;
}

// Usual types several times, the others once.
int turn(int trial) { return trial < 3 * kUsualTypes ? trial % kUsualTypes : trial - 2 * kUsualTypes; }

Facts facts_of(const Spec& spec) {
  Facts facts;
  for (int i = 0; i < kTrials; ++i) {
    const Single single = random_single(static_cast<std::uint64_t>(i) + 1, spec.until, spec, "", turn(i));
    if (!single.failure.empty() || !single.refusal.empty()) continue;
    try {
      std::shared_ptr<Module> module = import_case(single.model);
      add(facts, *module->entries.at(0));
      const Compiled compiled = compile(module, test::default_options());
      facts.kernels = facts.kernels || !compiled.schedule.kernels.empty();
      facts.reads = facts.reads || !compiled.schedule.readings.empty();
    } catch (const CompileError&) {
      continue;
    }
    facts.types.insert(subject_of(single.model));
  }
  return facts;
}

std::string listed(const std::set<DType>& types) {
  std::string text;
  for (const DType t : types) text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(t));
  return text;
}

std::string fate(const Facts& facts) {
  std::string ops;
  std::size_t shown = 0;
  for (const std::string_view op : facts.core) {
    if (shown++ < kOpsShown) ops += fmt::format("{}{}", ops.empty() ? "" : ", ", op);
  }
  if (shown > kOpsShown) ops += ", ..";
  if (!facts.kernels) return "folded";
  const std::string_view how = facts.reads ? "kernels, sizes read by the host" : facts.most > 1 ? "decomposition" : "kernel";
  return ops.empty() ? std::string(how) : fmt::format("{} ({})", how, ops);
}

std::string_view domain_of(std::string_view op) {
  const std::size_t dot = op.rfind('.');
  return dot == op.npos ? "ai.onnx" : op.substr(0, dot);
}

struct ByHand {
  std::string_view op, since, types, runs, gradient;
};

// Operators with sub-graphs, and Gradient: they stand beside the table of readers.
constexpr ByHand kControl[] = {
    {"If", "1", "any", "control: the branch, or both and a choice", "-"},
    {"Loop", "1", "any", "control: a loop of kernels, or unrolled", "-"},
    {"Scan", "8", "any", "control: a loop of kernels", "-"},
    {"ai.onnx.preview.FlexAttention", "1", "floats", "decomposition, with the model's own graphs", "-"},
    {"SequenceMap", "17", "any", "control: unrolled", "-"},
    {"ai.onnx.preview.training.Gradient", "1", "floats", "the gradients' kernels", "-"}};

}  // namespace

std::string support_table() {
  std::map<std::string_view, Facts> found;
  for (const Spec& spec : all_specs()) found.emplace(spec.op, facts_of(spec));
  std::map<std::string_view, std::string_view> reasons;
  for (const Unspecified& u : unspecified()) reasons.emplace(u.op, u.reason);
  std::map<std::string, std::string> lines;
  const auto row = [&](std::string_view op, const std::string& since, const std::string& types, const std::string& runs,
                       std::string_view gradient) {
    const std::size_t dot = op.rfind('.');
    const std::string_view name = dot == op.npos ? op : op.substr(dot + 1);
    lines[std::string(domain_of(op)) + std::string(name)] =
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, domain_of(op), since, types, runs, gradient);
  };
  for (const std::string_view op : onnx_operators()) {
    std::string since;
    for (const onnx::OpRow* r : onnx::all_rows()) {
      if (r->op == op && since.empty()) since = std::to_string(r->since);
    }
    const auto at = found.find(op);
    if (at == found.end()) {
      const auto reason = reasons.find(op);
      row(op, since, "-", reason == reasons.end() ? "-" : std::string(reason->second), "-");
    } else {
      const Facts& f = at->second;
      row(op, since, listed(f.types), fate(f), !f.floats ? "-" : f.gradient ? "yes" : "no");
    }
  }
  for (const ByHand& c : kControl) row(c.op, std::string(c.since), std::string(c.types), std::string(c.runs), c.gradient);
  std::string text =
      "# Operators of ONNX\n\n"
      "Made by `fuzz_ops --write-table docs/operators.md`, which reads and compiles random uses of each operator (tests/fuzz); "
      "a "
      "test fails if this file is not what it writes.\n\n"
      "- **since**: the oldest opset of which the operator is read; all later ones up to " +
      std::to_string(kNewestOpset) +
      " are.\n"
      "- **types**: of the first operand, or of the result if there is none, with which a use was read and compiled.\n"
      "- **runs as**: the core operators that compute; movement fuses into its neighbours. `folded`: the compiler knows the "
      "result.\n"
      "- **gradient**: training goes through it; `-` where results are no floats that depend on operands.\n\n"
      "| operator | domain | since | types | runs as | gradient |\n|---|---|---|---|---|---|\n";
  for (const auto& [key, line] : lines) text += line;
  return text;
}

}  // namespace oclc::fuzz
