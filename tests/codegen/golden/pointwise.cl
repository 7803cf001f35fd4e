// k_gate_mul: mul mul add sigmoid
// nodes     gate, swish, bias, swish.sigmoid
// x0        x
// x1        bias
// x2        gate
// y0        y
// axes      i0<N i1<100
// cost      1500*N flops, 804*N + 400 bytes
// launch    (N + 394) / 395 groups of 1; 395 rows x 100 a tile
#ifndef OCLC_HAVE_OCLC_DOUBLE
#define OCLC_HAVE_OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

#endif
#ifndef OCLC_HAVE_oclc_exp_rest
#define OCLC_HAVE_oclc_exp_rest
// e^a 2^-n - 1 for an integer n next to a / ln 2: |r| <= ln(2) / 2, the polynomial is a minimax one of (e^r - 1 - r) / r^2.
#define OCLC_EXP_REST(T) \
  T __attribute__((overloadable)) oclc_exp_rest(T a, T n) { \
    const T r = fma(n, (T)(1.90465421e-9f), fma(n, (T)(-0.693147182f), a)); \
    const T s = r * r, low = fma((T)(1.66665206e-1f), r, (T)(4.99999934e-1f)); \
    const T high = fma((T)(8.36871521e-3f), r, (T)(4.16683879e-2f)); \
    return fma(fma(fma((T)(1.38146020e-3f), s, high), s, low), s, r); \
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
#ifndef OCLC_HAVE_oclc_sigmoid
#define OCLC_HAVE_oclc_sigmoid
// 2^-32 / (2^-32 + 2^-32 e^-a): nothing overflows, and small results keep their digits.
#define OCLC_SIGMOID(T) \
  T __attribute__((overloadable)) oclc_sigmoid(T a) { \
    const T low = -a < -64 ? (T)(-64) : -a, b = low > 110 ? (T)(110) : low; \
    return 0x1p-32f / (0x1p-32f + oclc_exp_times(b, (T)(12583007.0f))); \
  }
OCLC_FLOATS(OCLC_SIGMOID)
#ifdef cl_khr_fp64
double __attribute__((overloadable)) oclc_sigmoid(double a) {
  const double e = exp(-fabs(a));
  return (a < 0 ? e : 1) / (1 + e);
}
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
void k_gate_mul_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 395 + 395, (int)((int)dim_N));
  for (int row = (tile) * 395; row < row_end; ++row) {
    const int i0 = row;
    {
      int i1 = 0;
      const float v5 = x2[i0];
      for (; i1 + 8 <= 100; i1 += 8) {
        const float8 v0 = vload8(0, x0 + 100*i0 + i1);
        const float8 v1 = vload8(0, x1 + i1);
        const float8 v2 = (v0 + v1);
        oclc_store(((v2 * oclc_sigmoid(v2)) * (float8)(v5)), y0 + 100*i0 + i1);
      }
      for (; i1 < 100; ++i1) {
        const float v0 = x0[100*i0 + i1];
        const float v1 = x1[i1];
        const float v2 = (v0 + v1);
        y0[100*i0 + i1] = ((v2 * oclc_sigmoid(v2)) * v5);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_gate_mul(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N) {
  k_gate_mul_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, y0 + y0_at, dim_N, get_group_id(0));
}
