#include "tools/oclc/memory_peak.h"

#include <algorithm>

namespace oclc::tool {
namespace {

// Bytes of the buffer that are alive at schedule index `step`.
std::uint64_t alive_at(const plan::Buffer& buffer, std::uint64_t size, int step) {
  if (step < buffer.first() || step > buffer.last()) return 0;
  if (!buffer.pieces() || buffer.pieces()->size() == 0) return size;
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < buffer.pieces()->size(); ++i) {
    const auto offset = [&](std::uint32_t k) {
      return k == buffer.pieces()->size() ? size
                                          : std::min(size, static_cast<std::uint64_t>(buffer.pieces()->Get(k)->offset()));
    };
    if (buffer.pieces()->Get(i)->first() <= step) sum += offset(i + 1) - offset(i);
  }
  return sum;
}

}  // namespace

MemoryPeak memory_peak(const plan::Plan& plan, std::uint32_t entry, const package::EntryMemory& memory) {
  std::vector<std::uint32_t> own;
  int last = -1;
  const std::uint32_t count = plan.buffers() ? plan.buffers()->size() : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const plan::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.kind() != plan::BufferKind::arena || buffer.entry() != static_cast<int>(entry) || buffer.alias() >= 0) continue;
    if (memory.sizes[i] == 0) continue;
    own.push_back(i);
    last = std::max(last, buffer.last());
  }
  MemoryPeak peak;
  for (int step = 0; step <= last; ++step) {
    std::uint64_t sum = 0;
    for (const std::uint32_t i : own) sum += alive_at(*plan.buffers()->Get(i), memory.sizes[i], step);
    if (sum <= peak.bytes) continue;
    peak.bytes = sum;
    peak.step = step;
  }
  for (const std::uint32_t i : own) {
    const plan::Buffer& buffer = *plan.buffers()->Get(i);
    const std::uint64_t bytes = alive_at(buffer, memory.sizes[i], peak.step);
    if (bytes > 0)
      peak.alive.push_back(
          {buffer.name() ? buffer.name()->str() : std::string(), bytes, memory.sizes[i], buffer.first(), buffer.last()});
  }
  std::stable_sort(peak.alive.begin(), peak.alive.end(),
                   [](const AliveBuffer& a, const AliveBuffer& b) { return a.bytes > b.bytes; });
  return peak;
}

}  // namespace oclc::tool
