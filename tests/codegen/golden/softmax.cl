// k_softmax_softmax: softmax add
// nodes     softmax, mask
// x0        x
// x1        mask
// y0        y
// axes      i0<N; sums over r1<1000
// cost      15000*N flops, 4004*N + 4000 bytes
// launch    (N + 19) / 20 groups of 1; 20 rows x 1 a tile, vectors along the row
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
OCLC_STORE(float) OCLC_STORE(int) OCLC_STORE(uint) OCLC_STORE(uchar)
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
#ifndef OCLC_HAVE_oclc_lanes_max
#define OCLC_HAVE_oclc_lanes_max
float __attribute__((overloadable)) oclc_lanes_max(float4 v) { return oclc_max(oclc_max(v.x, v.y), oclc_max(v.z, v.w)); }
float __attribute__((overloadable)) oclc_lanes_max(float8 v) { return oclc_lanes_max(oclc_max(v.lo, v.hi)); }
float __attribute__((overloadable)) oclc_lanes_max(float16 v) { return oclc_lanes_max(oclc_max(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_max(int4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
int __attribute__((overloadable)) oclc_lanes_max(int8 v) { return oclc_lanes_max(max(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_max(int16 v) { return oclc_lanes_max(max(v.lo, v.hi)); }

#endif
void k_softmax_softmax_tile(__global const float* x0, __global const float* x1, __global float* y0, const long dim_N, const long tile) {
  const long row_end = min((tile) * 20 + 20, (long)(dim_N));
  for (long row = (tile) * 20; row < row_end; ++row) {
    const long i0 = row;
    {
      float s0 = -INFINITY;
      float8 s0_lanes = (float8)(-INFINITY);
      {
        for (long r1 = 0; r1 < 1000; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
          const float8 v1 = vload8(0, x1 + r1);
          const float8 v2 = (v0 + v1);
          s0_lanes = oclc_max(s0_lanes, v2);
        }
      }
      s0 = oclc_max(s0, oclc_lanes_max(s0_lanes));
      float s1 = 0.0f;
      float8 s1_lanes = (float8)(0.0f);
      {
        for (long r1 = 0; r1 < 1000; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
          const float8 v1 = vload8(0, x1 + r1);
          const float8 v2 = (v0 + v1);
          const float8 v5 = exp((v2 - (float8)(s0)));
          s1_lanes = s1_lanes + v5;
        }
      }
      s1 = s1 + oclc_lanes_sum(s1_lanes);
      {
        for (long r1 = 0; r1 < 1000; r1 += 8) {
          const float8 v0 = vload8(0, x0 + 1000*i0 + r1);
          const float8 v1 = vload8(0, x1 + r1);
          const float8 v2 = (v0 + v1);
          const float8 v5 = exp((v2 - (float8)(s0)));
          oclc_store((v5 * (float8)((1 / s1))), y0 + 1000*i0 + r1);
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_softmax_softmax(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global float* y0, const long y0_at, const long dim_N) {
  k_softmax_softmax_tile(x0 + x0_at, x1 + x1_at, y0 + y0_at, dim_N, get_group_id(0));
}
