// A plan's text form.
#include <fmt/format.h>

#include "compiler/ir/text.h"
#include "tools/oclc/plan_lists.h"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

std::string PlanView::arg_text(const plan::Arg& arg) const {
  const std::string number = arg.value() ? expr(arg.value()).text() : "0";
  switch (arg.kind()) {
    case plan::ArgKind::buffer:
      return fmt::format("{}{}buffer {}{}", arg.writes() ? "write " : "", arg.shared() ? "shared " : "", arg.buffer(),
                         number == "0" ? "" : " + " + number);
    case plan::ArgKind::int32:
      return "int " + number;
    case plan::ArgKind::int64:
      return "long " + number;
    case plan::ArgKind::local:
      return "local " + number;
    case plan::ArgKind::rows:
      return fmt::format("rows of {} bytes, {} of {} numbers by places and sizes",
                         sizeof(std::int64_t) * size_of(arg.numbers()), size_of(arg.cells()), size_of(arg.numbers()));
  }
  return {};
}

template <class List>
std::string PlanView::list_text(const List* list) const {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < size_of(list); ++i) out.push_back(expr(list->Get(i)).text());
  return fmt::format("[{}]", fmt::join(out, ", "));
}

std::string PlanView::args_text(const Args* args) const {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < size_of(args); ++i) out.push_back(arg_text(*args->Get(i)));
  return fmt::format("({})", fmt::join(out, ", "));
}

// After its number.
std::string PlanView::launch_text(const plan::Launch& launch, const std::string& indent) const {
  const std::string title = launch.title() ? fmt::format(" \"{}\"", text_of(launch.title())) : "";
  std::string out =
      fmt::format("{} {}{}{} global={} local=[{}] flops={} bytes={}  // {}\n", text_of(launch.anchor()), text_of(launch.name()),
                  title, args_text(launch.args()), list_text(launch.global()), fmt::join(*launch.local(), ", "),
                  expr(launch.flops()).text(), expr(launch.bytes()).text(), joined(launch.nodes()));
  for (std::uint32_t i = 0; i < size_of(launch.parts()); ++i) {
    const plan::Part& part = *launch.parts()->Get(i);
    out +=
        fmt::format("{}  part {} {} {}{} flops={} bytes={}  // {}\n", indent, i, text_of(part.anchor()), text_of(part.name()),
                    args_text(part.args()), expr(part.flops()).text(), expr(part.bytes()).text(), joined(part.nodes()));
  }
  return out;
}

std::string PlanView::gemm_text(const plan::BlasGemm& gemm) const {
  const auto number = [&](const plan::Expr* e, const char* absent) { return e ? expr(e).text() : absent; };
  return fmt::format("{}({}, {}, {}) m={} n={} k={} batch={} flops={} bytes={}  // {}\n", text_of(gemm.name()),
                     arg_text(*gemm.a()), arg_text(*gemm.b()), arg_text(*gemm.c()), expr(gemm.m()).text(),
                     expr(gemm.n()).text(), expr(gemm.k()).text(), number(gemm.batch(), "1"), number(gemm.flops(), "0"),
                     number(gemm.bytes(), "0"), joined(gemm.nodes()));
}

std::string PlanView::host_text(const plan::Host& host) const {
  std::vector<std::string> operands;
  for (const auto* list : {host.inputs(), host.outputs()})
    for (std::uint32_t i = 0; i < size_of(list); ++i)
      operands.push_back(arg_text(*list->Get(i)->at()) + list_text(list->Get(i)->shape()));
  return fmt::format("{}({})  // {}\n", text_of(host.op()), fmt::join(operands, ", "), joined(host.nodes()));
}

// Where a constant lies. One without bytes of its own is a piece of a table, or not read.
std::string PlanView::constant_text(const plan::Buffer& buffer) const {
  if (expr(buffer.bytes()).text() != "0") return fmt::format(" offset={}", buffer.constant_offset());
  for (std::uint32_t i = 0; i < size_of(plan_.buffers()); ++i) {
    const plan::Buffer& table = *plan_.buffers()->Get(i);
    const Expr bytes = expr(table.bytes());
    if (table.kind() != plan::BufferKind::constant || buffer.constant_offset() < table.constant_offset() ||
        !bytes.is_constant())
      continue;
    const std::uint64_t at = buffer.constant_offset() - table.constant_offset();
    if (at < static_cast<std::uint64_t>(bytes.value()) && table.name()->str() == "megakernel.constants")
      return fmt::format(" in buffer {} + {}", i, at);
  }
  return " unused";
}

