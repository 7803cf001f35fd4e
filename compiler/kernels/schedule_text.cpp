// The text form of a schedule, read back by parse_schedule.h.
#include <fmt/format.h>

#include <functional>
#include <map>

#include "compiler/ir/text.h"
#include "compiler/kernels/kernel.h"
#include "compiler/kernels/schedule_names.h"
#include "compiler/kernels/symbol_lines.h"

namespace oclc {
namespace {

// Of constants with more elements only the type is printed.
constexpr std::int64_t kMostElements = 16;

std::string operand_text(const HostOperand& o) { return fmt::format("{}[{}]{}", o.buffer, o.offset.text(), text_of(o.shape)); }

// Steps as lines, each in the indentation of its depth.
class StepsText {
 public:
  StepsText(const Schedule& schedule, std::string& out) : schedule_(schedule), out_(out) {
    for (const Kernel& kernel : schedule.kernels) ++named_[kernel.name];
  }

  void steps(std::span<const Step> list, std::size_t depth) {
    for (const Step& step : list) {
      const std::string indent(2 * depth, ' ');
      out_ += indent + std::visit([&](const auto& form) { return head(form); }, step.form);
      if (step.is_single()) {
        out_ += "\n";
        continue;
      }
      out_ += " {\n";
      steps(step.body(), depth + 1);
      out_ += indent + "}\n";
    }
  }

 private:
  // With its number where others have the name.
  std::string name(int kernel) const {
    const std::string& name = schedule_.kernels.at(static_cast<std::size_t>(kernel)).name;
    return named_.at(name) == 1 ? name : fmt::format("{} #{}", name, kernel);
  }

  std::string head(const KernelStep& step) const {
    const Kernel& kernel = schedule_.kernels.at(static_cast<std::size_t>(step.kernel));
    std::string text = (step.beside ? "beside " : "") + name(step.kernel);
    if (step.prefetch)
      text += fmt::format(" prefetches {} from byte {}", name(step.prefetch->kernel), step.prefetch->from_byte);
    text += kernel.is_copy ? "  // copy" : "";
    return text + (kernel.formula.empty() ? "" : "  // " + kernel.formula);
  }
  std::string head(const GemmStep& step) const {
    return fmt::format("library {}", schedule_.gemms.at(static_cast<std::size_t>(step.gemm)).name);
  }
  std::string head(const ReadingStep& step) const {
    const Reading& r = schedule_.readings.at(static_cast<std::size_t>(step.reading));
    return fmt::format("read {} <= {} from {}[{}]{}", text_of(r.dims), text_of(r.upper), r.buffer, r.offset.text(),
                       sources_text(r.sources));
  }
  std::string head(const HostStep& step) const {
    const HostCall& call = schedule_.hosts.at(static_cast<std::size_t>(step.host));
    std::vector<std::string> operands, texts;
    for (const HostOperand& o : call.inputs) operands.push_back(operand_text(o));
    for (const HostOperand& o : call.outputs) operands.push_back("write " + operand_text(o));
    std::string text = fmt::format("host {}({})", call.op, fmt::join(operands, ", "));
    if (!call.integers.empty()) text += fmt::format(" integers [{}]", fmt::join(call.integers, ", "));
    for (const std::string& t : call.texts) texts.push_back(quoted(t));
    if (!texts.empty()) text += fmt::format(" texts [{}]", fmt::join(texts, ", "));
    return text + sources_text(call.sources);
  }
  std::string head(const LoopStep& loop) const {
    return fmt::format("loop {} < {}{}{}", loop.counter, loop.trip.text(),
                       loop.condition.empty() ? "" : " while " + loop.condition,
                       loop.slots > 0 ? fmt::format(" in {} slots {}", loop.slots, loop.slot) : "");
  }
  static std::string head(const LoopKernelStep& /*all*/) { return "loop_kernel"; }
  static std::string head(const ParallelLoopsStep& loops) { return fmt::format("parallel_loops < {}", loops.trip.text()); }
  static std::string head(const WorkGroupStep& groups) {
    return fmt::format("work_group {} < {}", groups.counter, groups.trip.text());
  }
  static std::string head(const AttentionStep& /*attention*/) { return "attention"; }
  static std::string head(const RaggedStep& /*group*/) { return "ragged"; }
  static std::string head(const MegakernelStep& /*launch*/) { return "megakernel"; }

