#include "compiler/codegen/resident_kernel.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/codegen/scope.h"
#include "compiler/kernels/resident.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kPartName = "PART_NAME";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

class ResidentCode {
 public:
  static constexpr int kProgress = ResidentKernel::Argument::kProgress;

  ResidentCode(const std::string& name, const Schedule& schedule, const Target& target)
      : name_(name), schedule_(schedule), target_(target) {}

  ResidentKernel run(std::span<const Step> steps) {
    for (const Step& step : steps) part(schedule_.kernels[static_cast<std::size_t>(step.kernel)]);
    const auto count = static_cast<std::int64_t>(out_.parts.size());
    GeneratedKernel& g = out_.kernel;
    g.name = name_;
    g.groups = {Expr(resident_groups(target_))};
    g.local = {1};
    g.schedule = fmt::format("{} kernels, one after another, whose tiles the groups claim", count);
    g.head = fmt::format("// {}: {}\n{}\n", name_, g.schedule, heads_);
    const std::string progress = pointer_name(kProgress, true);
    g.source = functions_;
    g.source += fmt::format("__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void {}({}) {{\n", name_, signature());
    if (!local_.empty()) {
      std::string largest;
      for (const std::string& floats : local_)
        largest = largest.empty() ? floats : fmt::format("(({0}) > ({1}) ? ({0}) : ({1}))", largest, floats);
      g.source += fmt::format("  __local float space[{}];\n", largest);
    }
    g.source += moves_ + body_;
    g.source += fmt::format("  oclc_leave({}, {});\n}}\n", progress, 2 * count + 1);
    return std::move(out_);
  }

 private:
  struct Pointer {
    std::string name;
    DType dtype = DType::f32;
    bool written = false;
  };

  const std::string& pointer_name(int buffer, bool written) {
    Pointer& p = pointers_[buffer];
    const auto own = static_cast<int>(schedule_.buffers.size());
    if (p.name.empty()) {
      p.name = fmt::format("b{}", pointers_.size() - 1);
      order_.push_back(buffer);
      p.dtype = buffer == kProgress ? DType::i32
                : buffer < own      ? schedule_.buffers[static_cast<std::size_t>(buffer)].dtype
                                    : out_.kernel.packed[static_cast<std::size_t>(buffer - own)].dtype;
    }
    p.written = p.written || written;
    return p.name;
  }

  void part(const Kernel& kernel) {
    Kernel named = kernel;
    named.name = kPartName;
    GeneratedKernel g = generate(named, schedule_.buffers, target_);
    OCLC_CHECK(g.local.size() == 1 && g.local[0] == 1, "a resident launch has groups of one work-item");
    ResidentKernel::Part part;
    part.kernel = &kernel;
    const auto own = static_cast<int>(schedule_.buffers.size()), packed = static_cast<int>(out_.kernel.packed.size()),
               operands = static_cast<int>(kernel.operands.size());
    out_.kernel.amx = out_.kernel.amx || g.amx;
    for (Buffer& buffer : g.packed) out_.kernel.packed.push_back(std::move(buffer));
    std::vector<std::string> arguments;
    for (const KernelArgument& argument : g.arguments) {
      if (argument.kind == KernelArgument::Kind::dimension) {
        arguments.push_back("dim_" + argument.symbol);
        symbols_.insert(argument.symbol);
        continue;
      }
      const bool is_operand = argument.operand < operands;
      const bool written = is_operand && kernel.operands[static_cast<std::size_t>(argument.operand)].written;
      const int buffer = is_operand ? kernel.operands[static_cast<std::size_t>(argument.operand)].buffer
                                    : own + packed + argument.operand - operands;
      arguments.push_back(pointer_name(buffer, written));
      part.buffers.push_back({buffer, written});
    }
    const std::size_t number = out_.parts.size();
    const auto known = tiles_.emplace(g.tile_source, fmt::format("{}_{}", name_, number));
    const std::string& function = known.first->second;
    if (known.second) functions_ += replaced(g.tile_source, kPartName, function);
    heads_ += replaced(g.head, kPartName, kernel.name);
    const Expr tiles = product(g.groups);
    for (const std::string& s : tiles.symbols()) symbols_.insert(s);
    std::string call = fmt::format("{}_tile({}, tile", function, fmt::join(arguments, ", "));
    if (!g.local_floats.empty()) {
      call += ", space";
      local_.insert(g.local_floats);
    }
    body_ += fmt::format(
        "  if (first <= {0} && {0} < last) {{  // {1}\n    const int tiles = (int)({2});\n"
        "    for (int tile = oclc_claim({3} + {4}, tiles); tile < tiles; tile = oclc_claim({3} + {4}, tiles)) {{\n"
        "      {5});\n      oclc_finish({3} + {6});\n    }}\n    oclc_wait({3} + {6}, tiles);\n  }}\n",
        number, kernel.name, tiles.c_text([](std::string_view s) { return fmt::format("dim_{}", s); }),
        pointer_name(kProgress, true), (2 * number + 1) * kProgressStride, call, (2 * number + 2) * kProgressStride);
    out_.parts.push_back(std::move(part));
  }

  std::string signature() {
    std::vector<std::string> parameters;
    for (const int buffer : order_) {
      const Pointer& p = pointers_.at(buffer);
      const bool progress = buffer == kProgress;
      parameters.push_back(fmt::format("__global {}{}* {}, const long {}_at",
                                       progress    ? "volatile "
                                       : p.written ? ""
                                                   : "const ",
                                       c_type(p.dtype), p.name, p.name));
      moves_ += fmt::format("  {0} += {0}_at;\n", p.name);
      out_.kernel.arguments.push_back({.operand = static_cast<int>(out_.buffers.size())});
      // Its counters are zeros again when the launch ends.
      out_.buffers.push_back({buffer, p.written && !progress});
    }
    for (const std::string& s : symbols_) {
      parameters.push_back(fmt::format("const long dim_{}", s));
      out_.kernel.arguments.push_back({.kind = KernelArgument::Kind::dimension, .symbol = s});
    }
    return fmt::format("{}, const int first, const int last", fmt::join(parameters, ", "));
  }

  const std::string name_;
  const Schedule& schedule_;
  const Target& target_;
  ResidentKernel out_;
  std::map<int, Pointer> pointers_;  // by buffer
  std::vector<int> order_;           // of the pointers in the signature
  std::map<std::string, std::string> tiles_;
  std::set<std::string> symbols_, local_;
  std::string functions_, heads_, moves_, body_;
};

}  // namespace

ResidentKernel generate_resident(const std::string& name, std::span<const Step> steps, const Schedule& schedule,
                                 const Target& target) {
  return ResidentCode(name, schedule, target).run(steps);
}

}  // namespace oclc