void PlanView::steps_text(const Steps& steps, std::size_t depth, int& number, std::string& out) const {
  const std::string indent(2 * depth, ' ');
  const auto name = [&](int symbol) { return symbols_.at(static_cast<std::size_t>(symbol)).text(); };
  for (const plan::Step* step : steps) {
    out += indent;
    if (const plan::Launch* launch = step->body_as_Launch()) {
      out += fmt::format("launch {} {}", number++, launch_text(*launch, indent));
    } else if (const plan::BlasGemm* gemm = step->body_as_BlasGemm()) {
      out += fmt::format("gemm {} {}", number++, gemm_text(*gemm));
    } else if (const plan::Host* host = step->body_as_Host()) {
      out += fmt::format("host {} {}", number++, host_text(*host));
    } else if (const plan::Read* read = step->body_as_Read()) {
      std::vector<std::string> dims;
      for (const int dim : *read->dims()) dims.push_back(name(dim));
      out += fmt::format("read {} from {}\n", fmt::join(dims, ", "), arg_text(*read->from()));
    } else if (const plan::Loop* loop = step->body_as_Loop()) {
      const std::string condition = loop->condition() < 0 ? "" : " while " + name(loop->condition());
      out += fmt::format("loop {} < {}{} {{\n", name(loop->counter()), expr(loop->trip()).text(), condition);
      steps_text(*loop->body(), depth + 1, number, out);
      out += indent + "}\n";
    }
  }
}

std::string PlanView::text() const {
  std::string out = fmt::format("plan {} target={} precision={} producer={}\n", oclc::quoted(text_of(plan_.model())),
                                text_of(plan_.target()), text_of(plan_.precision()), text_of(plan_.producer()));
  if (size_of(plan_.options())) out += fmt::format("options {}\n", joined(plan_.options()));
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const plan::Symbol& symbol = *plan_.symbols()->Get(i);
    const std::string upper = symbol.hi() == kUnbounded ? "" : std::to_string(symbol.hi());
    const std::string_view kind = symbol.upper() ? "read" : symbol.loop() ? "counter" : "symbol";
    out += fmt::format("{} {} {}..{}\n", kind, symbol.name()->str(), symbol.lo(),
                       symbol.upper() ? expr(symbol.upper()).text() : upper);
  }
  for (std::uint32_t i = 0; i < size_of(plan_.buffers()); ++i) {
    const plan::Buffer& buffer = *plan_.buffers()->Get(i);
    out += fmt::format("buffer {} {} {} {} bytes={}", i, plan::EnumNameBufferKind(buffer.kind()),
                       oclc::quoted(text_of(buffer.name())), oclc::name_of(static_cast<DType>(buffer.dtype())),
                       expr(buffer.bytes()).text());
    if (buffer.kind() == plan::BufferKind::constant) out += constant_text(buffer);
    if (buffer.kind() == plan::BufferKind::arena)
      out += fmt::format(" entry={} life={}..{}", buffer.entry(), buffer.first(), buffer.last());
    if (buffer.alias() >= 0) out += fmt::format(" alias={}", buffer.alias());
    out += '\n';
  }
  for (std::uint32_t i = 0; i < size_of(plan_.strings()); ++i)
    out += fmt::format("string {} {}\n", i, oclc::quoted(text_of(plan_.strings()->Get(i))));
  for (std::uint32_t i = 0; i < size_of(plan_.programs()); ++i) {
    const plan::Program& program = *plan_.programs()->Get(i);
    out += fmt::format("program {} {} source_bytes={}\n", i, text_of(program.name()), program.source()->size());
  }
  for (std::uint32_t i = 0; i < entries(); ++i) {
    const plan::Entry& entry = *plan_.entries()->Get(i);
    out += fmt::format("entry {} {{\n", entry.name()->str());
    for (const PlanBinding& b : inputs(i))
      out += fmt::format("  input {}: {}{}\n", oclc::quoted(b.name), b.type.text(), b.values);
    for (const PlanBinding& b : outputs(i)) out += fmt::format("  output {}: {}\n", oclc::quoted(b.name), b.type.text());
    int number = 0;
    if (entry.steps()) steps_text(*entry.steps(), 1, number, out);
    out += "}\n";
  }
  return out;
}

}  // namespace oclc::tool
