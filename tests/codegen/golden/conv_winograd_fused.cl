// k_before_conv: conv
// nodes     before
// x0        x
// x1        v
// y0        y
// axes      image<N out_y<14 out_x<14 out_c<16; sums over tap_y<1 tap_x<1 in_c<4
// cost      25088*N flops, 15680*N + 256 bytes
// launch    (((98*N + 2) / 3) + 8) / 9 groups of 1; template contraction_cpu, tile 6 x 16, 9 x 1 tiles a group
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
void k_before_conv_tile(__global const float* x0, __global float* y0, const long dim_N, __global const float* weights, const int tile) {
  const int row_count = (196*(int)dim_N);
  const int g = tile / (((((row_count + 5) / 6) + 8) / 9));
  const int block = tile % (((((row_count + 5) / 6) + 8) / 9));
  const int row_block = block;
  const int panel_block = 0;
  const int panel_end = min(1, (panel_block + 1));
  const int m_end = min(row_count, (row_block + 1) * 54);
  for (int panel = panel_block; panel < panel_end; ++panel) {
    for (int m0 = row_block * 54; m0 < m_end; m0 += 6) {
      int image_of[6], out_y_of[6], out_x_of[6];
      #pragma unroll
      for (int i = 0; i < 6; ++i) {
        const int r = min(m0 + i, row_count - 1);
        image_of[i] = r / 196;
        out_y_of[i] = (r / 14) % 14;
        out_x_of[i] = r % 14;
      }
      const __global float* row[6];
      const int tap_y = 0;
      const int tap_x = 0;
      #pragma unroll
      for (int i = 0; i < 6; ++i) {
        const int image = image_of[i];
        const int out_y = out_y_of[i];
        const int out_x = out_x_of[i];
        row[i] = x0 + 784*image + out_x + 14*out_y;
      }
      // Sums of a chain, and of the chains before it.
      float8 acc[6][2];
      #pragma unroll
      for (int i = 0; i < 6; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) acc[i][j] = 0.0f;
      float8 out[6][2];
      #pragma unroll
      for (int i = 0; i < 6; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) out[i][j] = 0.0f;
      const __global float* w = weights + (size_t)g * 64 + (size_t)panel * 64;
      const __global float* p[6];
      #pragma unroll
      for (int i = 0; i < 6; ++i) p[i] = row[i];
      // The terms of the register tile, chain by chain.
      const int k_end = 4;
      oclc_terms(acc, 6, 2, p[i][0], p[i][196], w, 16, k_end);
      if (!oclc_optimized) w += k_end * 16;
      if (oclc_optimized)
        for (int k = 0; k < k_end; ++k) {
          float8 x[2];
          #pragma unroll
          for (int j = 0; j < 2; ++j) x[j] = vload8(0, w + j * 8);
          #pragma unroll
          for (int i = 0; i < 6; ++i) {
            const float8 s = p[i][k * 196];
            #pragma unroll
            for (int j = 0; j < 2; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
          }
          w += 16;
        }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
      #pragma unroll
      for (int i = 0; i < 6; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) out[i][j] = acc[i][j];
      // The results. Surplus rows of the last tile repeat its last row and are not stored.
      #pragma unroll 6
      for (int i = 0; i < 6; ++i) {
        const int m = m0 + i;
        if (m >= row_count) break;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int n = panel * 16 + j * 8;
          float8 v = out[i][j];
          {
            const int out_c = n;
            oclc_store(v, y0 + 16*m + out_c);
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_before_conv(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N, __global const float* weights, const long weights_at) {
  k_before_conv_tile(x0 + x0_at, y0 + y0_at, dim_N, weights + weights_at, (int)get_group_id(0));
}

// k_conv_conv_relu: conv relu
// nodes     conv, relu
// x0        before
// x1        w
// y0        y
// axes      image<N out_y<14 out_x<14 out_c<20; sums over tap_y<3 tap_x<3 in_c<16
// cost      1132880*N flops, 28224*N + 11520 bytes
// launch    (N + 1) / 2 groups of 1; template contraction_winograd_cpu, F(4x4, 3x3), 32 tiles of the image by 1 panels a group, register tile 4 x 24
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
#ifndef OCLC_HAVE_oclc_prefetch_l2
#define OCLC_HAVE_oclc_prefetch_l2
// The same for the second-level cache: lines of one column fall into one set of the first.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OCLC_UNOPTIMIZED)
#define oclc_prefetch_l2(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#else
#define oclc_prefetch_l2(p)
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
void k_conv_conv_relu_tile(__global const float* x0, __global float* y0, const long dim_N, __global const float* weights, __global const float* zero, const int tile, __local float* block) {
  const int image_count = (int)((int)dim_N);
  // All tiles of the image with the same panels one after another: a core brings them from memory once, and others theirs.
  const int first_tile = tile % ((image_count * 16 + 31) / 32) * 32;
  const int first_panel = tile / ((image_count * 16 + 31) / 32);
  const int panel_end = min(1, first_panel + 1);
  const int tile_count = min(32, image_count * 16 - first_tile);
  __local float* restrict products = block + 36864;
  for (int r = 0; r < tile_count; ++r) {
    const int t = first_tile + r;
    const int image = t / 16;
    const int top = t % 16 / 4 * 4;
    const int left = t % 4 * 4;
    const __global float* origin = x0 + (-240) + image * 3136 + top * 224 + left * 16;
    const __global float* p[6][6];
    for (int i = 0; i < 6; ++i) {
      const int inside = top + i >= 1 && top + i <= 14;
      for (int j = 0; j < 6; ++j)
        p[i][j] = inside && left + j >= 1 && left + j <= 14 ? origin + (i * 224 + j * 16) : zero;
    }
    __local float* restrict v = block + r * 32;
    for (int k = 0; k < 16; k += 8) {
      float8 d[6][6];
      #pragma unroll
      for (int j = 0; j < 6; ++j) {
        float8 x[6];
        #pragma unroll
        for (int i = 0; i < 6; ++i) x[i] = vload8(0, p[i][j] + k);
        const float8 e = fma(x[2], 2.25f, -x[4]), o = 0.75f * fma(x[1], 2.25f, -x[3]);
        const float8 f = fma(x[2], 0.5625f, -x[4]), h = 1.5f * fma(x[1], 0.5625f, -x[3]);
        d[0][j] = fma(x[0], 1.265625f, fma(x[2], -2.8125f, x[4]));
        d[1][j] = o + e;
        d[2][j] = o - e;
        d[3][j] = h + f;
        d[4][j] = h - f;
        d[5][j] = fma(x[1], 1.265625f, fma(x[3], -2.8125f, x[5]));
      }
      #pragma unroll
      for (int i = 0; i < 6; ++i) {
        float8 y[6];
        const float8 e = fma(d[i][2], 2.25f, -d[i][4]), o = 0.75f * fma(d[i][1], 2.25f, -d[i][3]);
        const float8 f = fma(d[i][2], 0.5625f, -d[i][4]), h = 1.5f * fma(d[i][1], 0.5625f, -d[i][3]);
        y[0] = fma(d[i][0], 1.265625f, fma(d[i][2], -2.8125f, d[i][4]));
        y[1] = o + e;
        y[2] = o - e;
        y[3] = h + f;
        y[4] = h - f;
        y[5] = fma(d[i][1], 1.265625f, fma(d[i][3], -2.8125f, d[i][5]));
        #pragma unroll
        for (int j = 0; j < 6; ++j) oclc_store(y[j], v + (i * 6 + j) * 1024 + k);
      }
    }
  }
  // Surplus rows of the last register tile are multiplied as well: what another kernel left there may be slow, as denormal numbers.
  for (int r = tile_count; r % 4 != 0; ++r)
    for (int point = 0; point < 36; ++point)
      for (int k = 0; k < 16; k += 8) oclc_store((float8)(0.0f), block + (point * 32 + r) * 32 + k);
  for (int panel = first_panel; panel < panel_end; ++panel) {
    const __global float* w = weights + (size_t)panel * 13824;
    for (int point = 0; point < 36; ++point, w += 384) {
      for (int r0 = 0; r0 < tile_count; r0 += 4) {
        // Sums of a chain, and of the chains before it.
        float8 acc[4][3];
        #pragma unroll
        for (int i = 0; i < 4; ++i)
          #pragma unroll
          for (int j = 0; j < 3; ++j) acc[i][j] = 0.0f;
        float8 out[4][3];
        #pragma unroll
        for (int i = 0; i < 4; ++i)
          #pragma unroll
          for (int j = 0; j < 3; ++j) out[i][j] = 0.0f;
        const __local float* p = block + (point * 32 + r0) * 32;
        const int k_end = 16;
        oclc_terms(acc, 4, 3, p[i * 32], p[i * 32 + 1], w, 24, k_end);
        if (oclc_optimized) for (int k = 0; k < k_end; ++k) {
            float8 x[3];
            #pragma unroll
            for (int j = 0; j < 3; ++j) x[j] = vload8(0, w + k * 24 + j * 8);
            oclc_prefetch_l2(w + 384 + r0 / 4 * 48 + k * 3);
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float8 s = p[i * 32 + k];
              #pragma unroll
              for (int j = 0; j < 3; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
          }
        __local float* restrict q = products + (point * 32 + r0) * 24;
        #pragma unroll
        for (int i = 0; i < 4; ++i)
          #pragma unroll
          for (int j = 0; j < 3; ++j) oclc_store(acc[i][j], q + i * 24 + j * 8);
      }
    }
    for (int r = 0; r < tile_count; ++r) {
      const int t = first_tile + r;
      const int image = t / 16;
      const int top = t % 16 / 4 * 4;
      const int left = t % 4 * 4;
      for (int j = 0; j < 3; ++j) {
        const int n = panel * 24 + j * 8;
        if (n >= 20) break;
        const __local float* q = products + r * 24 + j * 8;
        float8 d[4][6];
        #pragma unroll
        for (int x = 0; x < 6; ++x) {
          float8 s[6];
          #pragma unroll
          for (int i = 0; i < 6; ++i) s[i] = vload8(0, q + (i * 6 + x) * 768);
          const float8 e = s[1] + s[2], o = s[1] - s[2], f = s[3] + s[4], h = s[3] - s[4];
          d[0][x] = s[0] + e + f;
          d[1][x] = fma(h, 1.5f, 0.75f * o);
          d[2][x] = fma(f, 2.25f, 0.5625f * e);
          d[3][x] = fma(h, 3.375f, fma(o, 0.421875f, s[5]));
        }
        float8 pixels[4][4];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float8 e = d[i][1] + d[i][2], o = d[i][1] - d[i][2], f = d[i][3] + d[i][4], h = d[i][3] - d[i][4];
          pixels[i][0] = d[i][0] + e + f;
          pixels[i][1] = fma(h, 1.5f, 0.75f * o);
          pixels[i][2] = fma(f, 2.25f, 0.5625f * e);
          pixels[i][3] = fma(h, 3.375f, fma(o, 0.421875f, d[i][5]));
        }
        #pragma unroll 4
        for (int i = 0; i < 4; ++i) {
          if (top + i >= 14) break;
          #pragma unroll 4
          for (int x = 0; x < 4; ++x) {
            if (left + x >= 14) break;
            const int m = (image * 14 + top + i) * 14 + left + x;
            float8 v = pixels[i][x];
            {
              const int image = m / 196;
              const int out_y = (m / 14) % 14;
              const int out_x = m % 14;
              float lanes[8];
              oclc_store(v, lanes);
              for (int l = 0; l < 8 && n + l < 20; ++l) {
                const int out_c = n + l;
                y0[3920*image + 196*out_c + out_x + 14*out_y] = oclc_relu(lanes[l]);
              }
            }
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_conv_relu(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N, __global const float* weights, const long weights_at, __global const float* zero, const long zero_at) {
  __local float block[64512];
  k_conv_conv_relu_tile(x0 + x0_at, y0 + y0_at, dim_N, weights + weights_at, zero + zero_at, (int)get_group_id(0), block);
}
