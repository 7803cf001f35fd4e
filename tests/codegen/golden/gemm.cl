// k_fc_product_matmul_add_relu: matmul add relu
// nodes     fc.product, fc.bias, relu
// x0        x
// x1        w
// x2        bias
// y0        y
// axes      out_row<N out_col<40; sums over inner<64
// cost      5200*N flops, 416*N + 10400 bytes
// launch    3*((N + 7) / 8) groups of 1; template contraction_cpu, tile 8 x 8, 1 x 2 tiles a group
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
void k_fc_product_matmul_add_relu_tile(__global const float* x0, __global const float* x2, __global float* y0, const long dim_N, __global const float* weights, const int tile) {
  const int row_count = ((int)dim_N);
  const int g = tile / (((((row_count + 7) / 8))) * 3);
  const int block = tile % (((((row_count + 7) / 8))) * 3);
  const int row_block = block % ((((row_count + 7) / 8)));
  const int panel_block = block / ((((row_count + 7) / 8)));
  const int panel_end = min(5, (panel_block + 1) * 2);
  const int m_end = min(row_count, (row_block + 1) * 8);
  for (int panel = panel_block * 2; panel < panel_end; ++panel) {
    for (int m0 = row_block * 8; m0 < m_end; m0 += 8) {
      const __global float* row[8];
      #pragma unroll
      for (int i = 0; i < 8; ++i) { const int r = min(m0 + i, row_count - 1); row[i] = x0 + 64*r; }
      // Sums of a chain, and of the chains before it.
      float8 acc[8][1];
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        acc[i][0] = 0.0f;
      float8 out[8][1];
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        out[i][0] = 0.0f;
      const __global float* w = weights + (size_t)g * 2560 + (size_t)panel * 512;
      const bool meets_first = m0 == row_block * 8;
      const int rows_ahead = meets_first ? 128 : 128;
      const __global float* p[8];
      #pragma unroll
      for (int i = 0; i < 8; ++i) p[i] = row[i];
      // The terms of the register tile, chain by chain.
      const int k_end = 64;
      oclc_terms(acc, 8, 1, p[i][0], p[i][1], w, 8, k_end);
      if (!oclc_optimized) w += k_end * 8;
      if (oclc_optimized)
        for (int k = 0; k < k_end; ++k) {
          float8 x[1];
          x[0] = vload8(0, w);
          oclc_prefetch(w + rows_ahead * 8);
          #pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float8 s = p[i][k];
            acc[i][0] = fma(s, x[0], acc[i][0]);
          }
          w += 8;
        }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        out[i][0] = acc[i][0];
      // The results. Surplus rows of the last tile repeat its last row and are not stored.
      #pragma unroll 8
      for (int i = 0; i < 8; ++i) {
        const int m = m0 + i;
        if (m >= row_count) break;
        const int n = panel * 8;
        float8 v = out[i][0];
        {
          const int out_col = n;
          const float8 v4 = vload8(0, x2 + out_col);
          oclc_store(oclc_relu((v + v4)), y0 + 40*m + out_col);
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_fc_product_matmul_add_relu(__global const float* x0, const long x0_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N, __global const float* weights, const long weights_at) {
  k_fc_product_matmul_add_relu_tile(x0 + x0_at, x2 + x2_at, y0 + y0_at, dim_N, weights + weights_at, (int)get_group_id(0));
}
