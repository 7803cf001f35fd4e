#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/codegen/launches/horizontal_fusion.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/memory_access.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kNeighbour = "NEIGHBOUR_NAME";

void check_independent(std::span<const Step> steps, const Schedule& schedule) {
  std::vector<std::vector<MemoryAccess>> accesses;
  for (const Step& step : steps) {
    accesses.push_back(accesses_of(schedule.kernel(step), schedule.buffers));
    for (std::size_t i = 0; i + 1 < accesses.size(); ++i)
      OCLC_CHECK(!do_conflict(accesses[i], accesses.back()), "kernels of one launch do not need each other");
  }
}

}  // namespace

HorizontallyFused generate_horizontal_fusion(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                             const Target& target) {
  check_independent(steps, schedule);
  HorizontallyFused out;
  std::map<std::string, std::string> functions;  // names by text
  std::string text, calls, heads;
  std::int64_t groups = 0, local_floats = 0;
  for (const Step& step : steps) {
    const Kernel& kernel = schedule.kernel(step);
    Kernel named = kernel;
    named.name = kNeighbour;
    const GeneratedKernel g = generate(named, schedule.buffers, target);
    OCLC_CHECK(!g.tile_source.empty() && g.packed.empty() && g.groups.size() == 1 && g.groups[0].is_constant() &&
                   (out.kernel.local.empty() || g.local == out.kernel.local),
               "kernels of one launch have groups of one size");
    out.kernel.local = g.local;
    const auto known = functions.emplace(g.tile_source, fmt::format("{}_{}", name, functions.size()));
    if (known.second) text += with_name(g.tile_source, kNeighbour, known.first->second);
    std::string call = known.first->second + "_tile(";
    for (const KernelArgument& argument : g.arguments) {
      OCLC_CHECK(argument.kind == KernelArgument::Kind::operand, "kernels of one launch have known sizes");
      const Operand& operand = kernel.operands[static_cast<std::size_t>(argument.operand)];
      auto at = std::find_if(out.buffers.begin(), out.buffers.end(), [&](const auto& b) { return b.buffer == operand.buffer; });
      if (at == out.buffers.end()) at = out.buffers.insert(at, {operand.buffer, false});
      at->written = at->written || operand.written;
      call += fmt::format("b{}, ", at - out.buffers.begin());
    }
    calls += fmt::format("  {}if (group < {}) {{\n    {}{}", calls.empty() ? "" : "else ", groups + g.groups[0].value(), call,
                         groups == 0 ? "group" : fmt::format("group - {}", groups));
    groups += g.groups[0].value();
    if (!g.local_floats.empty()) {
      local_floats = std::max<std::int64_t>(local_floats, std::stoll(g.local_floats));
      calls += ", space";
    }
    calls += ");\n  }\n";
    heads += with_name(g.head, kNeighbour, kernel.name);
  }
  GeneratedKernel& g = out.kernel;
  g.name = name;
  g.groups = {Expr(groups)};
  g.schedule = fmt::format("{} kernels side by side", steps.size());
  g.head = fmt::format("// {}: {}\n{}\n", name, g.schedule, heads);
  std::string parameters, moves;
  for (std::size_t i = 0; i < out.buffers.size(); ++i) {
    const HorizontallyFused::Argument& b = out.buffers[i];
    parameters += fmt::format("{0}__global {1}{2}* b{3}, const long b{3}_at", i == 0 ? "" : ", ", b.written ? "" : "const ",
                              c_type(schedule.buffers[static_cast<std::size_t>(b.buffer)].dtype), i);
    moves += fmt::format("  b{0} += b{0}_at;\n", i);
    g.arguments.push_back({.operand = static_cast<int>(i)});
  }
  g.source = text;
  g.source +=
      fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n", g.local[0], name, parameters);
  if (local_floats > 0) g.source += fmt::format("  __local float space[{}] __attribute__((aligned(16)));\n", local_floats);
  g.source += moves + "  const int group = get_group_id(0);\n" + calls + "}\n";
  return out;
}

}  // namespace oclc
