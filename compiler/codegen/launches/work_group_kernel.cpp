#include "compiler/codegen/launches/work_group_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/codegen/loops/group_reduction.h"
#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/schedule/fuse_in_work_group.h"

namespace oclc {
namespace {

std::string c_index(const Expr& e) {
  return e.c_text([](std::string_view s) { return fmt::format("dim_{}", s); });
}

class ChainCode {
 public:
  ChainCode(const std::string& name, const Step& step, const Schedule& schedule, const Target& target)
      : name_(name), step_(*step.as<WorkGroupStep>()), schedule_(schedule), target_(target), items_(chain_items(target)) {}

  SeveralKernels run() {
    for (const Step& step : step_.body) add(schedule_.kernel(step));
    symbols_.erase(step_.counter);
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {step_.trip};
    g.local = {static_cast<std::uint32_t>(items_)};
    g.schedule = fmt::format("{} kernels one after another, a group for each of {}", step_.body.size(), step_.trip.text());
    g.head = fmt::format("// {}: {}\n{}\n", name_, g.schedule, heads_);
    g.source = functions_ + signature();
    if (floats_ > 0) g.source += fmt::format("  __local float4 space[{}];\n", (floats_ + 3) / 4);
    if (uses_counter_) g.source += fmt::format("  const long dim_{} = get_group_id(0);\n", step_.counter);
    g.source += calls_ + "}\n";
    return std::move(out_);
  }

 private:
  void add(const Kernel& kernel) {
    const std::string name = fmt::format("{}_part{}", name_, count_++);
    std::string arguments;
    for (const Operand& operand : kernel.operands) arguments += fmt::format("b{}, ", out_.argument(operand));
    for (const std::string& s : kernel.model_symbols()) {
      symbols_.insert(s);
      uses_counter_ = uses_counter_ || s == step_.counter;
      arguments += fmt::format("dim_{}, ", s);
    }
    if (!calls_.empty()) calls_ += "  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n";
    if (const auto tiles = generate_group_tiles(kernel, target_, items_, name)) {
      functions_ += tiles->function;
      floats_ = std::max(floats_, tiles->floats);
      const std::string call = fmt::format("{}_tile({}", name, arguments),
                        space = fmt::format("(__local {}*)space", tiles->parts);
      calls_ += tiles->tiles == Expr(1) ? fmt::format("  {}0, {});\n", call, space)
                                        : fmt::format("  for (long tile = 0; tile < {}; ++tile) {}tile, {});\n",
                                                      c_index(tiles->tiles), call, space);
    } else {
      arguments.resize(arguments.size() - 2);
      functions_ +=
          fmt::format("void {}({}) {{\n{}}}\n\n", name, parameter_list(kernel, false), whole_loops(kernel, target_, items_));
      calls_ += fmt::format("  {}({});\n", name, arguments);
    }
    heads_ += fmt::format("// {}: {}\n", kernel.name, kernel.formula);
    add_sources(out_.sources, kernel.sources);
    out_.flops += kernel.flops;
    out_.bytes += kernel.bytes;
  }

  std::string signature() {
    std::vector<std::string> parameters;
    std::string moves;
    for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
      parameters.push_back(fmt::format("{}, const long b{}_at", out_.pointer(i, schedule_), i));
      moves += fmt::format("  b{0} += b{0}_at;\n", i);
    }
    for (const std::string& s : symbols_) parameters.push_back(fmt::format("const long dim_{}", s));
    out_.add_arguments(symbols_);
    return fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n{}", items_, name_,
                       fmt::join(parameters, ", "), moves);
  }

  const std::string name_;
  const WorkGroupStep& step_;
  const Schedule& schedule_;
  const Target& target_;
  const int items_;
  SeveralKernels out_;
  std::set<std::string> symbols_;
  bool uses_counter_ = false;
  std::int64_t floats_ = 0;
  int count_ = 0;
  std::string functions_, calls_, heads_;
};

}  // namespace

SeveralKernels generate_work_group(const std::string& name, const Step& step, const Schedule& schedule, const Target& target) {
  return ChainCode(name, step, schedule, target).run();
}

}  // namespace oclc
