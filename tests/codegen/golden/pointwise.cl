// k_gate_mul: mul mul add sigmoid
// nodes     gate, swish, bias, swish.sigmoid
// x0        x
// x1        bias
// x2        gate
// y0        y
// axes      i0<N i1<100
// cost      1500*N flops, 804*N + 400 bytes
// launch    (N + 207) / 208 groups of 1; 208 rows x 100 a tile
#ifndef OCLC_HAVE_OCLC_DOUBLE
#define OCLC_HAVE_OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

#endif
#ifndef OCLC_HAVE_oclc_sigmoid
#define OCLC_HAVE_oclc_sigmoid
// 1 / (1 + e^-a), through e^-|a| so that nothing overflows and small results keep their digits.
#define OCLC_SIGMOID(T) \
  T __attribute__((overloadable)) oclc_sigmoid(T a) { \
    const T e = exp(-fabs(a)); \
    return (a < 0 ? e : (T)(1)) / (1 + e); \
  }
OCLC_FLOATS(OCLC_SIGMOID) OCLC_DOUBLE(OCLC_SIGMOID)
#endif
void k_gate_mul_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global float* y0, const long dim_N, const long tile) {
  const long row_end = min((tile) * 208 + 208, (long)(dim_N));
  for (long row = (tile) * 208; row < row_end; ++row) {
    const long i0 = row;
    {
      long i1 = 0;
      const float v5 = x2[i0];
      for (; i1 + 8 <= 100; i1 += 8) {
        const float8 v0 = vload8(0, x0 + 100*i0 + i1);
        const float8 v1 = vload8(0, x1 + i1);
        const float8 v2 = (v0 + v1);
        vstore8(((v2 * oclc_sigmoid(v2)) * (float8)(v5)), 0, y0 + 100*i0 + i1);
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
