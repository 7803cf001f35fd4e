// Combinations over the lanes of a vector, as a balanced tree, parts of vectors, and sums that carry what rounding takes.

//@provides oclc_lanes_sum
float __attribute__((overloadable)) oclc_lanes_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
float __attribute__((overloadable)) oclc_lanes_sum(float8 v) { return oclc_lanes_sum(v.lo + v.hi); }
float __attribute__((overloadable)) oclc_lanes_sum(float16 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int4 v) { return (v.x + v.y) + (v.z + v.w); }
int __attribute__((overloadable)) oclc_lanes_sum(int8 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int16 v) { return oclc_lanes_sum(v.lo + v.hi); }

//@provides oclc_lanes_product
float __attribute__((overloadable)) oclc_lanes_product(float4 v) { return (v.x * v.y) * (v.z * v.w); }
float __attribute__((overloadable)) oclc_lanes_product(float8 v) { return oclc_lanes_product(v.lo * v.hi); }
float __attribute__((overloadable)) oclc_lanes_product(float16 v) { return oclc_lanes_product(v.lo * v.hi); }
int __attribute__((overloadable)) oclc_lanes_product(int4 v) { return (v.x * v.y) * (v.z * v.w); }
int __attribute__((overloadable)) oclc_lanes_product(int8 v) { return oclc_lanes_product(v.lo * v.hi); }
int __attribute__((overloadable)) oclc_lanes_product(int16 v) { return oclc_lanes_product(v.lo * v.hi); }

//@provides oclc_lanes_max oclc_lanes_larger
float __attribute__((overloadable)) oclc_lanes_max(float4 v) { return oclc_max(oclc_max(v.x, v.y), oclc_max(v.z, v.w)); }
// Of wide vectors by one instruction a step, beside which lanes that are not numbers are looked for: the steps wait for one another.
float __attribute__((overloadable)) oclc_lanes_larger(float8 v) {
  const float4 a = v.hi > v.lo ? v.hi : v.lo;
  const float2 b = a.hi > a.lo ? a.hi : a.lo;
  return b.y > b.x ? b.y : b.x;
}
float __attribute__((overloadable)) oclc_lanes_max(float8 v) { return any(v != v) ? NAN : oclc_lanes_larger(v); }
float __attribute__((overloadable)) oclc_lanes_max(float16 v) {
  return any(v != v) ? NAN : oclc_lanes_larger(v.hi > v.lo ? v.hi : v.lo);
}
int __attribute__((overloadable)) oclc_lanes_max(int4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
int __attribute__((overloadable)) oclc_lanes_max(int8 v) { return oclc_lanes_max(max(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_max(int16 v) { return oclc_lanes_max(max(v.lo, v.hi)); }

//@provides oclc_lanes_min
float __attribute__((overloadable)) oclc_lanes_min(float4 v) { return oclc_min(oclc_min(v.x, v.y), oclc_min(v.z, v.w)); }
// Of wide vectors by one instruction a step, beside which lanes that are not numbers are looked for: the steps wait for one another.
float __attribute__((overloadable)) oclc_lanes_smaller(float8 v) {
  const float4 a = v.hi < v.lo ? v.hi : v.lo;
  const float2 b = a.hi < a.lo ? a.hi : a.lo;
  return b.y < b.x ? b.y : b.x;
}
float __attribute__((overloadable)) oclc_lanes_min(float8 v) { return any(v != v) ? NAN : oclc_lanes_smaller(v); }
float __attribute__((overloadable)) oclc_lanes_min(float16 v) {
  return any(v != v) ? NAN : oclc_lanes_smaller(v.hi < v.lo ? v.hi : v.lo);
}
int __attribute__((overloadable)) oclc_lanes_min(int4 v) { return min(min(v.x, v.y), min(v.z, v.w)); }
int __attribute__((overloadable)) oclc_lanes_min(int8 v) { return oclc_lanes_min(min(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_min(int16 v) { return oclc_lanes_min(min(v.lo, v.hi)); }

//@provides oclc_fma_low
// a * b + c in the lower half of the lanes, 0 in the upper one.
float16 oclc_fma_low(float16 a, float16 b, float16 c) { return (float16)(fma(a.lo, b.lo, c.lo), (float8)(0.0f)); }

//@provides oclc_load_lanes4 oclc_load_lanes8 oclc_load_lanes16
// The first `count` lanes from memory, the others 0: nothing behind them is read. Where `count` is a constant, whole and half vectors
// take no detour.
#define OCLC_LOAD_LANES(T, W, H) \
  T##W __attribute__((overloadable)) oclc_load_lanes##W(const __global T* p, int count) { \
    if (count >= W) return vload##W(0, p); \
    if (count == H) return (T##W)(vload##H(0, p), (T##H)(0)); \
    T lanes[W]; \
    for (int l = 0; l < W; ++l) lanes[l] = l < count ? p[l] : 0; \
    return vload##W(0, lanes); \
  }
OCLC_LOAD_LANES(float, 4, 2) OCLC_LOAD_LANES(float, 8, 4) OCLC_LOAD_LANES(float, 16, 8)
OCLC_LOAD_LANES(int, 4, 2) OCLC_LOAD_LANES(int, 8, 4) OCLC_LOAD_LANES(int, 16, 8)
OCLC_LOAD_LANES(uint, 4, 2) OCLC_LOAD_LANES(uint, 8, 4) OCLC_LOAD_LANES(uint, 16, 8)
OCLC_LOAD_LANES(uchar, 4, 2) OCLC_LOAD_LANES(uchar, 8, 4) OCLC_LOAD_LANES(uchar, 16, 8)

//@provides oclc_store_lanes4 oclc_store_lanes8 oclc_store_lanes16
// The first `count` lanes to memory.
#define OCLC_STORE_LANES(T, W, H) \
  void __attribute__((overloadable)) oclc_store_lanes##W(T##W v, __global T* p, int count) { \
    if (count >= W) { \
      oclc_store(v, p); \
    } else if (count == H) { \
      vstore##H(v.lo, 0, p); \
    } else { \
      T lanes[W]; \
      oclc_store(v, lanes); \
      for (int l = 0; l < count; ++l) p[l] = lanes[l]; \
    } \
  }
OCLC_STORE_LANES(float, 4, 2) OCLC_STORE_LANES(float, 8, 4) OCLC_STORE_LANES(float, 16, 8)
OCLC_STORE_LANES(int, 4, 2) OCLC_STORE_LANES(int, 8, 4) OCLC_STORE_LANES(int, 16, 8)
OCLC_STORE_LANES(uint, 4, 2) OCLC_STORE_LANES(uint, 8, 4) OCLC_STORE_LANES(uint, 16, 8)
OCLC_STORE_LANES(uchar, 4, 2) OCLC_STORE_LANES(uchar, 8, 4) OCLC_STORE_LANES(uchar, 16, 8)

//@provides oclc_add_carrying
// Adds `term` to `sum`, and to `rest` what rounding took from it (Kahan 1965). Of an infinite sum nothing is left over, rather than the
// difference of infinities.
#define OCLC_ADD_CARRYING(F) \
  void __attribute__((overloadable)) oclc_add_carrying(F* sum, F* rest, F term) { \
    const F with_rest = term - *rest, next = *sum + with_rest; \
    *rest = select((F)(0.0f), (next - *sum) - with_rest, isfinite(next)); \
    *sum = next; \
  }
OCLC_ADD_CARRYING(float) OCLC_ADD_CARRYING(float4) OCLC_ADD_CARRYING(float8) OCLC_ADD_CARRYING(float16)
