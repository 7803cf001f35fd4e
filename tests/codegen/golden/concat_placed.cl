// k_left_relu: relu
// nodes     left
// x0        a
// y0        y
// axes      i0<N i1_i2<80
// cost      80*N flops, 640*N bytes
// launch    (N + 584) / 585 groups of 1; 585 rows x 80 a tile
#ifndef OCLC_HAVE_OCLC_DOUBLE
#define OCLC_HAVE_OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

#endif
#ifndef OCLC_HAVE_OCLC_SIGNED
#define OCLC_HAVE_OCLC_SIGNED
#define OCLC_SIGNED(F) F(char) F(short) F(int) F(long) F(int4) F(int8) F(int16)
#define OCLC_UNSIGNED(F) F(uchar) F(ushort) F(uint) F(ulong) F(uint4) F(uint8) F(uint16)

#endif
#ifndef OCLC_HAVE_oclc_relu
#define OCLC_HAVE_oclc_relu
// max(a, 0); NaN stays.
#define OCLC_RELU(T) \
  T __attribute__((overloadable)) oclc_relu(T a) { return a < 0 ? (T)(0) : a; }
OCLC_FLOATS(OCLC_RELU) OCLC_DOUBLE(OCLC_RELU) OCLC_SIGNED(OCLC_RELU) OCLC_UNSIGNED(OCLC_RELU)
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
void k_left_relu_tile(__global const float* x0, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 585 + 585, (int)((int)dim_N));
  for (int row = (tile) * 585; row < row_end; ++row) {
    const int i0 = row;
    {
      for (int i1_i2 = 0; i1_i2 < 80; i1_i2 += 8) {
        const float8 v0 = vload8(0, x0 + 80*i0 + i1_i2);
        oclc_store(oclc_relu(v0), y0 + 120*i0 + i1_i2);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_left_relu(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_left_relu_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}

// k_right_tanh: tanh
// nodes     right
// x0        b
// y0        y
// axes      i0<N i1_i2<40
// cost      600*N flops, 320*N bytes
// launch    (N + 988) / 989 groups of 1; 989 rows x 40 a tile
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
#ifndef OCLC_HAVE_oclc_tanh
#define OCLC_HAVE_oclc_tanh
// For |a| <= 0.55: a + a^3 p(a^2), p a minimax polynomial; else 1 - 2 / (e^(2|a|) + 1) with the sign of a.
#define OCLC_TANH(T) \
  T __attribute__((overloadable)) oclc_tanh(T a) { \
    const T s = a * a; \
    T p = fma((T)(-6.28246693e-3f), s, (T)(2.10777540e-2f)); \
    p = fma(p, s, (T)(-5.38538583e-2f)); \
    p = fma(p, s, (T)(1.33326024e-1f)); \
    p = fma(p, s, (T)(-3.33333194e-1f)); \
    const T near = fma(p * s, a, a); \
    const T most = fabs(a) < 10 ? fabs(a) : (T)(10); \
    const T far = copysign(1 - 2 / (oclc_exp_times(2 * most, (T)(12583039.0f)) + 1), a); \
    return fabs(a) > 0.55f ? far : near; \
  }
OCLC_FLOATS(OCLC_TANH)
#define OCLC_TANH_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_tanh(T a) { return tanh(a); }
OCLC_DOUBLE(OCLC_TANH_DOUBLE)
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
void k_right_tanh_tile(__global const float* x0, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 989 + 989, (int)((int)dim_N));
  for (int row = (tile) * 989; row < row_end; ++row) {
    const int i0 = row;
    {
      for (int i1_i2 = 0; i1_i2 < 40; i1_i2 += 8) {
        const float8 v0 = vload8(0, x0 + 40*i0 + i1_i2);
        oclc_store(oclc_tanh(v0), y0 + 120*i0 + i1_i2 + 80);
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_right_tanh(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_right_tanh_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}

// k_pool_max_pool: max_pool
// nodes     pool
// x0        y
// y0        y
// axes      image<N out_x<5 channel<12; sums over tap_x<2
// cost      120*N flops, 720*N bytes
// launch    (6*N + 3124) / 3125 groups of 1; 31250 rows x 1 a tile
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
void k_pool_max_pool_tile(__global const float* x0, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 31250 + 31250, (int)(60*(int)dim_N));
  for (int row = (tile) * 31250; row < row_end; ++row) {
    const int image = row / (60);
    const int out_x = row / (12) % (5);
    const int channel = row % (12);
    {
      float s0 = -INFINITY;
      for (int tap_x = 0; tap_x < 2; ++tap_x) {
        const float v0 = x0[10*channel + 120*image + 2*out_x + tap_x];
        s0 = oclc_max(s0, v0);
      }
      y0[5*channel + 60*image + out_x] = s0;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_pool_max_pool(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_pool_max_pool_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}
