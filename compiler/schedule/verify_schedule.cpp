#include "compiler/schedule/verify_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/schedule/ragged_groups.h"

namespace oclc {
namespace {

template <class List>
bool within(int index, const List& list) {
  return index >= 0 && static_cast<std::size_t>(index) < list.size();
}

template <class List>
bool all_within(const std::vector<int>& indices, const List& list) {
  return std::all_of(indices.begin(), indices.end(), [&](int i) { return within(i, list); });
}

std::string problem_of_node(const Kernel& kernel, NodeId id) {
  const ScalarNode& node = kernel.nodes[static_cast<std::size_t>(id)];
  for (const NodeId arg : node.args) {
    if (arg < 0 || arg >= id) return fmt::format("node %{} does not stand behind its argument %{}", id, arg);
  }
  if (node.kind == ScalarNode::Kind::load && !within(node.operand, kernel.operands))
    return fmt::format("node %{} loads operand {} of {}", id, node.operand, kernel.operands.size());
  if (node.kind == ScalarNode::Kind::reduced && !within(node.stage, kernel.stages))
    return fmt::format("node %{} is the result of stage {} of {}", id, node.stage, kernel.stages.size());
  return "";
}

std::string problem_of_roles(const Kernel& kernel, const Contraction& c) {
  if (!within(c.a, kernel.nodes) || !within(c.b, kernel.nodes)) return "a factor of the contraction is no node";
  if (!all_within(c.batch, kernel.axes) || !all_within(c.m, kernel.axes) || !all_within(c.n, kernel.axes) ||
      !all_within(c.k, kernel.reduction))
    return "the contraction names an axis that the kernel does not have";
  if (c.shares < 1) return fmt::format("{} work-groups share the terms of a tile", c.shares);
  if (!c.windows.empty() && c.windows.size() != c.m.size())
    return fmt::format("{} lengths of windows for {} axes of rows", c.windows.size(), c.m.size());
  return "";
}

std::string problem_of(const Schedule& schedule, const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const Operand& o = kernel.operands[i];
    if (!within(o.buffer, schedule.buffers)) return fmt::format("operand {} is buffer {}, which there is not", i, o.buffer);
    const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(o.buffer)];
    if (o.written && (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::input))
      return fmt::format("operand {} writes buffer {}, which is given", i, o.buffer);
    // Kernels see the numbers of strings.
    if (o.dtype != (buffer.dtype == DType::string ? DType::i32 : buffer.dtype))
      return fmt::format("operand {} is {}, buffer {} holds {}", i, name_of(o.dtype), o.buffer, name_of(buffer.dtype));
  }
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (std::string problem = problem_of_node(kernel, static_cast<NodeId>(i)); !problem.empty()) return problem;
  }
  for (const Stage& stage : kernel.stages) {
    if (!within(stage.body, kernel.nodes) || (stage.arg_index >= 0 && !within(stage.arg_index, kernel.nodes)))
      return "a stage reduces what is no node";
    if (!all_within(stage.axes, kernel.reduction)) return "a stage reduces over an axis that the kernel does not have";
  }
  for (const Store& store : kernel.stores) {
    if (!within(store.operand, kernel.operands) || !kernel.operands[static_cast<std::size_t>(store.operand)].written)
      return fmt::format("a store goes to operand {}, which is not written", store.operand);
    if (!within(store.value, kernel.nodes)) return "a store's value is no node";
    if (!all_within(store.row_axes, kernel.reduction)) return "a store runs over an axis that the kernel does not have";
  }
  return kernel.contraction ? problem_of_roles(kernel, *kernel.contraction) : "";
}

// Buffers that something reads and writes.
struct Uses {
  std::vector<int> reads, writes;
};

class Steps {
 public:
  explicit Steps(const Schedule& schedule) : schedule_(schedule) {
    for (const Expr& symbol : schedule.symbols) symbols_.insert(*symbol.symbol_name());
    for (const Reading& reading : schedule.readings) {
      for (const Expr& dim : reading.dims) symbols_.insert(*dim.symbol_name());
    }
  }

