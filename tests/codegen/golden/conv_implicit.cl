// k_stem_conv_add_relu: conv add relu
// nodes     stem, residual, relu
// x0        x
// x1        w
// x2        bias
// x3        skip
// y0        y
// axes      image<N out_y<16 out_x<16 out_c<16; sums over tap_y<3 tap_x<3 in_c<3
// cost      229376*N flops, 45056*N + 1792 bytes
// launch    (((128*N + 2) / 3) + 85) / 86 groups of 1; template contraction_cpu, tile 6 x 16, 86 x 1 tiles a group
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
// Asks for the cache line at p, which may point anywhere. Compilers to an intermediate language know no such hint.
#if defined(__x86_64__) || defined(__aarch64__)
#define oclc_prefetch(p) __builtin_prefetch((const void*)(size_t)(p))
#else
#define oclc_prefetch(p)
#endif
#endif
void k_stem_conv_add_relu_tile(__global const float* x0, __global const float* x2, __global const float* x3, __global float* y0, const long dim_N, __global const float* weights, __global const float* zero, const int tile) {
  const int row_count = (int)(256*dim_N);
  const int g = tile / (((((row_count + 6 - 1) / 6) + 86 - 1) / 86) * 1);
  const int block = tile % (((((row_count + 6 - 1) / 6) + 86 - 1) / 86) * 1);
  const int row_block = 0 ? block % ((((row_count + 6 - 1) / 6) + 86 - 1) / 86) : block / 1;
  const int panel_block = 0 ? block / ((((row_count + 6 - 1) / 6) + 86 - 1) / 86) : block % 1;
  const int panel_end = min(1, (panel_block + 1) * 1);
  const int m_end = min(row_count, (row_block + 1) * (86 * 6));
  for (int panel = panel_block * 1; panel < panel_end; ++panel) {
    for (int m0 = row_block * (86 * 6); m0 < m_end; m0 += 6) {
      // Surplus rows of the last tile repeat row row_count - 1 and are not stored.
      long image_of[6], out_y_of[6], out_x_of[6];
      #pragma unroll
      for (int i = 0; i < 6; ++i) {
        const long r = min(m0 + i, row_count - 1);
        image_of[i] = r / 256;
        out_y_of[i] = (r / 16) % 16;
        out_x_of[i] = r % 16;
      }
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
      const __global float* w = weights + (size_t)g * 432 + (size_t)panel * 432;
      for (int tap = 0; tap < 9; ++tap) {
        const __global float* p[6];
        const int tap_y = tap / 3;
        const int tap_x = tap % 3;
        #pragma unroll
        for (int i = 0; i < 6; ++i) {
          const long image = image_of[i];
          const long out_y = out_y_of[i];
          const long out_x = out_x_of[i];
          p[i] = (2*out_y + tap_y - 1 >= 0 && 2*out_x + tap_x - 1 >= 0) ? x0 + 3072*image + 2*out_x + 64*out_y + tap_x + 32*tap_y - 33 : zero;
        }
        for (int k0 = 0; k0 < 3; k0 += 3) {
          const int k_end = min(3, k0 + 3);
          for (int k = k0; k < k_end; ++k) {
            float8 x[2];
            #pragma unroll
            for (int j = 0; j < 2; ++j) x[j] = vload8(0, w + j * 8);
            #pragma unroll
            for (int j = 0; j < 2; ++j) oclc_prefetch(w + 512 * 16 + j * 8);
            #pragma unroll
            for (int i = 0; i < 6; ++i) {
              const float8 s = p[i][k * 1024];
              #pragma unroll
              for (int j = 0; j < 2; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            w += 16;
          }
          if (0 && (tap + 1) % 9 == 0) {
            #pragma unroll
            for (int i = 0; i < 6; ++i)
              #pragma unroll
              for (int j = 0; j < 2; ++j) out[i][j] += acc[i][j], acc[i][j] = 0.0f;
          }
        }
      }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
      #pragma unroll
      for (int i = 0; i < 6; ++i)
        #pragma unroll
        for (int j = 0; j < 2; ++j) out[i][j] += acc[i][j];
      #pragma unroll 6
      for (int i = 0; i < 6; ++i) {
        const int m = m0 + i;
        if (m >= row_count) break;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int n = panel * 16 + j * 8;
          if (16 % 16 != 0 && n >= 16) break;
          float8 v = out[i][j];
            {
              const long image = m / 256;
              const long out_y = (m / 16) % 16;
              const long out_x = m % 16;
              float lanes[8];
              vstore8(v, 0, lanes);
              for (int l = 0; l < 8 && n + l < 16; ++l) {
                const long out_c = n + l;
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
__kernel void k_stem_conv_add_relu(__global const float* x0, const long x0_at, __global const float* x2, const long x2_at, __global const float* x3, const long x3_at, __global float* y0, const long y0_at, const long dim_N, __global const float* weights, const long weights_at, __global const float* zero, const long zero_at) {
  k_stem_conv_add_relu_tile(x0 + x0_at, x2 + x2_at, x3 + x3_at, y0 + y0_at, dim_N, weights + weights_at, zero + zero_at, (int)get_group_id(0));
}
