// k_stem_conv_add_relu: conv add relu
// nodes     stem, residual, relu
// x0        x
// x1        w
// x2        bias
// x3        skip
// y0        y
// axes      image<N out_y<16 out_x<16 out_c<16; sums over tap_y<3 tap_x<3 in_c<3
// cost      229376*N flops, 45056*N + 1792 bytes
// launch    8*N groups of 1; template contraction_window_cpu, 2 rows of the image a group, register tile 4 x 16
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
#ifndef OCLC_HAVE_oclc_terms
#define OCLC_HAVE_oclc_terms
// Without optimization each vector of a register tile goes through memory for each term. There a function does what the loop behind its call
// would, in the same order: acc[i][j] += the sum over `terms` of a[i] * (vector j of w), AT being a[i] at the first term, NEXT at the
// second, and W_STEP floats from one term of w to the next. Clang leaves functions of the least size to the optimizer even then.
#ifdef OCLC_UNOPTIMIZED
#define OCLC_SUM(W, i, j) float##W s##i##j = sums[(r + i) * vectors + v + j];
#define OCLC_ADD(W, i, j) s##i##j = fma((float##W)a[r + i][t * a_step], x##j, s##i##j);
#define OCLC_KEEP(W, i, j) sums[(r + i) * vectors + v + j] = s##i##j;
#define OCLC_ONE(DO, W) DO(W, 0, 0)
#define OCLC_PAIR(DO, W) DO(W, 0, 0) DO(W, 0, 1)
#define OCLC_EIGHT(DO, W) OCLC_PAIR(DO, W) DO(W, 1, 0) DO(W, 1, 1) DO(W, 2, 0) DO(W, 2, 1) DO(W, 3, 0) DO(W, 3, 1)
#define OCLC_TERMS_BLOCK(BLOCK, VECTORS, W, SW) \
  BLOCK(OCLC_SUM, W) \
  for (long t = 0; t < terms; ++t) { \
    const float##W x0 = *(SW const oclc_floats##W*)(w + t * w_step + v * W); \
    const float##W x1 = VECTORS == 1 ? x0 : *(SW const oclc_floats##W*)(w + t * w_step + (v + 1) * W); \
    BLOCK(OCLC_ADD, W) \
  } \
  BLOCK(OCLC_KEEP, W)
#define OCLC_TERMS(W, SA, SW) \
  static void __attribute__((overloadable, minsize)) oclc_add_terms(float##W* sums, int rows, int vectors, SA const float* const* a, \
                                                                    long a_step, SW const float* w, long w_step, long terms) { \
    for (int v = 0; v < vectors; v += 2) { \
      int r = 0; \
      if (v + 1 < vectors) { \
        for (; r + 3 < rows; r += 4) { OCLC_TERMS_BLOCK(OCLC_EIGHT, 2, W, SW) } \
        for (; r < rows; ++r) { OCLC_TERMS_BLOCK(OCLC_PAIR, 2, W, SW) } \
      } else { \
        for (; r < rows; ++r) { OCLC_TERMS_BLOCK(OCLC_ONE, 1, W, SW) } \
      } \
    } \
  }
#define OCLC_TERMS_OF(W) \
  typedef float##W oclc_floats##W __attribute__((aligned(4))); \
  OCLC_TERMS(W, __global, __global) OCLC_TERMS(W, __global, __local) OCLC_TERMS(W, __local, __global) OCLC_TERMS(W, __local, __local)
OCLC_TERMS_OF(4) OCLC_TERMS_OF(8) OCLC_TERMS_OF(16)
#define oclc_terms(ACC, ROWS, VECTORS, AT, NEXT, W, W_STEP, TERMS) \
  { \
    int i = 0; \
    __typeof__(&(AT)) from[ROWS]; \
    for (; i < ROWS; ++i) from[i] = &(AT); \
    i = 0; \
    oclc_add_terms(&ACC[0][0], ROWS, VECTORS, from, &(NEXT) - &(AT), W, W_STEP, TERMS); \
  }
#else
#define oclc_terms(ACC, ROWS, VECTORS, AT, NEXT, W, W_STEP, TERMS)
#endif

#endif
#ifndef OCLC_HAVE_oclc_optimized
#define OCLC_HAVE_oclc_optimized
// Whether the compiler optimizes: behind a condition that is 0 it generates no code even if it does not.
#ifdef OCLC_UNOPTIMIZED
#define oclc_optimized 0
#else
#define oclc_optimized 1
#endif
#endif
void k_stem_conv_add_relu_tile(__global const float* x0, __global const float* x2, __global const float* x3, __global float* y0, const long dim_N, __global const float* weights, const int tile, __local float* window) {
  const int image = tile / 8;
  const int top = tile % 8 * 2;
  for (int ic = 0; ic < 3; ++ic) {
    for (int wy = 0; wy < 5; ++wy) {
      __local float* restrict dst = window + (ic * 5 + wy) * 33;
      const int y = top * 2 + wy;
      if (y < 1 || y > 32) {
        for (int x = 0; x < 33; ++x) dst[x] = 0.0f;
        continue;
      }
      dst[0] = 0.0f;
      const __global float* src = x0 + (-33) + image * 3072 + ic * 1024 + y * 32;
      for (int x = 1; x < 33; ++x) dst[x] = src[x];
    }
  }
  for (int oy = top; oy < min(16, top + 2); ++oy) {
    for (int left = 0; left < 16; left += 4) {
      // Surplus pixels of the last tile are not stored.
      // Sums of a chain, and of the chains before it.
      float8 acc[4][2];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) acc[i][j] = 0.0f;
      float8 out[4][2];
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) out[i][j] = 0.0f;
      const __global float* w = weights;
      for (int row = 0; row < 9; ++row) {
        const __local float* p = window + (row / 3 * 5 + (oy - top) * 2 + row % 3) * 33 + left * 2;
        oclc_terms(acc, 4, 2, p[i * 2], p[i * 2 + 1], w, 16, 3);
        if (!oclc_optimized) w += 48;
        if (oclc_optimized) for (int kx = 0; kx < 3; ++kx) {
            float8 x[2];
            #pragma unroll
            for (int j = 0; j < 2; ++j) x[j] = vload8(0, w + j * 8);
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float8 s = p[i * 2 + kx];
              #pragma unroll
              for (int j = 0; j < 2; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            w += 16;
          }
      }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) out[i][j] = acc[i][j];
      #pragma unroll 4
      for (int i = 0; i < 4; ++i) {
        const int m = (image * 16 + oy) * 16 + left + i;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int n = j * 8;
          float8 v = out[i][j];
          {
            const int image = m / 256;
            const int out_y = (m / 16) % 16;
            const int out_x = m % 16;
            float lanes[8];
            oclc_store(v, lanes);
            for (int l = 0; l < 8 && n + l < 16; ++l) {
              const int out_c = n + l;
              const float v4 = x2[out_c];
              const float v6 = x3[4096*image + 256*out_c + out_x + 16*out_y];
              y0[4096*image + 256*out_c + out_x + 16*out_y] = oclc_relu(((lanes[l] + v4) + v6));
            }
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_stem_conv_add_relu(__global const float* x0, const long x0_at, __global const float* x2, const long x2_at, __global const float* x3, const long x3_at, __global float* y0, const long y0_at, const long dim_N, __global const float* weights, const long weights_at) {
  __local float window[495];
  k_stem_conv_add_relu_tile(x0 + x0_at, x2 + x2_at, x3 + x3_at, y0 + y0_at, dim_N, weights + weights_at, (int)get_group_id(0), window);
}
