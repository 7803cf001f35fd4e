// 16-bit floats, held as ushort in memory and computed with as floats: f16 is IEEE binary16, bf16 the upper half of a float.
// Rounding is to the nearest, ties to even; NaN stays NaN. f16 is converted through private memory: vload_half and vstore_half of
// PoCL 3.1 take vectors in global memory for aligned.
//
// launch    none: helper functions
// local     none

//@provides oclc_from_f16 oclc_to_f16
#define OCLC_F16(N) \
  float##N __attribute__((overloadable)) oclc_from_f16(ushort##N h) { return vload_half##N(0, (const half*)&h); } \
  ushort##N __attribute__((overloadable)) oclc_to_f16(float##N x) { \
    ushort##N h; \
    vstore_half##N##_rte(x, 0, (half*)&h); \
    return h; \
  }
OCLC_F16() OCLC_F16(4) OCLC_F16(8) OCLC_F16(16)

//@provides oclc_half_pair oclc_half_pair_rest
// Two numbers rounded to halves, to the nearest, ties to even, the first in the low bits; and what rounding took of them, likewise.
#if OCLC_NV_SM >= 80
uint oclc_half_pair(float low, float high) {
  uint pair;
  __asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
uint oclc_half_pair_rest(float low, float high, uint pair) {
  float a, b;
  __asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(a), "=f"(b) : "r"(pair));
  return oclc_half_pair(low - a, high - b);
}
#else
uint oclc_half_pair(float low, float high) { return oclc_to_f16(low) | (uint)oclc_to_f16(high) << 16; }
uint oclc_half_pair_rest(float low, float high, uint pair) {
  return oclc_half_pair(low - oclc_from_f16((ushort)pair), high - oclc_from_f16((ushort)(pair >> 16)));
}
#endif

//@provides oclc_half_floats
// The two numbers of such a pair.
#if OCLC_NV_SM >= 80
float2 oclc_half_floats(uint pair) {
  float a, b;
  __asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(a), "=f"(b) : "r"(pair));
  return (float2)(a, b);
}
#else
float2 oclc_half_floats(uint pair) {
  return (float2)(oclc_from_f16((ushort)pair), oclc_from_f16((ushort)(pair >> 16)));
}
#endif

//@provides oclc_from_bf16 oclc_to_bf16
#define OCLC_FROM_BF16(N) \
  float##N __attribute__((overloadable)) oclc_from_bf16(ushort##N h) { return as_float##N(convert_uint##N(h) << 16); }
OCLC_FROM_BF16() OCLC_FROM_BF16(4) OCLC_FROM_BF16(8) OCLC_FROM_BF16(16)
#define OCLC_TO_BF16(N) \
  ushort##N __attribute__((overloadable)) oclc_to_bf16(float##N x) { \
    const uint##N u = as_uint##N(x); \
    const uint##N nearest = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; \
    return convert_ushort##N(x != x ? (u >> 16) | 0x40u : nearest); \
  }
OCLC_TO_BF16() OCLC_TO_BF16(4) OCLC_TO_BF16(8)
#ifdef OCLC_AMX
// Processors with such tiles round in one instruction, which takes denormal numbers for 0.
ushort16 __attribute__((overloadable)) oclc_to_bf16(float16 x) {
  ushort16 h;
  __asm__("vcvtneps2bf16 %1,%0" : "=v"(h) : "v"(x));
  return h;
}
#else
OCLC_TO_BF16(16)
#endif

//@provides oclc_load_half_lanes4 oclc_load_half_lanes8 oclc_load_half_lanes16
// The first `count` lanes from memory, the others 0: nothing behind them is read.
#define OCLC_LOAD_HALF_LANES(W) \
  ushort##W __attribute__((overloadable)) oclc_load_half_lanes##W(const __global ushort* p, int count) { \
    if (count >= W) return vload##W(0, p); \
    ushort lanes[W]; \
    for (int l = 0; l < W; ++l) lanes[l] = l < count ? p[l] : 0; \
    return vload##W(0, lanes); \
  }
OCLC_LOAD_HALF_LANES(4) OCLC_LOAD_HALF_LANES(8) OCLC_LOAD_HALF_LANES(16)

//@provides oclc_store_half_lanes4 oclc_store_half_lanes8 oclc_store_half_lanes16
// The first `count` lanes to memory.
#define OCLC_STORE_HALF_LANES(W) \
  void __attribute__((overloadable)) oclc_store_half_lanes##W(ushort##W v, __global ushort* p, int count) { \
    if (count >= W) { \
      oclc_store(v, p); \
    } else { \
      ushort lanes[W]; \
      oclc_store(v, lanes); \
      for (int l = 0; l < count; ++l) p[l] = lanes[l]; \
    } \
  }
OCLC_STORE_HALF_LANES(4) OCLC_STORE_HALF_LANES(8) OCLC_STORE_HALF_LANES(16)
