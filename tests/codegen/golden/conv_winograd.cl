// k_conv_winograd_input: winograd_input
// nodes     conv
// x0        x
// y0        y
// axes      tile_y<4 tile_x<4 channel<8
// cost      33792 flops, 24704 bytes
// launch    4 groups of 1; 32 rows x 1 a tile
void k_conv_winograd_input_tile(__global const float* x0, __global float* y0, const int tile) {
  const int row_end = min((tile) * 32 + 32, (int)(128));
  for (int row = (tile) * 32; row < row_end; ++row) {
    const int tile_y = row / (32);
    const int tile_x = row / (8) % (4);
    const int channel = row % (8);
    {
      const float v14 = x0[196*channel + 4*tile_x + 56*tile_y + 15];
      const float v2 = (4*tile_y - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y - 13] : 0.0f;
      const float v26 = (4*tile_y <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 43] : 0.0f;
      const float v82 = fma(v14, -2.8125f, ((v2 * 1.265625f) + v26));
      const float v12 = (4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y + 13] : 0.0f;
      const float v0 = (4*tile_y - 1 >= 0 && 4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y - 15] : 0.0f;
      const float v24 = (4*tile_y <= 10 && 4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y + 41] : 0.0f;
      const float v16 = (4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 17] : 0.0f;
      const float v4 = (4*tile_y - 1 >= 0 && 4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y - 11] : 0.0f;
      const float v28 = (4*tile_y <= 10 && 4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 45] : 0.0f;
      const float v118 = fma(v16, -2.8125f, ((v4 * 1.265625f) + v28));
      const float v153 = ((fma(v12, -2.8125f, ((v0 * 1.265625f) + v24)) * 1.265625f) + v118);
      y0[channel + 8*tile_x + 32*tile_y] = fma(v82, -2.8125f, v153);
      const float v156 = ((v82 * 2.25f) - v118);
      const float v15 = (4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 16] : 0.0f;
      const float v3 = (4*tile_y - 1 >= 0 && 4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y - 12] : 0.0f;
      const float v27 = (4*tile_y <= 10 && 4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 44] : 0.0f;
      const float v100 = fma(v15, -2.8125f, ((v3 * 1.265625f) + v27));
      const float v13 = x0[196*channel + 4*tile_x + 56*tile_y + 14];
      const float v1 = (4*tile_y - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y - 14] : 0.0f;
      const float v25 = (4*tile_y <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 42] : 0.0f;
      const float v64 = fma(v13, -2.8125f, ((v1 * 1.265625f) + v25));
      const float v158 = fma(v100, -0.75f, (v64 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 128] = (v156 + v158);
      y0[channel + 8*tile_x + 32*tile_y + 256] = (v158 - v156);
      const float v162 = ((v82 * 0.5625f) - v118);
      const float v164 = fma(v100, -1.5f, (v64 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 384] = (v162 + v164);
      y0[channel + 8*tile_x + 32*tile_y + 512] = (v164 - v162);
      const float v17 = (4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 18] : 0.0f;
      const float v5 = (4*tile_y - 1 >= 0 && 4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y - 10] : 0.0f;
      const float v29 = (4*tile_y <= 10 && 4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 46] : 0.0f;
      const float v168 = ((v64 * 1.265625f) + fma(v17, -2.8125f, ((v5 * 1.265625f) + v29)));
      y0[channel + 8*tile_x + 32*tile_y + 640] = fma(v100, -2.8125f, v168);
      const float v84 = ((v14 * 2.25f) - v26);
      const float v20 = (4*tile_y <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 29] : 0.0f;
      const float v8 = x0[196*channel + 4*tile_x + 56*tile_y + 1];
      const float v86 = fma(v20, -0.75f, (v8 * 1.6875f));
      const float v87 = (v84 + v86);
      const float v43 = ((v12 * 2.25f) - v24);
      const float v18 = (4*tile_y <= 11 && 4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y + 27] : 0.0f;
      const float v6 = (4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y - 1] : 0.0f;
      const float v47 = fma(v18, -0.75f, (v6 * 1.6875f));
      const float v120 = ((v16 * 2.25f) - v28);
      const float v22 = (4*tile_y <= 11 && 4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 31] : 0.0f;
      const float v10 = (4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 3] : 0.0f;
      const float v122 = fma(v22, -0.75f, (v10 * 1.6875f));
      const float v123 = (v120 + v122);
      y0[channel + 8*tile_x + 32*tile_y + 768] = fma(v87, -2.8125f, (((v43 + v47) * 1.265625f) + v123));
      const float v174 = ((v87 * 2.25f) - v123);
      const float v102 = ((v15 * 2.25f) - v27);
      const float v21 = (4*tile_y <= 11 && 4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 30] : 0.0f;
      const float v9 = (4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 2] : 0.0f;
      const float v104 = fma(v21, -0.75f, (v9 * 1.6875f));
      const float v105 = (v102 + v104);
      const float v66 = ((v13 * 2.25f) - v25);
      const float v19 = (4*tile_y <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 28] : 0.0f;
      const float v7 = x0[196*channel + 4*tile_x + 56*tile_y];
      const float v68 = fma(v19, -0.75f, (v7 * 1.6875f));
      const float v69 = (v66 + v68);
      const float v176 = fma(v105, -0.75f, (v69 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 896] = (v174 + v176);
      y0[channel + 8*tile_x + 32*tile_y + 1024] = (v176 - v174);
      const float v180 = ((v87 * 0.5625f) - v123);
      const float v182 = fma(v105, -1.5f, (v69 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 1152] = (v180 + v182);
      y0[channel + 8*tile_x + 32*tile_y + 1280] = (v182 - v180);
      const float v138 = ((v17 * 2.25f) - v29);
      const float v23 = (4*tile_y <= 11 && 4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 32] : 0.0f;
      const float v11 = (4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 4] : 0.0f;
      const float v140 = fma(v23, -0.75f, (v11 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 1408] = fma(v105, -2.8125f, ((v69 * 1.265625f) + (v138 + v140)));
      const float v88 = (v86 - v84);
      const float v124 = (v122 - v120);
      y0[channel + 8*tile_x + 32*tile_y + 1536] = fma(v88, -2.8125f, (((v47 - v43) * 1.265625f) + v124));
      const float v192 = ((v88 * 2.25f) - v124);
      const float v106 = (v104 - v102);
      const float v70 = (v68 - v66);
      const float v194 = fma(v106, -0.75f, (v70 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 1664] = (v192 + v194);
      y0[channel + 8*tile_x + 32*tile_y + 1792] = (v194 - v192);
      const float v198 = ((v88 * 0.5625f) - v124);
      const float v200 = fma(v106, -1.5f, (v70 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 1920] = (v198 + v200);
      y0[channel + 8*tile_x + 32*tile_y + 2048] = (v200 - v198);
      y0[channel + 8*tile_x + 32*tile_y + 2176] = fma(v106, -2.8125f, ((v70 * 1.265625f) + (v140 - v138)));
      const float v90 = ((v14 * 0.5625f) - v26);
      const float v92 = fma(v20, -1.5f, (v8 * 0.84375f));
      const float v93 = (v90 + v92);
      const float v52 = ((v12 * 0.5625f) - v24);
      const float v56 = fma(v18, -1.5f, (v6 * 0.84375f));
      const float v126 = ((v16 * 0.5625f) - v28);
      const float v128 = fma(v22, -1.5f, (v10 * 0.84375f));
      const float v129 = (v126 + v128);
      y0[channel + 8*tile_x + 32*tile_y + 2304] = fma(v93, -2.8125f, (((v52 + v56) * 1.265625f) + v129));
      const float v210 = ((v93 * 2.25f) - v129);
      const float v108 = ((v15 * 0.5625f) - v27);
      const float v110 = fma(v21, -1.5f, (v9 * 0.84375f));
      const float v111 = (v108 + v110);
      const float v72 = ((v13 * 0.5625f) - v25);
      const float v74 = fma(v19, -1.5f, (v7 * 0.84375f));
      const float v75 = (v72 + v74);
      const float v212 = fma(v111, -0.75f, (v75 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 2432] = (v210 + v212);
      y0[channel + 8*tile_x + 32*tile_y + 2560] = (v212 - v210);
      const float v216 = ((v93 * 0.5625f) - v129);
      const float v218 = fma(v111, -1.5f, (v75 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 2688] = (v216 + v218);
      y0[channel + 8*tile_x + 32*tile_y + 2816] = (v218 - v216);
      const float v144 = ((v17 * 0.5625f) - v29);
      const float v146 = fma(v23, -1.5f, (v11 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 2944] = fma(v111, -2.8125f, ((v75 * 1.265625f) + (v144 + v146)));
      const float v94 = (v92 - v90);
      const float v130 = (v128 - v126);
      y0[channel + 8*tile_x + 32*tile_y + 3072] = fma(v94, -2.8125f, (((v56 - v52) * 1.265625f) + v130));
      const float v228 = ((v94 * 2.25f) - v130);
      const float v112 = (v110 - v108);
      const float v76 = (v74 - v72);
      const float v230 = fma(v112, -0.75f, (v76 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 3200] = (v228 + v230);
      y0[channel + 8*tile_x + 32*tile_y + 3328] = (v230 - v228);
      const float v234 = ((v94 * 0.5625f) - v130);
      const float v236 = fma(v112, -1.5f, (v76 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 3456] = (v234 + v236);
      y0[channel + 8*tile_x + 32*tile_y + 3584] = (v236 - v234);
      y0[channel + 8*tile_x + 32*tile_y + 3712] = fma(v112, -2.8125f, ((v76 * 1.265625f) + (v146 - v144)));
      const float v32 = (4*tile_y <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 57] : 0.0f;
      const float v97 = fma(v20, -2.8125f, ((v8 * 1.265625f) + v32));
      const float v30 = (4*tile_y <= 9 && 4*tile_x - 1 >= 0) ? x0[196*channel + 4*tile_x + 56*tile_y + 55] : 0.0f;
      const float v34 = (4*tile_y <= 9 && 4*tile_x <= 10) ? x0[196*channel + 4*tile_x + 56*tile_y + 59] : 0.0f;
      const float v133 = fma(v22, -2.8125f, ((v10 * 1.265625f) + v34));
      const float v243 = ((fma(v18, -2.8125f, ((v6 * 1.265625f) + v30)) * 1.265625f) + v133);
      y0[channel + 8*tile_x + 32*tile_y + 3840] = fma(v97, -2.8125f, v243);
      const float v246 = ((v97 * 2.25f) - v133);
      const float v33 = (4*tile_y <= 9 && 4*tile_x <= 11) ? x0[196*channel + 4*tile_x + 56*tile_y + 58] : 0.0f;
      const float v115 = fma(v21, -2.8125f, ((v9 * 1.265625f) + v33));
      const float v31 = (4*tile_y <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 56] : 0.0f;
      const float v79 = fma(v19, -2.8125f, ((v7 * 1.265625f) + v31));
      const float v248 = fma(v115, -0.75f, (v79 * 1.6875f));
      y0[channel + 8*tile_x + 32*tile_y + 3968] = (v246 + v248);
      y0[channel + 8*tile_x + 32*tile_y + 4096] = (v248 - v246);
      const float v252 = ((v97 * 0.5625f) - v133);
      const float v254 = fma(v115, -1.5f, (v79 * 0.84375f));
      y0[channel + 8*tile_x + 32*tile_y + 4224] = (v252 + v254);
      y0[channel + 8*tile_x + 32*tile_y + 4352] = (v254 - v252);
      const float v35 = (4*tile_y <= 9 && 4*tile_x <= 9) ? x0[196*channel + 4*tile_x + 56*tile_y + 60] : 0.0f;
      const float v258 = ((v79 * 1.265625f) + fma(v23, -2.8125f, ((v11 * 1.265625f) + v35)));
      y0[channel + 8*tile_x + 32*tile_y + 4480] = fma(v115, -2.8125f, v258);
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
// axes      batch0<36 out_row<16 out_col<16; sums over inner<8
// cost      147456 flops, 73728 bytes
// launch    36 groups of 1; template contraction_cpu, tile 6 x 16, 3 x 1 tiles a group
#ifndef OCLC_HAVE_oclc_prefetch
#define OCLC_HAVE_oclc_prefetch
// Asks for the cache line at p, which may point anywhere. Compilers to an intermediate language know no such hint.
#if defined(__x86_64__) || defined(__aarch64__)
#define oclc_prefetch(p) __builtin_prefetch((const void*)(size_t)(p))
#else
#define oclc_prefetch(p)
#endif
#endif
void k_conv_matmul_tile(__global const float* x0, __global float* y0, __global const float* weights, const int tile) {
  const int g = tile / (1 * 1);
  const int block = tile % (1 * 1);
  const int row_block = 0 ? block % 1 : block / 1;
  const int panel_block = 0 ? block / 1 : block % 1;
  const int panel_end = min(1, (panel_block + 1) * 1);
  const int m_end = min(16, (row_block + 1) * (3 * 6));
  for (int panel = panel_block * 1; panel < panel_end; ++panel) {
    for (int m0 = row_block * (3 * 6); m0 < m_end; m0 += 6) {
      // Surplus rows of the last tile repeat row 16 - 1 and are not stored.
      const int batch0 = g;
      const __global float* row[6];
      #pragma unroll
      for (int i = 0; i < 6; ++i) { const int r = min(m0 + i, 16 - 1); row[i] = x0 + 128*batch0 + 8*r; }
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
            for (int j = 0; j < 2; ++j) oclc_prefetch(w + 512 * 16 + j * 8);
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
        if (m >= 16) break;
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int n = panel * 16 + j * 8;
          if (16 % 16 != 0 && n >= 16) break;
          float8 v = out[i][j];
            {
              const int out_col = n;
              vstore8(v, 0, y0 + 256*batch0 + 16*m + out_col);
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

// k_conv_winograd_output_add_relu: winograd_output add reshape relu reshape reshape reshape reshape reshape reshape reshape reshape
// nodes     conv, relu
// x0        conv
// x1        bias
// y0        y
// axes      tile_y<4 tile_x<4 channel<16
// cost      52352 flops, 53312 bytes
// launch    4 groups of 1; 64 rows x 1 a tile
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
  const int row_end = min((tile) * 64 + 64, (int)(256));
  for (int row = (tile) * 64; row < row_end; ++row) {
    const int tile_y = row / (64);
    const int tile_x = row / (16) % (4);
    const int channel = row % (16);
    {
      const float v0 = x0[channel + 16*tile_x + 64*tile_y];
      const float v6 = x0[channel + 16*tile_x + 64*tile_y + 1536];
      const float v12 = x0[channel + 16*tile_x + 64*tile_y + 3072];
      const float v36 = (v6 + v12);
      const float v18 = x0[channel + 16*tile_x + 64*tile_y + 4608];
      const float v24 = x0[channel + 16*tile_x + 64*tile_y + 6144];
      const float v38 = (v18 + v24);
      const float v1 = x0[channel + 16*tile_x + 64*tile_y + 256];
      const float v7 = x0[channel + 16*tile_x + 64*tile_y + 1792];
      const float v13 = x0[channel + 16*tile_x + 64*tile_y + 3328];
      const float v54 = (v7 + v13);
      const float v19 = x0[channel + 16*tile_x + 64*tile_y + 4864];
      const float v25 = x0[channel + 16*tile_x + 64*tile_y + 6400];
      const float v56 = (v19 + v25);
      const float v59 = ((v1 + v54) + v56);
      const float v2 = x0[channel + 16*tile_x + 64*tile_y + 512];
      const float v8 = x0[channel + 16*tile_x + 64*tile_y + 2048];
      const float v14 = x0[channel + 16*tile_x + 64*tile_y + 3584];
      const float v66 = (v8 + v14);
      const float v20 = x0[channel + 16*tile_x + 64*tile_y + 5120];
      const float v26 = x0[channel + 16*tile_x + 64*tile_y + 6656];
      const float v68 = (v20 + v26);
      const float v71 = ((v2 + v66) + v68);
      const float v114 = (v59 + v71);
      const float v3 = x0[channel + 16*tile_x + 64*tile_y + 768];
      const float v9 = x0[channel + 16*tile_x + 64*tile_y + 2304];
      const float v15 = x0[channel + 16*tile_x + 64*tile_y + 3840];
      const float v78 = (v9 + v15);
      const float v21 = x0[channel + 16*tile_x + 64*tile_y + 5376];
      const float v27 = x0[channel + 16*tile_x + 64*tile_y + 6912];
      const float v80 = (v21 + v27);
      const float v83 = ((v3 + v78) + v80);
      const float v4 = x0[channel + 16*tile_x + 64*tile_y + 1024];
      const float v10 = x0[channel + 16*tile_x + 64*tile_y + 2560];
      const float v16 = x0[channel + 16*tile_x + 64*tile_y + 4096];
      const float v90 = (v10 + v16);
      const float v22 = x0[channel + 16*tile_x + 64*tile_y + 5632];
      const float v28 = x0[channel + 16*tile_x + 64*tile_y + 7168];
      const float v92 = (v22 + v28);
      const float v95 = ((v4 + v90) + v92);
      const float v116 = (v83 + v95);
      const float v162 = x1[channel];
      y0[196*channel + 4*tile_x + 56*tile_y] = oclc_relu((((((v0 + v36) + v38) + v114) + v116) + v162));
      const float v117 = (v83 - v95);
      const float v115 = (v59 - v71);
      y0[196*channel + 4*tile_x + 56*tile_y + 1] = oclc_relu((fma(v117, 1.5f, (v115 * 0.75f)) + v162));
      const float v167 = (4*tile_x <= 11) ? x1[channel] : 0.0f;
      if (4*tile_x <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 2] = oclc_relu((fma(v116, 2.25f, (v114 * 0.5625f)) + v167));
      const float v5 = x0[channel + 16*tile_x + 64*tile_y + 1280];
      const float v11 = x0[channel + 16*tile_x + 64*tile_y + 2816];
      const float v17 = x0[channel + 16*tile_x + 64*tile_y + 4352];
      const float v102 = (v11 + v17);
      const float v23 = x0[channel + 16*tile_x + 64*tile_y + 5888];
      const float v29 = x0[channel + 16*tile_x + 64*tile_y + 7424];
      const float v104 = (v23 + v29);
      const float v125 = fma(v117, 3.375f, fma(v115, 0.421875f, ((v5 + v102) + v104)));
      const float v170 = (4*tile_x <= 10) ? x1[channel] : 0.0f;
      if (4*tile_x <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 3] = oclc_relu((v125 + v170));
      const float v39 = (v18 - v24);
      const float v37 = (v6 - v12);
      const float v57 = (v19 - v25);
      const float v55 = (v7 - v13);
      const float v61 = fma(v57, 1.5f, (v55 * 0.75f));
      const float v69 = (v20 - v26);
      const float v67 = (v8 - v14);
      const float v73 = fma(v69, 1.5f, (v67 * 0.75f));
      const float v126 = (v61 + v73);
      const float v81 = (v21 - v27);
      const float v79 = (v9 - v15);
      const float v85 = fma(v81, 1.5f, (v79 * 0.75f));
      const float v93 = (v22 - v28);
      const float v91 = (v10 - v16);
      const float v97 = fma(v93, 1.5f, (v91 * 0.75f));
      const float v128 = (v85 + v97);
      const float v174 = oclc_relu((((fma(v39, 1.5f, (v37 * 0.75f)) + v126) + v128) + v162));
      y0[196*channel + 4*tile_x + 56*tile_y + 14] = v174;
      const float v129 = (v85 - v97);
      const float v127 = (v61 - v73);
      y0[196*channel + 4*tile_x + 56*tile_y + 15] = oclc_relu((fma(v129, 1.5f, (v127 * 0.75f)) + v162));
      if (4*tile_x <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 16] = oclc_relu((fma(v128, 2.25f, (v126 * 0.5625f)) + v167));
      const float v105 = (v23 - v29);
      const float v103 = (v11 - v17);
      const float v137 = fma(v129, 3.375f, fma(v127, 0.421875f, fma(v105, 1.5f, (v103 * 0.75f))));
      if (4*tile_x <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 17] = oclc_relu((v137 + v170));
      const float v63 = fma(v56, 2.25f, (v54 * 0.5625f));
      const float v75 = fma(v68, 2.25f, (v66 * 0.5625f));
      const float v138 = (v63 + v75);
      const float v87 = fma(v80, 2.25f, (v78 * 0.5625f));
      const float v99 = fma(v92, 2.25f, (v90 * 0.5625f));
      const float v140 = (v87 + v99);
      const float v181 = (4*tile_y <= 11) ? x1[channel] : 0.0f;
      const float v183 = oclc_relu((((fma(v38, 2.25f, (v36 * 0.5625f)) + v138) + v140) + v181));
      if (4*tile_y <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 28] = v183;
      const float v141 = (v87 - v99);
      const float v139 = (v63 - v75);
      if (4*tile_y <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 29] = oclc_relu((fma(v141, 1.5f, (v139 * 0.75f)) + v181));
      const float v186 = (4*tile_y <= 11 && 4*tile_x <= 11) ? x1[channel] : 0.0f;
      if (4*tile_y <= 11 && 4*tile_x <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 30] = oclc_relu((fma(v140, 2.25f, (v138 * 0.5625f)) + v186));
      const float v149 = fma(v141, 3.375f, fma(v139, 0.421875f, fma(v104, 2.25f, (v102 * 0.5625f))));
      const float v189 = (4*tile_y <= 11 && 4*tile_x <= 10) ? x1[channel] : 0.0f;
      if (4*tile_y <= 11 && 4*tile_x <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 31] = oclc_relu((v149 + v189));
      const float v30 = x0[channel + 16*tile_x + 64*tile_y + 7680];
      const float v31 = x0[channel + 16*tile_x + 64*tile_y + 7936];
      const float v65 = fma(v57, 3.375f, fma(v55, 0.421875f, v31));
      const float v32 = x0[channel + 16*tile_x + 64*tile_y + 8192];
      const float v77 = fma(v69, 3.375f, fma(v67, 0.421875f, v32));
      const float v150 = (v65 + v77);
      const float v33 = x0[channel + 16*tile_x + 64*tile_y + 8448];
      const float v89 = fma(v81, 3.375f, fma(v79, 0.421875f, v33));
      const float v34 = x0[channel + 16*tile_x + 64*tile_y + 8704];
      const float v101 = fma(v93, 3.375f, fma(v91, 0.421875f, v34));
      const float v152 = (v89 + v101);
      const float v155 = ((fma(v39, 3.375f, fma(v37, 0.421875f, v30)) + v150) + v152);
      const float v192 = (4*tile_y <= 10) ? x1[channel] : 0.0f;
      if (4*tile_y <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 42] = oclc_relu((v155 + v192));
      const float v153 = (v89 - v101);
      const float v151 = (v65 - v77);
      if (4*tile_y <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 43] = oclc_relu((fma(v153, 1.5f, (v151 * 0.75f)) + v192));
      const float v197 = (4*tile_y <= 10 && 4*tile_x <= 11) ? x1[channel] : 0.0f;
      if (4*tile_y <= 10 && 4*tile_x <= 11) y0[196*channel + 4*tile_x + 56*tile_y + 44] = oclc_relu((fma(v152, 2.25f, (v150 * 0.5625f)) + v197));
      const float v35 = x0[channel + 16*tile_x + 64*tile_y + 8960];
      const float v160 = fma(v151, 0.421875f, fma(v105, 3.375f, fma(v103, 0.421875f, v35)));
      const float v200 = (4*tile_y <= 10 && 4*tile_x <= 10) ? x1[channel] : 0.0f;
      if (4*tile_y <= 10 && 4*tile_x <= 10) y0[196*channel + 4*tile_x + 56*tile_y + 45] = oclc_relu((fma(v153, 3.375f, v160) + v200));
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_conv_winograd_output_add_relu(__global const float* x0, const long x0_at, __global const float* x1, const long x1_at, __global float* y0, const long y0_at) {
  k_conv_winograd_output_add_relu_tile(x0 + x0_at, x1 + x1_at, y0 + y0_at, get_group_id(0));
}
