// k_softmax_softmax: softmax add
// nodes     softmax, mask
// x0        x
// x1        mask
// y0        y
// axes      i0<N; sums over r1<1000
// cost      15000*N flops, 8000*N + 4000 bytes
// launch    (N + 38) / 39 groups of 1; 39 rows x 1 a tile, vectors along the row
#ifndef OCLC_HAVE_OCLC_DOUBLE
#define OCLC_HAVE_OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

#endif
#ifndef OCLC_HAVE_oclc_max
#define OCLC_HAVE_oclc_max
// The larger; NaN if either is. One instruction where b is a constant.
#define OCLC_MAX(T) \
  T __attribute__((overloadable)) oclc_max(T a, T b) { \
    const T larger = b > a ? b : a; \
    return b != b ? b : larger; \
  }
OCLC_FLOATS(OCLC_MAX) OCLC_DOUBLE(OCLC_MAX)
#endif
#ifndef OCLC_HAVE_oclc_exp_near
#define OCLC_HAVE_oclc_exp_near
// e^r - 1 for |r| <= ln(2) / 2: the polynomial is a minimax one of (e^r - 1 - r) / r^2.
#define OCLC_EXP_NEAR(T) \
  T __attribute__((overloadable)) oclc_exp_near(T r) { \
    const T s = r * r, low = fma((T)(1.66665206e-1f), r, (T)(4.99999934e-1f)); \
    const T high = fma((T)(8.36871521e-3f), r, (T)(4.16683879e-2f)); \
    return fma(fma(fma((T)(1.38146020e-3f), s, high), s, low), s, r); \
  }
OCLC_FLOATS(OCLC_EXP_NEAR)
#endif
#ifndef OCLC_HAVE_oclc_exp_rest
#define OCLC_HAVE_oclc_exp_rest
// e^a 2^-n - 1 for an integer n next to a / ln 2.
#define OCLC_EXP_REST(T) \
  T __attribute__((overloadable)) oclc_exp_rest(T a, T n) { \
    return oclc_exp_near(fma(n, (T)(1.90465421e-9f), fma(n, (T)(-0.693147182f), a))); \
  }
OCLC_FLOATS(OCLC_EXP_REST)
#endif
#ifndef OCLC_HAVE_oclc_exp_times
#define OCLC_HAVE_oclc_exp_times
// e^a 2^e where that is a normal number, `magic` = 1.5 2^23 + 127 + e: the sum rounds a / ln 2 to an integer in the low bits of z, from
// where it becomes an exponent.
#define OCLC_EXP_TIMES(T, I) \
  T __attribute__((overloadable)) oclc_exp_times(T a, T magic) { \
    const T z = fma(a, (T)(1.44269504f), magic); \
    return (oclc_exp_rest(a, z - magic) + 1) * as_##T(as_##I(z) << 23); \
  }
