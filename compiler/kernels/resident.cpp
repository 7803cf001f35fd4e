#include "compiler/kernels/resident.h"

#include <algorithm>
#include <set>
#include <string>

namespace oclc {
namespace {

// Every device takes 1024 bytes of arguments. A buffer is a pointer and an offset, a symbol one number; the counters' buffer
// and the two numbers that choose the parts come on top.
constexpr std::size_t kArgumentBytes = 1024, kBufferBytes = 16, kSymbolBytes = 8, kOwnBytes = 24;
constexpr int kFewestGroups = 16;

// What the arguments of one launch are for.
struct Arguments {
  std::set<int> buffers;
  std::set<std::string> symbols;
  std::size_t packed = 0;  // copies of weights that code generation makes

  void add(const Kernel& kernel) {
    for (const Operand& o : kernel.operands) buffers.insert(o.buffer);
    for (const std::string& s : kernel.model_symbols()) symbols.insert(s);
    packed += kernel.contraction ? 1 : 0;
  }
  std::size_t bytes() const { return kOwnBytes + (buffers.size() + packed) * kBufferBytes + symbols.size() * kSymbolBytes; }
};

}  // namespace

std::int64_t resident_groups(const Target& target) { return std::max(kFewestGroups, target.compute_units); }

bool resident_loop(const Schedule& schedule, const Step& step) {
  if (!step.is_loop() || !step.condition.empty() || step.body.empty()) return false;
  return std::all_of(step.body.begin(), step.body.end(), [&](const Step& inner) {
    if (inner.kernel < 0) return false;
    const std::vector<Axis>& axes = schedule.kernels[static_cast<std::size_t>(inner.kernel)].axes;
    return std::none_of(axes.begin(), axes.end(), [&](const Axis& a) {
      const auto symbols = a.extent.symbols();
      return std::find(symbols.begin(), symbols.end(), step.counter) != symbols.end();
    });
  });
}

std::vector<const Kernel*> kernels_of(const Schedule& schedule, const Step& step) {
  std::vector<const Kernel*> out;
  const auto add = [&](const Step& one) { out.push_back(&schedule.kernels[static_cast<std::size_t>(one.kernel)]); };
  if (step.kernel >= 0) add(step);
  for (const Step& inner : step.body) add(inner);
  return out;
}

std::size_t stretch_length(const Schedule& schedule, std::span<const Step> list, const Target& target) {
  const bool able = target.device_class == DeviceClass::cpu && target.loop_iterations == Target::kNoLimit;
  Arguments arguments;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool loop = able && resident_loop(schedule, list[i]);
    if (list[i].kernel < 0 && !loop) return i;
    for (const Kernel* kernel : kernels_of(schedule, list[i])) arguments.add(*kernel);
    for (const std::string& s : list[i].trip.symbols()) arguments.symbols.insert(s);
    if ((i > 0 && !able) || ((i > 0 || loop) && arguments.bytes() > kArgumentBytes)) return i;
  }
  return list.size();
}

}  // namespace oclc
