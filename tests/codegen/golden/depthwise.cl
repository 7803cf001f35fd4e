// k_depthwise_conv_relu_min: conv relu min
// nodes     depthwise, relu6.low, relu6
// x0        x
// x1        w
// x2        bias
// y0        y
// axes      image<N channel<16 out_y<14 out_x<14; sums over tap_y<3 tap_x<3
// cost      62720*N flops, 25088*N + 640 bytes
// launch    (16*N + 150) / 151 groups of 1; template window_planes_cpu, 151 planes a group, 16 rows at a time
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
#ifndef OCLC_HAVE_oclc_min
#define OCLC_HAVE_oclc_min
// The smaller; NaN if either is. One instruction where b is a constant.
#define OCLC_MIN(T) \
  T __attribute__((overloadable)) oclc_min(T a, T b) { \
    const T smaller = b < a ? b : a; \
    return b != b ? b : smaller; \
  }
OCLC_FLOATS(OCLC_MIN) OCLC_DOUBLE(OCLC_MIN)
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
void k_depthwise_conv_relu_min_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global float* y0, const long dim_N, const int tile, __local float* rows) {
  for (int i = 0; i < 288; ++i) rows[i] = 0.0f;
  const int plane_end = min((int)((16*(int)dim_N)), (tile + 1) * 151);
  for (int plane = tile * 151; plane < plane_end; ++plane) {
    const int image = plane / 16;
    const int channel = plane % 16;
    const __global float* src_plane = x0 + 196*channel + 3136*image - 15;
    const __global float* w = x1 + 9*channel;
    for (int r = 0; r < 18; ++r) {
      const int y = r;
      __local float* restrict dst = rows + r * 16;
      if (y < 1 || y > 14) {
        for (int i = 0; i < 16; ++i) dst[i] = 0.0f;
        continue;
      }
      const __global float* src = src_plane + y * 14;
      {
        int x = 1;
        for (; x + 8 <= 15; x += 8) oclc_store(vload8(0, src + x), dst + x);
        if (x < 15) oclc_store(vload8(0, src + 7), dst + 7);
      }
    }
    for (int first = 0; first < 14; first += 4) {
      for (int left = 0; left < 14; left += 8) {
        const int ox = min(left, 6);
        float8 acc[4];
        #pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] = 0.0f;
        // Behind a plane lies the next one.
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int y = (first + 56) + i;
          const __global float* src = src_plane + y * 14;
          oclc_prefetch(src + ox);
        }
        #pragma unroll
        for (int ky = 0; ky < 3; ++ky) {
          #pragma unroll
          for (int kx = 0; kx < 3; ++kx) {
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float8 x = vload8(0, rows + (((first + i) + ky)) * 16 + kx + ox);
              acc[i] = fma(x, w[ky * 3 + kx], acc[i]);
            }
          }
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int oy = first + i;
          if (oy >= 14) break;
          float8 v = acc[i];
          {
            const int out_y = oy, out_x = ox;
            const float v4 = x2[channel];
            oclc_store(oclc_min(oclc_relu((v + (float8)v4)), (float8)(6.0f)), y0 + 196*channel + 3136*image + out_x + 14*out_y);
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_depthwise_conv_relu_min(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N) {
  __local float rows[288];
  k_depthwise_conv_relu_min_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, y0 + y0_at, dim_N, (int)get_group_id(0), rows);
}
