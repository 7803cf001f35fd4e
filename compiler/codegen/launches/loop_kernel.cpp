#include "compiler/codegen/launches/loop_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/codegen/loops/loop_nest.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/kernels/identifier.h"
#include "compiler/schedule/loop_kernel.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Sub-group of the devices we know: smaller groups leave lanes idle.
constexpr std::int64_t kSmallestGroup = 64;
// Local memory that stays free for what a driver keeps there.
constexpr std::int64_t kReservedLocalBytes = 1 << 10;

// Of a buffer, by the beginning of its name.
std::string identifier(std::string_view name) { return "b_" + identifier_part(name.substr(0, 40)); }

class LoopKernelCode {
 public:
  LoopKernelCode(const std::string& name, const Step& step, const Schedule& schedule, const Target& target)
      : name_(name), step_(step), schedule_(schedule), target_(target), cpu_(target.items_are_cores()) {}

  SeveralKernels run() {
    collect(step_.body(), Expr(1));
    if (!cpu_) {
      choose_group();
      place_in_local_memory();
    }
    emit(step_.body(), 1);
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {Expr(1)};
    g.local = {static_cast<std::uint32_t>(group_)};
    g.schedule = cpu_ ? "one work-item" : fmt::format("one work-group, {} bytes of local memory", local_bytes_);
    g.head = fmt::format("// {}: {} steps, loops among them, in one launch: {}\n// cost      {} flops, {} bytes\n\n", name_,
                         count_, g.schedule, out_.flops.text(), out_.bytes.text());
    g.source = functions_ + signature() + locals() + body_ + "}\n";
    return std::move(out_);
  }

 private:
  const Kernel& kernel(const Step& step) const { return schedule_.kernel(step); }
  const Buffer& buffer(int id) const { return schedule_.buffers[static_cast<std::size_t>(id)]; }

  // Buffers, symbols and cost of all steps; `times` is how often they run.
  void collect(std::span<const Step> list, const Expr& times) {
    for (const Step& step : list) {
      if (const auto* loop = step.as<LoopStep>()) {
        for (const std::string& s : loop->trip.symbols()) symbols_.insert(s);
        counters_.insert(loop->counter);
        collect(loop->body, times * loop->trip);
        continue;
      }
      const Kernel& k = kernel(step);
      for (const Operand& o : k.operands) {
        written_[o.buffer] = written_[o.buffer] || o.written;
        if (!names_.count(o.buffer)) names_[o.buffer] = unique(identifier(buffer(o.buffer).name));
      }
      for (const std::string& s : k.model_symbols()) symbols_.insert(s);
      add_sources(out_.sources, k.sources);
      Expr points(1);
      for (const Axis& a : k.axes) points *= a.extent;
      widest_ = std::max(widest_, points.value());
      // What depends on a counter counts as in the first trip.
      Substitution first_trip;
      for (const std::string& counter : counters_) first_trip.emplace(counter, Expr(0));
      out_.flops += k.flops.substitute(first_trip) * times;
      out_.bytes += k.bytes.substitute(first_trip) * times;
      ++count_;
    }
    for (const std::string& counter : counters_) symbols_.erase(counter);
  }

  std::string unique(const std::string& name) {
    std::string candidate = name;
    for (int n = 2; !taken_.insert(candidate).second; ++n) candidate = fmt::format("{}_{}", name, n);
    return candidate;
  }

  void choose_group() {
    group_ = std::min<std::int64_t>(kSmallestGroup, target_.work_group);
    while (group_ < widest_ && group_ * 2 <= target_.work_group) group_ *= 2;
  }

  void place_in_local_memory() {
    std::vector<int> own = own_buffers(schedule_, step_);
    const auto bytes = [&](int id) {
      return buffer(id).elements.value() * static_cast<std::int64_t>(size_bytes(buffer(id).dtype));
    };
    std::stable_sort(own.begin(), own.end(), [&](int a, int b) { return bytes(a) < bytes(b); });
    for (const int id : own) {
      const std::int64_t padded = (bytes(id) + 15) / 16 * 16;
      if (bytes(id) == 0 || local_bytes_ + padded > target_.local_bytes - kReservedLocalBytes) continue;
      local_bytes_ += padded;
      local_.insert(id);
    }
  }

  std::string pointer(int id, bool written) const {
    return fmt::format("{} {}{}*", local_.count(id) ? "__local" : "__global", written ? "" : "const ",
                       c_type(buffer(id).dtype));
  }

