#include <fmt/format.h>

#include "compiler/ir/text.h"
#include "compiler/kernels/kernel.h"

namespace oclc {
namespace {

constexpr std::string_view kKindNames[] = {"arena", "constant", "input", "output", "state"};

void append_steps(const Schedule& schedule, const std::vector<Step>& steps, std::size_t depth, std::string& out) {
  const std::string indent(2 * depth, ' ');
  for (const Step& step : steps) {
    if (step.kernel >= 0) {
      const Kernel& kernel = schedule.kernels.at(static_cast<std::size_t>(step.kernel));
      out += fmt::format("{}{}{}{}", indent, step.beside ? "beside " : "", kernel.name,
                         step.prefetched < 0 ? ""
                                             : fmt::format(" prefetches {} from byte {}",
                                                           schedule.kernels.at(static_cast<std::size_t>(step.prefetched)).name,
                                                           step.prefetched_at));
      out += kernel.is_copy ? "  // copy" : "";
      out += fmt::format("{}\n", kernel.formula.empty() ? "" : "  // " + kernel.formula);
      continue;
    }
    if (step.gemm >= 0) {
      out += fmt::format("{}{}  // library\n", indent, schedule.gemms.at(static_cast<std::size_t>(step.gemm)).name);
      continue;
    }
    if (step.reading >= 0) {
      const Reading& r = schedule.readings.at(static_cast<std::size_t>(step.reading));
      out += fmt::format("{}read {} <= {} from {}[{}]\n", indent, text_of(r.dims), text_of(r.upper), r.buffer, r.offset.text());
      continue;
    }
    if (step.host >= 0) {
      const HostCall& call = schedule.hosts.at(static_cast<std::size_t>(step.host));
      std::vector<std::string> operands;
      for (const auto* list : {&call.inputs, &call.outputs})
        for (const HostOperand& o : *list)
          operands.push_back(
              fmt::format("{}{}[{}]{}", list == &call.outputs ? "write " : "", o.buffer, o.offset.text(), text_of(o.shape)));
      out += fmt::format("{}host {}({})\n", indent, call.op, fmt::join(operands, ", "));
      continue;
    }
    out += step.megakernel    ? indent + "megakernel {\n"
           : step.loop_kernel ? indent + "loop_kernel {\n"
           : step.attention   ? indent + "attention {\n"
           : step.apart       ? indent + "apart {\n"
           : step.chain       ? fmt::format("{}chain {} < {} {{\n", indent, step.counter, step.trip.text())
                              : fmt::format("{}loop {} < {}{}{} {{\n", indent, step.counter, step.trip.text(),
                                      step.condition.empty() ? "" : " while " + step.condition,
                                      step.places > 0 ? fmt::format(" in {} places", step.places) : "");
    append_steps(schedule, step.body, depth + 1, out);
    out += indent + "}\n";
  }
}

}  // namespace

std::string Schedule::text() const {
  std::string out;
  for (const Expr& symbol : symbols) out += fmt::format("symbol {}\n", symbol.text());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    out += fmt::format("buffer {} {} {}: {}[{}]\n", i, kKindNames[static_cast<std::size_t>(b.kind)], quoted(b.name),
                       name_of(b.dtype), b.elements.text());
  }
  for (const Kernel& kernel : kernels) out += kernel.text();
  for (const EntrySchedule& entry : entries) {
    out += fmt::format("entry {} {{\n", entry.name);
    append_steps(*this, entry.steps, 1, out);
    out += "}\n";
  }
  return out;
}

}  // namespace oclc
