// k_depthwise_store: store
// nodes     depthwise
// x0        x
// y0        y
// axes      i0<N i2_i3<196 i1<16
// cost      0 flops, 25088*N bytes
// launch    (3136*N + 46874) / 46875 groups of 1; 46875 rows x 1 a tile
void k_depthwise_store_tile(__global const float* x0, __global float* y0, const long dim_N, const int tile) {
  const int row_end = min((tile) * 46875 + 46875, (int)(3136*(int)dim_N));
  for (int row = (tile) * 46875; row < row_end; ++row) {
    const int i0 = row / (3136);
    const int i2_i3 = row / (16) % (196);
    const int i1 = row % (16);
    {
      const float v0 = x0[3136*i0 + 196*i1 + i2_i3];
      y0[3136*i0 + i1 + 16*i2_i3] = v0;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_depthwise_store(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_depthwise_store_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}

// k_depthwise_conv_relu_min: conv relu min
// nodes     depthwise, relu6.low, relu6
// x0        depthwise
// x1        w
// x2        bias
// y0        y
// axes      image<N out_y<14 out_x<2 out_c<16
// cost      62720*N flops, 25088*N + 640 bytes
// launch    (28*N + 264) / 265 groups of 1; 265 rows x 16 a tile
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
void k_depthwise_conv_relu_min_tile(__global const float* x0, __global const float* x1, __global const float* x2, __global float* y0, const long dim_N, __global const float* outside0, const int tile) {
  const int row_end = min((tile) * 265 + 265, (int)(28*(int)dim_N));
  for (int row = (tile) * 265; row < row_end; ++row) {
    const int image = row / (28);
    const int out_y = row / (2) % (14);
    const int out_x = row % (2);
    {
      const __global float* p3 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 224 : outside0;
      const __global float* p0 = (out_y - 1 >= 0 && 7*out_x - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 240 : outside0;
      const __global float* p5 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 208 : outside0;
      const __global float* p7 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 192 : outside0;
      const __global float* p9 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 176 : outside0;
      const __global float* p11 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 160 : outside0;
      const __global float* p13 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 144 : outside0;
      const __global float* p22 = (out_y - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 128 : outside0;
      const __global float* p31 = (out_y - 1 >= 0 && 7*out_x <= 6) ? x0 + 3136*image + 112*out_x + 224*out_y - 112 : outside0;
      const __global float* p33 = (7*out_x - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y - 16 : outside0;
      const __global float* p64 = (7*out_x <= 6) ? x0 + 3136*image + 112*out_x + 224*out_y + 112 : outside0;
      const __global float* p66 = (out_y <= 12 && 7*out_x - 1 >= 0) ? x0 + 3136*image + 112*out_x + 224*out_y + 208 : outside0;
      const __global float* p69 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 224 : outside0;
      const __global float* p71 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 240 : outside0;
      const __global float* p73 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 256 : outside0;
      const __global float* p75 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 272 : outside0;
      const __global float* p77 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 288 : outside0;
      const __global float* p79 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 304 : outside0;
      const __global float* p88 = (out_y <= 12) ? x0 + 3136*image + 112*out_x + 224*out_y + 320 : outside0;
      const __global float* p97 = (out_y <= 12 && 7*out_x <= 6) ? x0 + 3136*image + 112*out_x + 224*out_y + 336 : outside0;
      for (int out_c = 0; out_c < 16; out_c += 8) {
        const float8 v3 = vload8(0, p3 + out_c);
        const float8 v15 = vload8(0, x1 + out_c + 16);
        const float8 v0 = vload8(0, p0 + out_c);
        const float8 v1 = vload8(0, x1 + out_c);
        const float8 v5 = vload8(0, p5 + out_c);
        const float8 v7 = vload8(0, p7 + out_c);
        const float8 v9 = vload8(0, p9 + out_c);
        const float8 v11 = vload8(0, p11 + out_c);
        const float8 v13 = vload8(0, p13 + out_c);
        const float8 v22 = vload8(0, p22 + out_c);
        const float8 v24 = vload8(0, x1 + out_c + 32);
        const float8 v31 = vload8(0, p31 + out_c);
        const float8 v33 = vload8(0, p33 + out_c);
        const float8 v34 = vload8(0, x1 + out_c + 48);
        const float8 v36 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y);
        const float8 v38 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 16);
        const float8 v40 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 32);
        const float8 v42 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 48);
        const float8 v44 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 64);
        const float8 v46 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 80);
        const float8 v48 = vload8(0, x1 + out_c + 64);
        const float8 v49 = fma(v36, v48, fma(v33, v34, fma(v5, v24, fma(v3, v15, (v0 * v1)))));
        const float8 v50 = fma(v38, v48, fma(v36, v34, fma(v7, v24, fma(v5, v15, (v3 * v1)))));
        const float8 v51 = fma(v40, v48, fma(v38, v34, fma(v9, v24, fma(v7, v15, (v5 * v1)))));
        const float8 v52 = fma(v42, v48, fma(v40, v34, fma(v11, v24, fma(v9, v15, (v7 * v1)))));
        const float8 v53 = fma(v44, v48, fma(v42, v34, fma(v13, v24, fma(v11, v15, (v9 * v1)))));
        const float8 v54 = fma(v46, v48, fma(v44, v34, fma(v22, v24, fma(v13, v15, (v11 * v1)))));
        const float8 v55 = vload8(0, x0 + 3136*image + out_c + 112*out_x + 224*out_y + 96);
        const float8 v56 = fma(v55, v48, fma(v46, v34, fma(v31, v24, fma(v22, v15, (v13 * v1)))));
        const float8 v57 = vload8(0, x1 + out_c + 80);
        const float8 v64 = vload8(0, p64 + out_c);
        const float8 v66 = vload8(0, p66 + out_c);
        const float8 v67 = vload8(0, x1 + out_c + 96);
        const float8 v69 = vload8(0, p69 + out_c);
        const float8 v71 = vload8(0, p71 + out_c);
        const float8 v73 = vload8(0, p73 + out_c);
        const float8 v75 = vload8(0, p75 + out_c);
        const float8 v77 = vload8(0, p77 + out_c);
        const float8 v79 = vload8(0, p79 + out_c);
        const float8 v81 = vload8(0, x1 + out_c + 112);
        const float8 v88 = vload8(0, p88 + out_c);
        const float8 v90 = vload8(0, x1 + out_c + 128);
        const float8 v91 = fma(v71, v90, fma(v69, v81, fma(v66, v67, fma(v38, v57, v49))));
        const float8 v92 = fma(v73, v90, fma(v71, v81, fma(v69, v67, fma(v40, v57, v50))));
        const float8 v93 = fma(v75, v90, fma(v73, v81, fma(v71, v67, fma(v42, v57, v51))));
        const float8 v94 = fma(v77, v90, fma(v75, v81, fma(v73, v67, fma(v44, v57, v52))));
        const float8 v95 = fma(v79, v90, fma(v77, v81, fma(v75, v67, fma(v46, v57, v53))));
        const float8 v96 = fma(v88, v90, fma(v79, v81, fma(v77, v67, fma(v55, v57, v54))));
        const float8 v97 = vload8(0, p97 + out_c);
        const float8 v98 = fma(v97, v90, fma(v88, v81, fma(v79, v67, fma(v64, v57, v56))));
        const float8 v99 = vload8(0, x2 + out_c);
        float lanes0[8];
        oclc_store(oclc_min(oclc_relu((v91 + v99)), (float8)(6.0f)), lanes0);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + l * (196)] = lanes0[l];
        float lanes1[8];
        oclc_store(oclc_min(oclc_relu((v92 + v99)), (float8)(6.0f)), lanes1);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 1 + l * (196)] = lanes1[l];
        float lanes2[8];
        oclc_store(oclc_min(oclc_relu((v93 + v99)), (float8)(6.0f)), lanes2);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 2 + l * (196)] = lanes2[l];
        float lanes3[8];
        oclc_store(oclc_min(oclc_relu((v94 + v99)), (float8)(6.0f)), lanes3);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 3 + l * (196)] = lanes3[l];
        float lanes4[8];
        oclc_store(oclc_min(oclc_relu((v95 + v99)), (float8)(6.0f)), lanes4);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 4 + l * (196)] = lanes4[l];
        float lanes5[8];
        oclc_store(oclc_min(oclc_relu((v96 + v99)), (float8)(6.0f)), lanes5);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 5 + l * (196)] = lanes5[l];
        float lanes6[8];
        oclc_store(oclc_min(oclc_relu((v98 + v99)), (float8)(6.0f)), lanes6);
        for (int l = 0; l < 8; ++l) y0[3136*image + 196*out_c + 7*out_x + 14*out_y + 6 + l * (196)] = lanes6[l];
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_depthwise_conv_relu_min(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global const float* x2, const long x2_at, __global float* y0, const long y0_at, const long dim_N, __global const float* outside0, const long outside0_at) {
  k_depthwise_conv_relu_min_tile(x0 + x0_at, x1 + x1_at, x2 + x2_at, y0 + y0_at, dim_N, outside0 + outside0_at, get_group_id(0));
}
