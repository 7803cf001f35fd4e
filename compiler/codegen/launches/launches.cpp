#include "compiler/codegen/launches/launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>

#include "compiler/codegen/attention/attention_kernel.h"
#include "compiler/codegen/launches/merge_arguments.h"
#include "compiler/codegen/launches/ragged_kernel.h"
#include "compiler/codegen/launches/work_group_kernel.h"
#include "compiler/ops/builder.h"
#include "compiler/schedule/megakernel.h"
#include "compiler/schedule/prefetch_weights.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

void check_doubles(const Schedule& schedule, const Target& target) {
  if (target.has.fp64) return;
  for (const Kernel& kernel : schedule.kernels) {
    if (!uses_doubles(kernel)) continue;
    throw CompileError({.stage = "codegen",
                        .node = kernel.sources.empty() ? kernel.name : kernel.sources.front(),
                        .wanted = fmt::format("a type that target '{}' computes with", target.name),
                        .found = "f64 (double), which its devices may lack",
                        .advice = "use float in the model, or compile for a device with cl_khr_fp64",
                        .exit_code = ExitCode::unsupported});
  }
}

std::string first_loop(const Step& step) {
  for (const Step& inner : step.body()) {
    if (!inner.is_kernel()) return inner.counter();
  }
  return "steps";
}

// Symbols that are known only when the plan has run so far.
std::set<std::string> open_symbols(const Schedule& schedule) {
  std::set<std::string> open;
  for (const Reading& reading : schedule.readings) {
    for (std::size_t i = 0; i < reading.dims.size(); ++i) {
      const std::vector<std::string> used = reading.upper[i].symbols();
      if (reading.upper[i] == Expr(kOpenDim) ||
          std::any_of(used.begin(), used.end(), [&](const std::string& s) { return open.count(s) != 0; }))
        open.insert(*reading.dims[i].symbol_name());
    }
  }
  return open;
}

class Launches {
 public:
  Launches(const Schedule& schedule, const Target& target, bool merge_arguments)
      : schedule_(schedule), target_(target), merges_(merge_arguments), open_(open_symbols(schedule)) {}

  std::vector<GeneratedLaunch> run() {
    for (const EntrySchedule& entry : schedule_.entries) steps(entry.steps);
    for (GeneratedLaunch& launch : all_) {
      if (launch.prefetched >= 0) launch.prefetched = launch_of_.at(launch.prefetched);
    }
    return std::move(all_);
  }

