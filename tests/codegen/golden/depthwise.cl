// k_depthwise_conv_relu_min: conv relu min
// nodes     depthwise, relu6.low, relu6
// x0        x
// x1        w
// x2        bias
// y0        y
// axes      image<N out_y<14 out_x<2 out_c<16
// cost      62720*N flops, 25088*N + 640 bytes
// launch    (448*N + 4240) / 4241 groups of 1; 4241 rows x 1 a tile
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
  const long row_end = min((tile) * 4241 + 4241, (long)(448*dim_N));
  for (long row = (tile) * 4241; row < row_end; ++row) {
    const long image = row / (448);
    const long out_y = row / (32) % (14);
    const long out_x = row / (16) % (2);
    const long out_c = row % (16);
    {
      const float v3 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 14] : 0.0f;
      const float v15 = x1[out_c + 16];
      const float v0 = (out_y - 1 >= 0 && 7*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 15] : 0.0f;
      const float v1 = x1[out_c];
      const float v5 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 13] : 0.0f;
      const float v7 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 12] : 0.0f;
      const float v9 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 11] : 0.0f;
      const float v11 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 10] : 0.0f;
      const float v13 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 9] : 0.0f;
      const float v22 = (out_y - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 8] : 0.0f;
      const float v24 = x1[out_c + 32];
      const float v31 = (out_y - 1 >= 0 && 7*out_x <= 6) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 7] : 0.0f;
      const float v33 = (7*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y - 1] : 0.0f;
      const float v34 = x1[out_c + 48];
      const float v36 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y];
      const float v38 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 1];
      const float v40 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 2];
      const float v42 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 3];
      const float v44 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 4];
      const float v46 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 5];
      const float v48 = x1[out_c + 64];
      const float v49 = fma(v36, v48, fma(v33, v34, fma(v5, v24, fma(v3, v15, (v0 * v1)))));
      const float v50 = fma(v38, v48, fma(v36, v34, fma(v7, v24, fma(v5, v15, (v3 * v1)))));
      const float v51 = fma(v40, v48, fma(v38, v34, fma(v9, v24, fma(v7, v15, (v5 * v1)))));
      const float v52 = fma(v42, v48, fma(v40, v34, fma(v11, v24, fma(v9, v15, (v7 * v1)))));
      const float v53 = fma(v44, v48, fma(v42, v34, fma(v13, v24, fma(v11, v15, (v9 * v1)))));
      const float v54 = fma(v46, v48, fma(v44, v34, fma(v22, v24, fma(v13, v15, (v11 * v1)))));
      const float v55 = x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 6];
      const float v56 = fma(v55, v48, fma(v46, v34, fma(v31, v24, fma(v22, v15, (v13 * v1)))));
      const float v57 = x1[out_c + 80];
      const float v64 = (7*out_x <= 6) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 7] : 0.0f;
      const float v66 = (out_y <= 12 && 7*out_x - 1 >= 0) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 13] : 0.0f;
      const float v67 = x1[out_c + 96];
      const float v69 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 14] : 0.0f;
      const float v71 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 15] : 0.0f;
      const float v73 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 16] : 0.0f;
      const float v75 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 17] : 0.0f;
      const float v77 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 18] : 0.0f;
      const float v79 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 19] : 0.0f;
      const float v81 = x1[out_c + 112];
      const float v88 = (out_y <= 12) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 20] : 0.0f;
      const float v90 = x1[out_c + 128];
      const float v91 = fma(v71, v90, fma(v69, v81, fma(v66, v67, fma(v38, v57, v49))));
      const float v92 = fma(v73, v90, fma(v71, v81, fma(v69, v67, fma(v40, v57, v50))));
      const float v93 = fma(v75, v90, fma(v73, v81, fma(v71, v67, fma(v42, v57, v51))));
      const float v94 = fma(v77, v90, fma(v75, v81, fma(v73, v67, fma(v44, v57, v52))));
      const float v95 = fma(v79, v90, fma(v77, v81, fma(v75, v67, fma(v46, v57, v53))));
      const float v96 = fma(v88, v90, fma(v79, v81, fma(v77, v67, fma(v55, v57, v54))));
      const float v97 = (out_y <= 12 && 7*out_x <= 6) ? x0[3136*image + 196*out_c + 7*out_x + 14*out_y + 21] : 0.0f;
      const float v98 = fma(v97, v90, fma(v88, v81, fma(v79, v67, fma(v64, v57, v56))));
      const float v99 = x2[out_c];
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y] = oclc_min(oclc_relu((v91 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 1] = oclc_min(oclc_relu((v92 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 2] = oclc_min(oclc_relu((v93 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 3] = oclc_min(oclc_relu((v94 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 4] = oclc_min(oclc_relu((v95 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 5] = oclc_min(oclc_relu((v96 + v99)), 6.0f);
      y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 6] = oclc_min(oclc_relu((v98 + v99)), 6.0f);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_depthwise_conv_relu_min(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N) {
  k_depthwise_conv_relu_min_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, y0 + y0_at, dim_N, get_group_id(0));
}
