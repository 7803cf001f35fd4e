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

std::size_t stretch_length(const Schedule& schedule, std::span<const Step> list, const Target& target) {
  const bool able = target.device_class == DeviceClass::cpu && target.loop_iterations == Target::kNoLimit;
  Arguments arguments;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kernel < 0) return i;
    arguments.add(schedule.kernels[static_cast<std::size_t>(list[i].kernel)]);
    if (i > 0 && (!able || arguments.bytes() > kArgumentBytes)) return i;
  }
  return list.size();
}

}  // namespace oclc
