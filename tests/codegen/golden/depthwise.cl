// k_depthwise_conv_relu_min: conv relu min
// nodes     depthwise, relu6.low, relu6
// x0        x
// x1        w
// x2        bias
// y0        y
// axes      image<N out_y<14 out_x<4 out_c<16
// cost      62720*N flops, 26880*N + 640 bytes
// launch    (448*N + 4240) / 4241 groups of 1; 8482 rows x 1 a tile
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
void k_depthwise_conv_relu_min_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global float* y0, const long dim_N, const long tile) {
  const long row_end = min((tile) * 8482 + 8482, (long)(896*dim_N));
  for (long row = (tile) * 8482; row < row_end; ++row) {
    const long image = row / (896);
    const long out_y = row / (64) % (14);
    const long out_x = row / (16) % (4);
    const long out_c = row % (16);
    {
      const float v24 = (out_y <= 12) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 15] : 0.0f;
      const float v25 = x1[out_c + 128];
      const float v21 = (out_y <= 12) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 14] : 0.0f;
      const float v22 = x1[out_c + 112];
      const float v18 = (out_y <= 12 && 4*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 13] : 0.0f;
      const float v19 = x1[out_c + 96];
      const float v15 = x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 1];
      const float v16 = x1[out_c + 80];
      const float v12 = x0[3136*image + 196*out_c + 4*out_x + 14*out_y];
      const float v13 = x1[out_c + 64];
      const float v9 = (4*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 1] : 0.0f;
      const float v10 = x1[out_c + 48];
      const float v6 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 13] : 0.0f;
      const float v7 = x1[out_c + 32];
      const float v3 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 14] : 0.0f;
      const float v4 = x1[out_c + 16];
      const float v0 = (out_y - 1 >= 0 && 4*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 15] : 0.0f;
      const float v1 = x1[out_c];
      const float v14 = fma(v12, v13, fma(v9, v10, fma(v6, v7, fma(v3, v4, (v0 * v1)))));
      const float v26 = fma(v24, v25, fma(v21, v22, fma(v18, v19, fma(v15, v16, v14))));
      const float v27 = x2[out_c];
      y0[3136*image + 196*out_c + 4*out_x + 14*out_y] = oclc_min(oclc_relu((v26 + v27)), 6.0f);
      const float v39 = (out_y <= 12 && 4*out_x <= 11) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 16] : 0.0f;
      const float v35 = (4*out_x <= 11) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 2] : 0.0f;
      const float v31 = (out_y - 1 >= 0 && 4*out_x <= 11) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 12] : 0.0f;
      const float v34 = fma(v15, v13, fma(v12, v10, fma(v31, v7, fma(v6, v4, (v3 * v1)))));
      const float v40 = fma(v39, v25, fma(v24, v22, fma(v21, v19, fma(v35, v16, v34))));
      y0[3136*image + 196*out_c + 4*out_x + 14*out_y + 1] = oclc_min(oclc_relu((v40 + v27)), 6.0f);
      const float v52 = (out_y <= 12 && 4*out_x <= 10) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 17] : 0.0f;
      const float v48 = (4*out_x <= 10) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 3] : 0.0f;
      const float v44 = (out_y - 1 >= 0 && 4*out_x <= 10) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 11] : 0.0f;
      const float v47 = fma(v35, v13, fma(v15, v10, fma(v44, v7, fma(v31, v4, (v6 * v1)))));
      const float v53 = fma(v52, v25, fma(v39, v22, fma(v24, v19, fma(v48, v16, v47))));
      if (4*out_x <= 11) y0[3136*image + 196*out_c + 4*out_x + 14*out_y + 2] = oclc_min(oclc_relu((v53 + v27)), 6.0f);
      const float v65 = (out_y <= 12 && 4*out_x <= 9) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 18] : 0.0f;
      const float v61 = (4*out_x <= 9) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y + 4] : 0.0f;
      const float v57 = (out_y - 1 >= 0 && 4*out_x <= 9) ? x0[3136*image + 196*out_c + 4*out_x + 14*out_y - 10] : 0.0f;
      const float v60 = fma(v48, v13, fma(v35, v10, fma(v57, v7, fma(v44, v4, (v31 * v1)))));
      const float v66 = fma(v65, v25, fma(v52, v22, fma(v39, v19, fma(v61, v16, v60))));
      if (4*out_x <= 10) y0[3136*image + 196*out_c + 4*out_x + 14*out_y + 3] = oclc_min(oclc_relu((v66 + v27)), 6.0f);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_depthwise_conv_relu_min(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N) {
  k_depthwise_conv_relu_min_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, y0 + y0_at, dim_N, get_group_id(0));
}
