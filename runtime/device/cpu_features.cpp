#include "runtime/device/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace oclc::runtime {

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers leaf(unsigned number, unsigned sub) {
  Registers r;
  __get_cpuid_count(number, sub, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// Which register sets the operating system saves.
std::uint64_t enabled_states() {
  if (!(leaf(1, 0).c >> 27 & 1)) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

std::string cpu_features() {
  const Registers basic = leaf(1, 0);
  const Registers extended = leaf(7, 0);
  const Registers more = leaf(7, 1);
  const std::uint64_t states = enabled_states();
  const bool avx = (states & 0x6) == 0x6;
  const bool avx512 = (states & 0xe6) == 0xe6;
  const bool amx = (states & 0x60000) == 0x60000;
  std::string text;
  const auto add = [&](bool enabled, unsigned word, int bit, const char* name) {
    if (enabled && (word >> bit & 1)) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(true, basic.c, 20, "sse4_2");
  add(avx, basic.c, 28, "avx");
  add(avx, basic.c, 12, "fma");
  add(avx, basic.c, 29, "f16c");
  add(avx, extended.b, 5, "avx2");
  add(avx, more.a, 4, "avx_vnni");
  add(avx512, extended.b, 16, "avx512f");
  add(avx512, extended.b, 17, "avx512dq");
  add(avx512, extended.b, 30, "avx512bw");
  add(avx512, extended.b, 31, "avx512vl");
  add(avx512, extended.c, 11, "avx512_vnni");
  add(avx512, more.a, 5, "avx512_bf16");
  add(avx512, extended.d, 23, "avx512_fp16");
  add(amx, extended.d, 24, "amx_tile");
  add(amx, extended.d, 22, "amx_bf16");
  add(amx, extended.d, 25, "amx_int8");
  return text;
}

bool has_amx() {
  const Registers extended = leaf(7, 0);
  constexpr std::uint32_t kBf16TileInt8 = 1u << 22 | 1u << 24 | 1u << 25;
  return (enabled_states() & 0x60000) == 0x60000 && (extended.d & kBf16TileInt8) == kBf16TileInt8;
}
#else
std::string cpu_features() { return ""; }
bool has_amx() { return false; }
#endif

}  // namespace oclc::runtime
