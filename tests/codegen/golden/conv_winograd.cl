// k_conv_store: store
// nodes     conv
// x0        x
// y0        y
// axes      i2_i3<196 i1<8
// cost      0 flops, 12544 bytes
// launch    1 groups of 1; 46875 rows x 1 a tile
void k_conv_store_tile(__global const float* x0, __global float* y0, const int tile) {
  const int row_end = min((tile) * 46875 + 46875, (int)(1568));
  for (int row = (tile) * 46875; row < row_end; ++row) {
    const int i2_i3 = row / (8);
    const int i1 = row % (8);
    {
      const float v0 = x0[196*i1 + i2_i3];
      y0[i1 + 8*i2_i3] = v0;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_store(__global const float* x0, const long x0_at, __global float* y0, const long y0_at) {
  k_conv_store_tile(x0 + x0_at, y0 + y0_at, get_group_id(0));
}

// k_conv_conv_relu: conv relu
// nodes     conv, relu
// x0        conv
// x1        w
// x2        bias
// y0        y
// axes      image<1 out_y<14 out_x<14 out_c<16; sums over tap_y<3 tap_x<3 in_c<8
// cost      454720 flops, 23488 bytes
// launch    4 groups of 1; template contraction_winograd_cpu, F(4x4, 3x3), 4 tiles of the image by 1 panels a group, register tile 4 x 16
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
void k_conv_conv_relu_tile(__global const float* x0, __global const float* x2, __global float* y0, __global const float* weights, __global const float* zero, const int tile, __local float* block) {
  // All tiles of the image with the same panels one after another: a core brings them from memory once, and others theirs.
  const int first_tile = tile % 4 * 4;
  const int first_panel = tile / 4;
  const int panel_end = min(1, first_panel + 1);
  const int tile_count = min(4, 16 - first_tile);
  __local float* restrict products = block + 3456;
  for (int r = 0; r < tile_count; ++r) {
    const int t = first_tile + r;
    const int image = t / 16;
    const int top = t % 16 / 4 * 4;
    const int left = t % 4 * 4;
    const __global float* origin = x0 + (-120) + top * 112 + left * 8;
    const __global float* p[6][6];
    for (int i = 0; i < 6; ++i) {
      const int inside = top + i >= 1 && top + i <= 14;
      for (int j = 0; j < 6; ++j)
        p[i][j] = inside && left + j >= 1 && left + j <= 14 ? origin + (i * 112 + j * 8) : zero;
    }
    __local float* restrict v = block + r * 24;
    {
      float8 d[6][6];
      #pragma unroll
      for (int j = 0; j < 6; ++j) {
        float8 x[6];
        #pragma unroll
        for (int i = 0; i < 6; ++i) x[i] = vload8(0, p[i][j]);
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
        for (int j = 0; j < 6; ++j) oclc_store(y[j], v + (i * 6 + j) * 96);
      }
    }
  }
  // Surplus rows of the last register tile are multiplied as well: what another kernel left there may be slow, as denormal numbers.
  for (int r = tile_count; r % 4 != 0; ++r)
    for (int point = 0; point < 36; ++point)
      oclc_store((float8)(0.0f), block + (point * 4 + r) * 24);
  for (int panel = first_panel; panel < panel_end; ++panel) {
    const __global float* w = weights + (size_t)panel * 4608;
    for (int point = 0; point < 36; ++point, w += 128) {
      for (int r0 = 0; r0 < tile_count; r0 += 4) {
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
        const __local float* p = block + (point * 4 + r0) * 24;
        const int k_end = 8;
        oclc_terms(acc, 4, 2, p[i * 24], p[i * 24 + 1], w, 16, k_end);
        if (oclc_optimized) for (int k = 0; k < k_end; ++k) {
            float8 x[2];
            #pragma unroll
            for (int j = 0; j < 2; ++j) x[j] = vload8(0, w + k * 16 + j * 8);
            oclc_prefetch_l2(w + 128 + r0 / 4 * 128 + k * 16);
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float8 s = p[i * 24 + k];
              #pragma unroll
              for (int j = 0; j < 2; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
          }
        __local float* restrict q = products + (point * 4 + r0) * 16;
        #pragma unroll
        for (int i = 0; i < 4; ++i)
          #pragma unroll
          for (int j = 0; j < 2; ++j) oclc_store(acc[i][j], q + i * 16 + j * 8);
      }
    }
    for (int r = 0; r < tile_count; ++r) {
      const int t = first_tile + r;
      const int image = t / 16;
      const int top = t % 16 / 4 * 4;
      const int left = t % 4 * 4;
      for (int j = 0; j < 2; ++j) {
        const int n = panel * 16 + j * 8;
        const __local float* q = products + r * 16 + j * 8;
        float8 d[4][6];
        #pragma unroll
        for (int x = 0; x < 6; ++x) {
          float8 s[6];
          #pragma unroll
          for (int i = 0; i < 6; ++i) s[i] = vload8(0, q + (i * 6 + x) * 64);
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
              float lanes[8];
              oclc_store(v, lanes);
              for (int l = 0; l < 8 && n + l < 16; ++l) {
                const int out_c = n + l;
                const float v4 = x2[out_c];
                y0[m + 196*out_c] = oclc_relu((lanes[l] + v4));
              }
            }
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_conv_relu(__global const float* x0, const long x0_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, __global const float* weights, const long weights_at, __global const float* zero, const long zero_at) {
  __local float block[5760];
  k_conv_conv_relu_tile(x0 + x0_at, x2 + x2_at, y0 + y0_at, weights + weights_at, zero + zero_at, (int)get_group_id(0), block);
}
