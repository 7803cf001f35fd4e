// k_conv_winograd_input: winograd_input
// nodes     conv
// x0        x
// y0        y
// axes      tile_y<7 tile_x<7 channel<8
// cost      25088 flops, 31360 bytes
// launch    1 groups of 1; 4687 rows x 1 a tile
void k_conv_winograd_input_tile(__global const float* x0, __global float* y0, const int tile) {
  const int row_end = min((tile) * 4687 + 4687, (int)(392));
  for (int row = (tile) * 4687; row < row_end; ++row) {
    const int tile_y = row / (56);
    const int tile_x = row / (8) % (7);
    const int channel = row % (8);
    {
      const float v0 = (2*tile_y - 1 >= 0 && 2*tile_x - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y - 15] : 0.0f;
      const float v8 = (2*tile_x - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y + 13] : 0.0f;
      const float v2 = (2*tile_y - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y - 13] : 0.0f;
      const float v10 = x0[196*channel + 2*tile_x + 28*tile_y + 15];
      const float v24 = (v2 - v10);
      y0[channel + 8*tile_x + 56*tile_y] = ((v0 - v8) - v24);
      const float v1 = (2*tile_y - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y - 14] : 0.0f;
      const float v9 = x0[196*channel + 2*tile_x + 28*tile_y + 14];
      const float v20 = (v1 - v9);
      y0[channel + 8*tile_x + 56*tile_y + 392] = (v24 + v20);
      y0[channel + 8*tile_x + 56*tile_y + 784] = (v20 - v24);
      const float v3 = (2*tile_y - 1 >= 0 && 2*tile_x <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y - 12] : 0.0f;
      const float v11 = (2*tile_x <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y + 16] : 0.0f;
      y0[channel + 8*tile_x + 56*tile_y + 1176] = ((v3 - v11) - v20);
      const float v4 = (2*tile_x - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y - 1] : 0.0f;
      const float v6 = x0[196*channel + 2*tile_x + 28*tile_y + 1];
      const float v25 = (v10 + v6);
      y0[channel + 8*tile_x + 56*tile_y + 1568] = ((v8 + v4) - v25);
      const float v5 = x0[196*channel + 2*tile_x + 28*tile_y];
      const float v21 = (v9 + v5);
      y0[channel + 8*tile_x + 56*tile_y + 1960] = (v25 + v21);
      y0[channel + 8*tile_x + 56*tile_y + 2352] = (v21 - v25);
      const float v7 = (2*tile_x <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y + 2] : 0.0f;
      y0[channel + 8*tile_x + 56*tile_y + 2744] = ((v11 + v7) - v21);
      const float v26 = (v6 - v10);
      y0[channel + 8*tile_x + 56*tile_y + 3136] = ((v4 - v8) - v26);
      const float v22 = (v5 - v9);
      y0[channel + 8*tile_x + 56*tile_y + 3528] = (v26 + v22);
      y0[channel + 8*tile_x + 56*tile_y + 3920] = (v22 - v26);
      y0[channel + 8*tile_x + 56*tile_y + 4312] = ((v7 - v11) - v22);
      const float v12 = (2*tile_y <= 11 && 2*tile_x - 1 >= 0) ? x0[196*channel + 2*tile_x + 28*tile_y + 27] : 0.0f;
      const float v14 = (2*tile_y <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y + 29] : 0.0f;
      const float v27 = (v14 - v6);
      y0[channel + 8*tile_x + 56*tile_y + 4704] = ((v12 - v4) - v27);
      const float v13 = (2*tile_y <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y + 28] : 0.0f;
      const float v23 = (v13 - v5);
      y0[channel + 8*tile_x + 56*tile_y + 5096] = (v27 + v23);
      y0[channel + 8*tile_x + 56*tile_y + 5488] = (v23 - v27);
      const float v15 = (2*tile_y <= 11 && 2*tile_x <= 11) ? x0[196*channel + 2*tile_x + 28*tile_y + 30] : 0.0f;
      y0[channel + 8*tile_x + 56*tile_y + 5880] = ((v15 - v7) - v23);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_winograd_input(__global const float* x0, const long x0_at, __global float* y0, const long y0_at) {
  k_conv_winograd_input_tile(x0 + x0_at, y0 + y0_at, get_group_id(0));
}

// k_conv_matmul: matmul
// nodes     conv
// x0        conv
// x1        conv
// y0        y
// axes      batch0<16 out_row<49 out_col<16; sums over inner<8
// cost      200704 flops, 83456 bytes
// launch    16 groups of 1; template contraction_cpu, tile 6 x 16, 9 x 1 tiles a group
void k_conv_matmul_tile(__global const float* x0, __global float* y0, __global const float* weights, const int tile) {
  const int g = tile / (1 * 1);
  const int block = tile % (1 * 1);
  const int row_block = 0 ? block % 1 : block / 1;
  const int panel_block = 0 ? block / 1 : block % 1;
  const int panel_end = min(1, (panel_block + 1) * 1);
  const int m_end = min(49, (row_block + 1) * (9 * 6));
  for (int panel = panel_block * 1; panel < panel_end; ++panel) {
    for (int m0 = row_block * (9 * 6); m0 < m_end; m0 += 6) {
      // Surplus rows of the last tile repeat row 49 - 1 and are not stored.
      const int batch0 = g;
      const __global float* row[6];
      #pragma unroll
      for (int i = 0; i < 6; ++i) { const int r = min(m0 + i, 49 - 1); row[i] = x0 + 392*batch0 + 8*r; }
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
      const __global float* w = weights + (size_t)g * 128 + (size_t)panel * 128;
      for (int tap = 0; tap < 1; ++tap) {
        const __global float* p[6];
        #pragma unroll
        for (int i = 0; i < 6; ++i) p[i] = row[i];
        for (int k0 = 0; k0 < 8; k0 += 8) {
          const int k_end = min(8, k0 + 8);
          for (int k = k0; k < k_end; ++k) {
            float8 x[2];
            #pragma unroll
            for (int j = 0; j < 2; ++j) x[j] = vload8(0, w + j * 8);
            #pragma unroll
            for (int i = 0; i < 6; ++i) {
              const float8 s = p[i][k * 1];
              #pragma unroll
              for (int j = 0; j < 2; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            w += 16;
          }
          if (0 && (tap + 1) % 1 == 0) {
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
        if (m >= 49) break;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int n = panel * 16 + j * 8;
          if (16 % 16 != 0 && n >= 16) break;
          float8 v = out[i][j];
            {
              const int out_col = n;
              vstore8(v, 0, y0 + 784*batch0 + 16*m + out_col);
            }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_matmul(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, __global const float* weights, const long weights_at) {
  k_conv_matmul_tile(x0 + x0_at, y0 + y0_at, weights + weights_at, (int)get_group_id(0));
}

// k_conv_winograd_output_add_relu: winograd_output add reshape relu
// nodes     conv, relu
// x0        conv
// x1        bias
// y0        y
// axes      tile_y<7 tile_x<7 channel<16
// cost      34496 flops, 62784 bytes
// launch    1 groups of 1; 4682 rows x 1 a tile
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
void k_conv_winograd_output_add_relu_tile(__global const float* x0, __global const float* x1, __global float* y0, const int tile) {
  const int row_end = min((tile) * 4682 + 4682, (int)(784));
  for (int row = (tile) * 4682; row < row_end; ++row) {
    const int tile_y = row / (112);
    const int tile_x = row / (16) % (7);
    const int channel = row % (16);
    {
      const float v0 = x0[channel + 16*tile_x + 112*tile_y];
      const float v4 = x0[channel + 16*tile_x + 112*tile_y + 3136];
      const float v8 = x0[channel + 16*tile_x + 112*tile_y + 6272];
      const float v1 = x0[channel + 16*tile_x + 112*tile_y + 784];
      const float v5 = x0[channel + 16*tile_x + 112*tile_y + 3920];
      const float v9 = x0[channel + 16*tile_x + 112*tile_y + 7056];
      const float v22 = (v1 + (v5 + v9));
      const float v2 = x0[channel + 16*tile_x + 112*tile_y + 1568];
      const float v6 = x0[channel + 16*tile_x + 112*tile_y + 4704];
      const float v10 = x0[channel + 16*tile_x + 112*tile_y + 7840];
      const float v26 = (v2 + (v6 + v10));
      const float v40 = x1[channel];
      y0[196*channel + 2*tile_x + 28*tile_y] = oclc_relu((((v0 + (v4 + v8)) + (v22 + v26)) + v40));
      const float v3 = x0[channel + 16*tile_x + 112*tile_y + 2352];
      const float v7 = x0[channel + 16*tile_x + 112*tile_y + 5488];
      const float v11 = x0[channel + 16*tile_x + 112*tile_y + 8624];
      y0[196*channel + 2*tile_x + 28*tile_y + 1] = oclc_relu((((v3 + (v7 + v11)) + (v22 - v26)) + v40));
      const float v12 = x0[channel + 16*tile_x + 112*tile_y + 9408];
      const float v13 = x0[channel + 16*tile_x + 112*tile_y + 10192];
      const float v23 = (v13 + (v5 - v9));
      const float v14 = x0[channel + 16*tile_x + 112*tile_y + 10976];
      const float v27 = (v14 + (v6 - v10));
      y0[196*channel + 2*tile_x + 28*tile_y + 14] = oclc_relu((((v12 + (v4 - v8)) + (v23 + v27)) + v40));
      const float v15 = x0[channel + 16*tile_x + 112*tile_y + 11760];
      y0[196*channel + 2*tile_x + 28*tile_y + 15] = oclc_relu((((v15 + (v7 - v11)) + (v23 - v27)) + v40));
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_winograd_output_add_relu(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global float* y0, const long y0_at) {
  k_conv_winograd_output_add_relu_tile(x0 + x0_at, x1 + x1_at, y0 + y0_at, get_group_id(0));
}
