// k_norm_layer_norm: layer_norm add
// nodes     norm, residual
// x0        x
// x1        skip
// x2        scale
// x3        bias
// y0        y
// axes      i0<N; sums over r1<96
// cost      864*N flops, 1152*N + 768 bytes
// launch    (N + 299) / 300 groups of 1; 300 rows x 1 a tile, vectors along the row
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
void k_norm_layer_norm_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global const float* x3, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 300 + 300, (int)((int)dim_N));
  const float v4 = (float)(96);
  for (int row = (tile) * 300; row < row_end; ++row) {
    const int i0 = row;
    {
      float s0 = 0.0f;
      float8 s0_lanes = (float8)(0.0f);
      {
        for (int r1 = 0; r1 < 96; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 96*i0 + r1);
          const float8 v1 = vload8(0, x1 + 96*i0 + r1);
          const float8 v2 = (v0 + v1);
          s0_lanes = s0_lanes + v2;
        }
      }
      s0 = s0 + oclc_lanes_sum(s0_lanes);
      float s1 = 0.0f;
      float8 s1_lanes = (float8)(0.0f);
      {
        for (int r1 = 0; r1 < 96; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 96*i0 + r1);
          const float8 v1 = vload8(0, x1 + 96*i0 + r1);
          const float8 v2 = (v0 + v1);
          const float8 v8 = (v2 - (float8)((s0 / v4)));
          s1_lanes = fma(v8, v8, s1_lanes);
          oclc_prefetch(x0 + 96*i0 + r1 + 1056);
          oclc_prefetch(x1 + 96*i0 + r1 + 1056);
        }
      }
      s1 = s1 + oclc_lanes_sum(s1_lanes);
      {
        for (int r1 = 0; r1 < 96; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 96*i0 + r1);
          const float8 v1 = vload8(0, x1 + 96*i0 + r1);
          const float8 v2 = (v0 + v1);
          const float8 v8 = (v2 - (float8)((s0 / v4)));
          const float8 v15 = vload8(0, x2 + r1);
          const float8 v17 = vload8(0, x3 + r1);
          const float8 v18 = (((v8 * (float8)((1 / sqrt(((s1 / v4) + 1e-05f))))) * v15) + v17);
          oclc_store(v18, y0 + 96*i0 + r1);
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_norm_layer_norm(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global const float* x3, const long x3_at, __global float* y0, const long y0_at, const long dim_N) {
  k_norm_layer_norm_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, x3 + x3_at, y0 + y0_at, dim_N, get_group_id(0));
}