 private:
  void steps(std::span<const Step> list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Step& step = list[i];
      const std::size_t together = steps_of_launch(list.subspan(i));
      if (together > 1) {
        horizontal_fusion(list.subspan(i, together));
        i += together - 1;
      } else if (const auto* launched = step.as<KernelStep>()) {
        single(*launched);
      } else if (step.is<MegakernelStep>()) {
        megakernel(step);
      } else if (step.is<LoopKernelStep>()) {
        several(generate_loop_kernel(kPlaceholder, step, schedule_, target_), "k_" + first_loop(step) + "_loop_kernel");
        GeneratedLaunch& launch = all_.back();
        if (merges_ && has_many_arguments(launch.kernel()))
          share_buffers<SeveralKernels>(launch);
        else
          launch.shared.assign(launch.kernel().arguments.size(), false);
      } else if (step.is<WorkGroupStep>()) {
        several(generate_work_group(kPlaceholder, step, schedule_, target_), first_of(step).name + "_chain");
        share_buffers<SeveralKernels>(all_.back());
      } else if (step.is<AttentionStep>()) {
        several(generate_attention(kPlaceholder, step, schedule_, target_), first_of(step).name + "_attention");
        share_buffers<SeveralKernels>(all_.back());
      } else if (const auto* group = step.as<RaggedStep>()) {
        several(generate_ragged(kPlaceholder, *group, schedule_, target_), first_of(step).name + "_members");
        share_buffers<SeveralKernels>(all_.back());
      } else if (step.is_loop()) {
        steps(step.body());
      }
    }
  }

  GeneratedKernel code_of(int index, std::int64_t prefetched_bytes) const {
    Kernel named = kernel(index);
    named.name = kPlaceholder;
    if (named.contraction) named.contraction->asked_bytes = prefetched_bytes;
    GeneratedKernel code = generate(named, schedule_.buffers, target_);
    code.name = kernel(index).name;
    return code;
  }

  void single(const KernelStep& step) {
    GeneratedLaunch launch;
    bool prefetches = false;
    if (step.prefetch) {
      const auto later = early_.try_emplace(step.prefetch->kernel, code_of(step.prefetch->kernel, 0)).first;
      prefetches = !later->second.packed.empty();
      if (prefetches) launch.prefetched = step.prefetch->kernel;
    }
    if (const auto known = early_.find(step.kernel); known != early_.end()) {
      launch.code = std::move(known->second);
      early_.erase(known);
    } else {
      launch.code = code_of(step.kernel, prefetches ? kPrefetchedBytes : 0);
    }
    const Kernel& k = kernel(step.kernel);
    const auto count = static_cast<int>(k.operands.size());
    share(launch, [&](const GeneratedKernel& g, int operand) {
      if (operand < 0) return MemoryObject::constants;  // packed weights
      return operand < count ? object_of(at(operand, k)) : object_of(g.packed[static_cast<std::size_t>(operand - count)]);
    });
    launch_of_[step.kernel] = static_cast<int>(all_.size());
    all_.push_back(std::move(launch));
  }

  void several(SeveralKernels code, std::string name) {
    code.kernel.name = std::move(name);
    all_.push_back({.code = std::move(code)});
  }

  void horizontal_fusion(std::span<const Step> neighbours) {
    HorizontallyFused code = generate_horizontal_fusion(kPlaceholder, neighbours, schedule_, target_);
    code.kernel.name = schedule_.kernel(neighbours.front()).name + "_beside";
    all_.push_back({.code = std::move(code)});
    share_buffers<HorizontallyFused>(all_.back());
  }

  void megakernel(const Step& step) {
    MegakernelCode code = generate_megakernel(kPlaceholder, step.body(), schedule_, target_);
    code.kernel.name = code.parts.front().kernels.front()->name + "_and_on";
    all_.push_back({.code = std::move(code)});
    share_buffers<MegakernelCode>(all_.back());
  }

  // More than every device takes.
  static bool has_many_arguments(const GeneratedKernel& g) {
    std::size_t bytes = 8;  // the numbers that choose parts
    for (const KernelArgument& argument : g.arguments)
      bytes += argument.kind == KernelArgument::Kind::operand ? kBufferBytes : kSymbolBytes;
    return bytes > kMostArgumentBytes;
  }

  // The launch's arguments that lie in one memory object become offsets; `object` by an operand of the text.
  template <class Object>
  void share(GeneratedLaunch& launch, const Object& object) {
    GeneratedKernel& g = launch.kernel();
    const bool shares = merges_ && (target_.has.one_memory_object || has_many_arguments(g));
    std::vector<MemoryObject> objects;
    for (const KernelArgument& argument : g.arguments)
      objects.push_back(shares && argument.kind == KernelArgument::Kind::operand ? object(g, argument.operand)
                                                                                 : MemoryObject::own);
    launch.shared = share_memory(g, objects);
  }

  // The same for a launch of several kernels, whose operands are numbered by its `buffers`.
  template <class Code>
  void share_buffers(GeneratedLaunch& launch) {
    const auto& buffers = std::get<Code>(launch.code).buffers;
    const auto own = static_cast<int>(schedule_.buffers.size());
    share(launch, [&](const GeneratedKernel& g, int operand) {
      const int buffer = buffers[static_cast<std::size_t>(operand)].buffer;
      if (buffer == MegakernelCode::Argument::kProgress) return MemoryObject::own;
      if (buffer == MegakernelCode::Argument::kJoined) return MemoryObject::constants;
      return object_of(buffer < own ? schedule_.buffers[static_cast<std::size_t>(buffer)]
                                    : g.packed[static_cast<std::size_t>(buffer - own)]);
    });
  }

  // Of all buffers, those that lie in one memory object whatever the sizes: what depends on open dimensions is laid out late.
  MemoryObject object_of(const Buffer& buffer) const {
    if (buffer.kind == BufferKind::constant && buffer.elements != Expr(0)) return MemoryObject::constants;
    const std::vector<std::string> used = buffer.elements.symbols();
    const bool open = std::any_of(used.begin(), used.end(), [&](const std::string& s) { return open_.count(s) != 0; });
    return buffer.kind == BufferKind::arena && !open ? MemoryObject::arena : MemoryObject::own;
  }

  const Kernel& kernel(int index) const { return schedule_.kernels[static_cast<std::size_t>(index)]; }
  const Kernel& first_of(const Step& step) const { return schedule_.kernel(step.body().front()); }
  const Buffer& at(int operand, const Kernel& k) const {
    return schedule_.buffers[static_cast<std::size_t>(k.operands[static_cast<std::size_t>(operand)].buffer)];
  }

  const Schedule& schedule_;
  const Target& target_;
  const bool merges_;
  const std::set<std::string> open_;
  std::map<int, GeneratedKernel> early_;  // by kernel: made for a launch that prefetches its weights
  std::map<int, int> launch_of_;          // by kernel
  std::vector<GeneratedLaunch> all_;
};

}  // namespace

GeneratedKernel& GeneratedLaunch::kernel() {
  return std::visit(
      [](auto& made) -> GeneratedKernel& {
        if constexpr (std::is_same_v<std::decay_t<decltype(made)>, GeneratedKernel>)
          return made;
        else
          return made.kernel;
      },
      code);
}

const GeneratedKernel& GeneratedLaunch::kernel() const { return const_cast<GeneratedLaunch&>(*this).kernel(); }

bool uses_doubles(const Kernel& kernel) {
  const auto is_double = [](const auto& x) { return x.dtype == DType::f64; };
  return std::any_of(kernel.operands.begin(), kernel.operands.end(), is_double) ||
         std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_double);
}

std::vector<GeneratedLaunch> generate_launches(const Schedule& schedule, const Target& target, bool merge_arguments) {
  check_doubles(schedule, target);
  return Launches(schedule, target, merge_arguments).run();
}

}  // namespace oclc