  const Schedule& schedule_;
  std::string& out_;
  std::map<std::string, int> named_;  // how many kernels have a name
};

// What is known of the symbols outside of kernels that are not the model's.
std::string local_symbols(const Schedule& schedule) {
  SymbolLines lines("local", "");
  for (const Expr& symbol : schedule.symbols) lines.leave_out(*symbol.symbol_name());
  const auto add = [&](std::span<const Expr> list) {
    for (const Expr& e : list) lines.add(e);
  };
  for (const Buffer& b : schedule.buffers) lines.add(b.elements);
  for (const Gemm& g : schedule.gemms) {
    const Expr all[] = {g.offset_a, g.offset_b, g.offset_c, g.m,        g.n,        g.k,     g.lda,  g.ldb,
                        g.ldc,      g.batch,    g.stride_a, g.stride_b, g.stride_c, g.flops, g.bytes};
    add(all);
  }
  for (const Reading& r : schedule.readings) {
    add(r.upper);
    add(r.dims);
    lines.add(r.offset);
  }
  for (const HostCall& call : schedule.hosts) {
    for (const auto* list : {&call.inputs, &call.outputs}) {
      for (const HostOperand& o : *list) {
        lines.add(o.offset);
        add(o.shape);
      }
    }
  }
  for (const EntrySchedule& entry : schedule.entries) {
    for (const auto* list : {&entry.inputs, &entry.outputs}) {
      for (const auto& [name, type] : *list) add(type.shape);
    }
    const std::function<void(std::span<const Step>)> trips = [&](std::span<const Step> steps) {
      for (const Step& step : steps) {
        lines.add(step.trip());
        trips(step.body());
      }
    };
    trips(entry.steps);
  }
  return lines.text();
}

std::string buffer_text(const Buffer& b) {
  std::string text = fmt::format("{} {}: {}[{}]", name_of(b.kind), quoted(b.name), name_of(b.dtype), b.elements.text());
  if (b.replaces >= 0) text += fmt::format(" replaces {}", b.replaces);
  if (b.kind != BufferKind::constant || !b.constant.data()) return text;
  return text + " = " + (b.constant.elements() > kMostElements ? b.constant.type().text() : print_tensor(b.constant));
}

std::string gemm_text(const Gemm& g) {
  const auto operand = [](std::string_view name, int buffer, const Expr& offset, const Expr& ld, const Expr& stride,
                          bool trans) {
    return fmt::format("  {} {}[{}] ld {} stride {}{}\n", name, buffer, offset.text(), ld.text(), stride.text(),
                       trans ? " transposed" : "");
  };
  std::string out = fmt::format("gemm {}{} {{\n", g.name, sources_text(g.sources));
  out += operand("a", g.a, g.offset_a, g.lda, g.stride_a, g.trans_a);
  out += operand("b", g.b, g.offset_b, g.ldb, g.stride_b, g.trans_b);
  out += operand("c", g.c, g.offset_c, g.ldc, g.stride_c, false);
  return out + fmt::format("  m {}\n  n {}\n  k {}\n  batch {}\n  flops {}\n  bytes {}\n}}\n", g.m.text(), g.n.text(),
                           g.k.text(), g.batch.text(), g.flops.text(), g.bytes.text());
}

}  // namespace

std::string Schedule::text() const {
  std::string out = model.empty() ? "" : fmt::format("schedule {}\n", quoted(model));
  SymbolLines lines("symbol", "");
  for (const Expr& symbol : symbols) lines.add(symbol);
  out += lines.text() + local_symbols(*this);
  for (const ScheduledState& s : states)
    out += fmt::format("state {}: {} buffer {}\n", quoted(s.variable.name), s.variable.type.text(), s.buffer);
  for (std::size_t i = 0; i < buffers.size(); ++i) out += fmt::format("buffer {} {}\n", i, buffer_text(buffers[i]));
  for (const Kernel& kernel : kernels) out += kernel.text();
  for (const Gemm& gemm : gemms) out += gemm_text(gemm);
  for (const EntrySchedule& entry : entries) {
    out += fmt::format("entry {} {{\n", name_text(entry.name));
    for (std::size_t i = 0; i < entry.inputs.size(); ++i)
      out += fmt::format("  input {}: {} buffer {}\n", quoted(entry.inputs[i].first), entry.inputs[i].second.text(),
                         entry.input_buffers[i]);
    for (std::size_t i = 0; i < entry.outputs.size(); ++i)
      out += fmt::format("  output {}: {} buffer {}\n", quoted(entry.outputs[i].first), entry.outputs[i].second.text(),
                         entry.output_buffers[i]);
    StepsText(*this, out).steps(entry.steps, 1);
    out += "}\n";
  }
  return out;
}

}  // namespace oclc
