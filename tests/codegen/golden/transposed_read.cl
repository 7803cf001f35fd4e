// k_exp_transpose: transpose exp slice
// nodes     exp, every second, backwards
// x0        x
// y0        y
// axes      i0<N i1<20 i2<3
// cost      600*N flops, 480*N bytes
// launch    (4*N + 3124) / 3125 groups of 1; 46875 rows x 1 a tile
#ifndef OCLC_HAVE_OCLC_DOUBLE
#define OCLC_HAVE_OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

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
void k_exp_transpose_tile(__global const float* x0, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 46875 + 46875, (int)(60*(int)dim_N));
  for (int row = (tile) * 46875; row < row_end; ++row) {
    const int i0 = row / (60);
    const int i1 = row / (3) % (20);
    const int i2 = row % (3);
    {
      const float v0 = x0[120*i0 - 2*i1 + 40*i2 + 39];
      y0[60*i0 + 3*i1 + i2] = oclc_exp(v0);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_exp_transpose(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_exp_transpose_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}