  std::string problem_of(const EntrySchedule& entry) {
    written_.clear();
    return problem_among(entry.steps, fmt::format("entry {}, step ", entry.name));
  }

 private:
  std::string problem_among(std::span<const Step> list, const std::string& where) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string here = fmt::format("{}{}", where, i);
      if (list[i].is_beside() && (i == 0 || !list[i - 1].is_kernel())) return here + ": beside a step that is no kernel";
      if (std::string problem = std::visit([&](const auto& form) { return problem_of_form(form); }, list[i].form);
          !problem.empty())
        return here + ": " + problem;
      const auto* launched = list[i].as<KernelStep>();
      if (launched && launched->prefetch &&
          std::none_of(list.begin() + static_cast<std::ptrdiff_t>(i), list.end(),
                       [&](const Step& s) { return s.is_kernel() && s.kernel() == launched->prefetch->kernel; }))
        return here + ": prefetches weights of a kernel that does not follow";
      if (std::string problem = problem_of_use(list[i], here); !problem.empty()) return problem;
    }
    return "";
  }

  static std::string problem_of_index(int index, std::size_t count) {
    return index >= 0 && static_cast<std::size_t>(index) < count ? "" : fmt::format("is number {} of {}", index, count);
  }
  std::string problem_of_form(const KernelStep& step) const { return problem_of_index(step.kernel, schedule_.kernels.size()); }
  std::string problem_of_form(const GemmStep& step) const { return problem_of_index(step.gemm, schedule_.gemms.size()); }
  std::string problem_of_form(const ReadingStep& step) const {
    return problem_of_index(step.reading, schedule_.readings.size());
  }
  std::string problem_of_form(const HostStep& step) const { return problem_of_index(step.host, schedule_.hosts.size()); }

  static bool all_kernels(const std::vector<Step>& body) {
    return std::all_of(body.begin(), body.end(), [](const Step& s) { return s.is_kernel(); });
  }
  // Kernels without elements are left out: a loop of nothing else has no body.
  static std::string problem_of_form(const LoopStep& loop) {
    if (loop.counter.empty()) return "has no counter";
    return (loop.slots > 0) == loop.slot.empty() ? "has slots without a symbol, or a symbol without slots" : "";
  }
  static std::string problem_of_form(const LoopKernelStep& all) { return all.body.empty() ? "has no body" : ""; }
  static std::string problem_of_form(const ParallelLoopsStep& loops) {
    if (loops.body.empty()) return "has no body";
    return std::all_of(loops.body.begin(), loops.body.end(), [](const Step& s) { return s.is<LoopStep>(); })
               ? ""
               : "holds steps that are no loops";
  }
  static std::string problem_of_form(const WorkGroupStep& groups) {
    if (groups.body.empty()) return "has no body";
    if (!all_kernels(groups.body)) return "holds steps that are no kernels";
    return groups.counter.empty() ? "has no counter" : "";
  }
  static std::string problem_of_form(const AttentionStep& attention) {
    if (!all_kernels(attention.body)) return "holds steps that are no kernels";
    return attention.body.size() == 3 ? "" : fmt::format("is attention of {} kernels", attention.body.size());
  }
  // Indices that are checked first.
  std::string problem_of_form(const RaggedStep& group) const {
    for (const Step& step : group.body) {
      if (step.is_kernel() && !within(step.kernel(), schedule_.kernels))
        return problem_of_index(step.kernel(), schedule_.kernels.size());
    }
    return problem_of_group(schedule_, group);
  }
  static std::string problem_of_form(const MegakernelStep& launch) {
    if (launch.body.empty()) return "has no body";
    return std::all_of(
               launch.body.begin(), launch.body.end(),
               [](const Step& s) { return s.is_kernel() || s.is_loop() || s.is<AttentionStep>() || s.is<RaggedStep>(); })
               ? ""
               : "holds steps that no megakernel does";
  }

  std::string problem_of_use(const Step& step, const std::string& here) {
    if (step.body().empty()) {
      const Uses uses = uses_of(step);
      for (const int buffer : uses.reads) {
        if (!within(buffer, schedule_.buffers)) return fmt::format("{}: reads buffer {}, which there is not", here, buffer);
        const Buffer& read = schedule_.buffers[static_cast<std::size_t>(buffer)];
        if (read.kind == BufferKind::arena && read.elements != Expr(0) && written_.count(buffer) == 0)
          return fmt::format("{}: reads buffer {}, which no step before it writes", here, buffer);
      }
      written_.insert(uses.writes.begin(), uses.writes.end());
      return step.is_kernel() ? problem_of_symbols(schedule_.kernel(step), here) : "";
    }
    std::vector<std::string> inside;
    const auto* loop = step.as<LoopStep>();
    for (const std::string& symbol : {step.counter(), loop ? loop->slot : std::string()}) {
      if (!symbol.empty() && symbols_.insert(symbol).second) inside.push_back(symbol);
    }
    // What a trip writes may be read in the next.
    if (step.is_loop() || step.is<LoopKernelStep>()) add_writes(step.body());
    std::string problem = problem_among(step.body(), here + ".");
    for (const std::string& symbol : inside) symbols_.erase(symbol);
    return problem;
  }

  std::string problem_of_symbols(const Kernel& kernel, const std::string& here) const {
    for (const std::string& symbol : kernel.model_symbols()) {
      if (symbols_.count(symbol) == 0)
        return fmt::format("{}: kernel {} uses the symbol {}, which nothing around it defines", here, kernel.name, symbol);
    }
    return "";
  }

  void add_writes(std::span<const Step> list) {
    for (const Step& step : list) {
      add_writes(step.body());
      const Uses uses = uses_of(step);
      written_.insert(uses.writes.begin(), uses.writes.end());
    }
  }

  // Of what has no body.
  Uses uses_of(const Step& step) const {
    Uses uses;
    if (step.is_kernel()) {
      const Kernel& kernel = schedule_.kernel(step);
      for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
        const Operand& o = kernel.operands[i];
        const bool loads = std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](const ScalarNode& n) {
          return n.kind == ScalarNode::Kind::load && n.operand == static_cast<int>(i);
        });
        if (loads) uses.reads.push_back(o.buffer);
        if (o.written) uses.writes.push_back(o.buffer);
      }
    }
    if (const auto* product = step.as<GemmStep>()) {
      const Gemm& gemm = schedule_.gemms[static_cast<std::size_t>(product->gemm)];
      uses = {{gemm.a, gemm.b}, {gemm.c}};
    }
    if (const auto* sizes = step.as<ReadingStep>())
      uses.reads.push_back(schedule_.readings[static_cast<std::size_t>(sizes->reading)].buffer);
    if (const auto* host = step.as<HostStep>()) {
      const HostCall& call = schedule_.hosts[static_cast<std::size_t>(host->host)];
      for (const HostOperand& o : call.inputs) uses.reads.push_back(o.buffer);
      for (const HostOperand& o : call.outputs) uses.writes.push_back(o.buffer);
    }
    return uses;
  }

  const Schedule& schedule_;
  std::set<std::string> symbols_;
  std::set<int> written_;
};

}  // namespace

std::string verify(const Schedule& schedule) {
  for (const Kernel& kernel : schedule.kernels) {
    if (const std::string problem = problem_of(schedule, kernel); !problem.empty())
      return fmt::format("kernel {}: {}", kernel.name, problem);
  }
  Steps steps(schedule);
  for (const EntrySchedule& entry : schedule.entries) {
    if (std::string problem = steps.problem_of(entry); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace oclc