OCLC_EXP_TIMES(float, int) OCLC_EXP_TIMES(float4, int4) OCLC_EXP_TIMES(float8, int8) OCLC_EXP_TIMES(float16, int16)
#endif
#ifndef OCLC_HAVE_oclc_exp
#define OCLC_HAVE_oclc_exp
// Two factors, so that large results overflow and small ones lose their digits one by one, where no instruction scales so. Built-in
// functions are shorter on GPUs.
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_scalefps512_mask)
#define OCLC_SCALES
#endif
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define OCLC_EXP(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { \
    const T top = a > 100 ? (T)(100) : a, b = top < -104 ? (T)(0) : top; \
    const T e = oclc_exp_times(b, b < 0 ? (T)(12583103.0f) : (T)(12582975.0f)) * (b < 0 ? (T)(0x1p-64f) : (T)(0x1p64f)); \
    return a < -104 ? (T)(0) : e; \
  }
#else
#define OCLC_EXP(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { return exp(a); }
#endif
#ifdef OCLC_SCALES
OCLC_EXP(float) OCLC_EXP(float4) OCLC_EXP(float8)
// The mask leaves out what is 0, as e^-inf behind a mask of attention: some processors take 200 cycles for a result that is too small.
float16 __attribute__((overloadable)) oclc_exp(float16 a) {
  const float16 top = a > 100 ? (float16)(100) : a;
  const float16 n = fma(top, (float16)(1.44269504f), (float16)(12582912.0f)) - 12582912.0f;
  const ushort some = __builtin_ia32_cmpps512_mask(a, (float16)(-104.0f), 5 /* not less */, (ushort)0xffff, 4);
  return __builtin_ia32_scalefps512_mask(oclc_exp_rest(top, n) + 1, n, (float16)(0.0f), some, 4);
}
#else
OCLC_FLOATS(OCLC_EXP)
#endif
#define OCLC_EXP_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { return exp(a); }
OCLC_DOUBLE(OCLC_EXP_DOUBLE)
#endif
#ifndef OCLC_HAVE_oclc_prefetch
#define OCLC_HAVE_oclc_prefetch
// Asks for the cache line at p, which may point anywhere. Compilers to an intermediate language know no such hint, and kernels that are
// not optimized wait for little else than themselves.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OCLC_UNOPTIMIZED)
#define oclc_prefetch(p) __builtin_prefetch((const void*)(size_t)(p))
#else
#define oclc_prefetch(p)
#endif

#endif
#ifndef OCLC_HAVE_oclc_store
#define OCLC_HAVE_oclc_store
// v at p, which need not be aligned for more than a number: one store where compilers know such types, while vstore may be several.
#ifdef __clang__
#define OCLC_STORE_IN(T, W, SPACE) \
  void __attribute__((overloadable)) oclc_store(T##W v, SPACE T* p) { \
    typedef T##W at_any __attribute__((aligned(sizeof(T)))); \
    *(SPACE at_any*)p = v; \
  }
#else
#define OCLC_STORE_IN(T, W, SPACE) \
  void __attribute__((overloadable)) oclc_store(T##W v, SPACE T* p) { vstore##W(v, 0, p); }
#endif
#define OCLC_STORE(T) \
  OCLC_STORE_IN(T, 4, __global) OCLC_STORE_IN(T, 8, __global) OCLC_STORE_IN(T, 16, __global) \
  OCLC_STORE_IN(T, 4, __local) OCLC_STORE_IN(T, 8, __local) OCLC_STORE_IN(T, 16, __local) \
  OCLC_STORE_IN(T, 4, __private) OCLC_STORE_IN(T, 8, __private) OCLC_STORE_IN(T, 16, __private)
OCLC_STORE(float) OCLC_STORE(int) OCLC_STORE(uint) OCLC_STORE(uchar) OCLC_STORE(ushort)
#endif
#ifndef OCLC_HAVE_oclc_lanes_sum
#define OCLC_HAVE_oclc_lanes_sum
float __attribute__((overloadable)) oclc_lanes_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
float __attribute__((overloadable)) oclc_lanes_sum(float8 v) { return oclc_lanes_sum(v.lo + v.hi); }
float __attribute__((overloadable)) oclc_lanes_sum(float16 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int4 v) { return (v.x + v.y) + (v.z + v.w); }
int __attribute__((overloadable)) oclc_lanes_sum(int8 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int16 v) { return oclc_lanes_sum(v.lo + v.hi); }

#endif
#ifndef OCLC_HAVE_oclc_lanes_larger
#define OCLC_HAVE_oclc_lanes_larger
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

#endif
void k_softmax_softmax_tile(__global const float* x0, __global const float* x1, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 39 + 39, (int)((int)dim_N));
  for (int row = (tile) * 39; row < row_end; ++row) {
    const int i0 = row;
    {
      float kept0[1000];
      float s0 = -INFINITY;
      float8 s0_lanes = (float8)(-INFINITY);
      {
        float8 s0_lanes1 = s0_lanes;
        float8 s0_lanes2 = s0_lanes;
        float8 s0_lanes3 = s0_lanes;
        for (int s0_lanes_from = 0; s0_lanes_from < 992; s0_lanes_from += 32) {
          {
            const int r1 = s0_lanes_from + 0;
            const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
            const float8 v1 = vload8(0, x1 + r1);
            const float8 v2 = (v0 + v1);
            s0_lanes = oclc_max(s0_lanes, v2);
          }
          {
            const int r1 = s0_lanes_from + 8;
            const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
            const float8 v1 = vload8(0, x1 + r1);
            const float8 v2 = (v0 + v1);
            s0_lanes1 = oclc_max(s0_lanes1, v2);
          }
          {
            const int r1 = s0_lanes_from + 16;
            const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
            const float8 v1 = vload8(0, x1 + r1);
            const float8 v2 = (v0 + v1);
            s0_lanes2 = oclc_max(s0_lanes2, v2);
          }
          {
            const int r1 = s0_lanes_from + 24;
            const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
            const float8 v1 = vload8(0, x1 + r1);
            const float8 v2 = (v0 + v1);
            s0_lanes3 = oclc_max(s0_lanes3, v2);
          }
        }
        s0_lanes = oclc_max(s0_lanes, s0_lanes1);
        s0_lanes = oclc_max(s0_lanes, s0_lanes2);
        s0_lanes = oclc_max(s0_lanes, s0_lanes3);
        for (int r1 = 992; r1 < 1000; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
          const float8 v1 = vload8(0, x1 + r1);
          const float8 v2 = (v0 + v1);
          s0_lanes = oclc_max(s0_lanes, v2);
        }
      }
      s0 = oclc_max(s0, oclc_lanes_max(s0_lanes));
      float s1 = 0.0f;
      float8 s1_lanes = (float8)(0.0f);
      {
        for (int r1 = 0; r1 < 1000; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
          const float8 v1 = vload8(0, x1 + r1);
          const float8 v2 = (v0 + v1);
          const float8 v5 = oclc_exp((v2 - (float8)(s0)));
          s1_lanes = s1_lanes + v5;
          oclc_store(v5, kept0 + r1);
          oclc_prefetch(x0 + 1000*i0 + r1 + 2000);
        }
      }
      s1 = s1 + oclc_lanes_sum(s1_lanes);
      {
        for (int r1 = 0; r1 < 1000; r1 += 8) {
          const float8 v5 = vload8(0, kept0 + r1);
          oclc_store((v5 * (float8)((1 / s1))), y0 + 1000*i0 + r1);
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_softmax_softmax(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global float* y0, const long y0_at, const long dim_N) {
  k_softmax_softmax_tile(x0 + x0_at, x1 + x1_at, y0 + y0_at, dim_N, get_group_id(0));
}