  std::string signature() {
    std::vector<std::string> parameters;
    std::string moves;
    for (const auto& [id, name] : names_) {
      if (local_.count(id)) continue;
      parameters.push_back(fmt::format("{} {}, const long {}_at", pointer(id, written_.at(id)), name, name));
      moves += fmt::format("  {0} += {0}_at;\n", name);
      out_.kernel.arguments.push_back({.operand = static_cast<int>(out_.buffers.size())});
      out_.buffers.push_back({id, written_.at(id)});
    }
    for (const std::string& s : symbols_) {
      parameters.push_back(fmt::format("const long dim_{}", s));
      out_.kernel.arguments.push_back({.kind = KernelArgument::Kind::dimension, .symbol = s});
    }
    return fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n{}", group_, name_,
                       fmt::join(parameters, ", "), moves);
  }

  std::string locals() const {
    std::string text;
    for (const int id : local_)
      text += fmt::format("  __local {} {}[{}] __attribute__((aligned(16)));\n", c_type(buffer(id).dtype), names_.at(id),
                          buffer(id).elements.value());
    return text;
  }

  void emit(std::span<const Step> list, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    for (const Step& step : list) {
      if (step.is_kernel()) {
        const Kernel& k = kernel(step);
        const std::string function = tile_function(k);
        std::vector<std::string> arguments;
        for (const Operand& o : k.operands) arguments.push_back(names_.at(o.buffer));
        for (const std::string& s : k.model_symbols()) arguments.push_back("dim_" + s);
        body_ += fmt::format("{}{}({});\n", indent, function, fmt::join(arguments, ", "));
        if (!cpu_) body_ += indent + "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n";
        continue;
      }
      const LoopStep& loop = *step.as<LoopStep>();
      const std::string trip = loop.trip.c_text([](std::string_view s) { return fmt::format("dim_{}", s); });
      body_ += fmt::format("{0}for (long dim_{1} = 0; dim_{1} < {2}; ++dim_{1}) {{\n", indent, loop.counter, trip);
      emit(loop.body, depth + 1);
      body_ += indent + "}\n";
    }
  }

  std::string tile_function(const Kernel& k) {
    const std::string function = unique(fmt::format("{}_{}", name_, k.name));
    std::vector<std::string> parameters;
    for (const Operand& o : k.operands) parameters.push_back(fmt::format("{} {}", pointer(o.buffer, o.written), o.name));
    for (const std::string& s : k.model_symbols()) parameters.push_back(fmt::format("const long dim_{}", s));
    functions_ += fmt::format("// {}\nvoid {}({}) {{\n{}}}\n\n", k.formula.empty() ? k.name : k.formula, function,
                              fmt::join(parameters, ", "), whole_loops(k, target_, static_cast<int>(group_)));
    return function;
  }

  const std::string name_;
  const Step& step_;
  const Schedule& schedule_;
  const Target& target_;
  const bool cpu_;
  SeveralKernels out_;
  std::map<int, std::string> names_;  // by buffer
  std::map<int, bool> written_;
  std::set<std::string> symbols_, counters_, taken_;
  std::set<int> local_;
  std::int64_t group_ = 1, widest_ = 1, local_bytes_ = 0;
  int count_ = 0;
  std::string functions_, body_;
};

}  // namespace

std::size_t SeveralKernels::argument(const Operand& operand) {
  auto at = std::find_if(buffers.begin(), buffers.end(), [&](const Argument& b) { return b.buffer == operand.buffer; });
  if (at == buffers.end()) at = buffers.insert(at, {operand.buffer, false});
  at->written = at->written || operand.written;
  return static_cast<std::size_t>(at - buffers.begin());
}

void SeveralKernels::add_arguments(const std::set<std::string>& symbols) {
  for (std::size_t i = 0; i < buffers.size(); ++i) kernel.arguments.push_back({.operand = static_cast<int>(i)});
  for (const std::string& s : symbols) kernel.arguments.push_back({.kind = KernelArgument::Kind::dimension, .symbol = s});
}

std::string SeveralKernels::pointer(std::size_t position, const Schedule& schedule) const {
  const Argument& b = buffers[position];
  return fmt::format("__global {}{}* b{}", b.written ? "" : "const ",
                     c_type(schedule.buffers[static_cast<std::size_t>(b.buffer)].dtype), position);
}

SeveralKernels generate_loop_kernel(const std::string& name, const Step& step, const Schedule& schedule, const Target& target) {
  return LoopKernelCode(name, step, schedule, target).run();
}

}  // namespace oclc
