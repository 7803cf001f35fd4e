// Depthwise convolution and pooling over NHWC on a CPU: vectors over channels, a register tile of MR pixels x NV vectors.
//
// formula   C[m,n] = epilogue(reduce over tap < TAPS of A[pixel(m,tap), n] and B[tap,n]), the reduction in the holes INIT, TAP:
//           depthwise convolution, acc = fma(x, w, acc) from 0 (default); max pooling, acc = acc > x ? acc : x from -INFINITY
//           (one instruction, where fmax takes three for its rule on NaN).
// A         p[n] where p comes from the holes ROW_STATE (once per row tile) and A_POINTER (once per tap). Taps that fall into
//           the padding point to `outside`: N zeros, or N times -INFINITY. Default: 56 x 56 pixels, 3 x 3 taps, padding 1.
// B         b[tap * N + n]
// C         c[C_OFFSET + m * C_STEP + n], m = (image, oy, ox).      bias: N values (default epilogue).
// parameter legal values (default)
//   M       pixels; a literal, or the name (not one letter) of an int argument added to both functions (3136)
//   N       channels (144)         TAPS  kernel elements (9)
//   VW      4, 8, 16: vector width of the target
//   MR, NV  pixels and vectors of the register tile: MR * NV + NV + 1 <= vector registers; NV a divisor of ceil(N / VW) (3, 9)
//   MT      row tiles of a work-item (4)
// local memory 0. launch: ceil(ceil(M / MR) / MT) groups of one work-item.
#ifndef M
#define M 3136
#endif
#ifndef N
#define N 144
#endif
#ifndef TAPS
#define TAPS 9
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#define MR 3
#endif
#ifndef NV
#define NV 9
#endif
#ifndef MT
#define MT 4
#endif
#ifndef C_STEP
#define C_STEP N
#endif
#ifndef C_OFFSET
#define C_OFFSET 0
#endif
#define PW (NV * VW)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)

// The vector at column n of a row of N values; lanes from column N on are 0 and are not read.
VEC load_columns(const __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) return LOAD(row + n);
  float lanes[VW];
  for (int l = 0; l < VW; ++l) lanes[l] = n + l < N ? row[n + l] : 0.0f;
  return LOAD(lanes);
}

void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}

void depthwise_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                    const __global float* restrict outside, __global float* restrict c, int tile) {
  const int m_end = min(M, (tile + 1) * (MT * MR));
  for (int m0 = tile * (MT * MR); m0 < m_end; m0 += MR) {
    // Surplus rows of the last tile repeat row M - 1 and are not stored.
    //@hole ROW_STATE
    int row_y[MR], row_x[MR];
    #pragma unroll
    for (int i = 0; i < MR; ++i) {
      const int m = min(m0 + i, M - 1);
      row_y[i] = m / 56 - 1;
      row_x[i] = m % 56 - 1;
    }
    //@end
    for (int n0 = 0; n0 < N; n0 += PW) {
      VEC acc[MR][NV];
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) {
          //@hole INIT
          acc[i][j] = 0.0f;
          //@end
        }
      for (int tap = 0; tap < TAPS; ++tap) {
        const __global float* p[MR];
        //@hole A_POINTER
        const int ky = tap / 3, kx = tap % 3;
        #pragma unroll
        for (int i = 0; i < MR; ++i) {
          const int y = row_y[i] + ky, x = row_x[i] + kx;
          p[i] = (((uint)y < 56u) & ((uint)x < 56u)) ? a + (y * 56 + x) * N : outside;
        }
        //@end
        #pragma unroll
        for (int j = 0; j < NV; ++j) {
          const int n = n0 + j * VW;
          if (N % PW != 0 && n >= N) break;
          //@hole TAP
          const VEC w = load_columns(b + tap * N, n);
          #pragma unroll
          for (int i = 0; i < MR; ++i) acc[i][j] = fma(load_columns(p[i], n), w, acc[i][j]);
          //@end
        }
      }
      #pragma unroll
      for (int i = 0; i < MR; ++i) {
        const int m = m0 + i;
        if (m >= M) break;
        __global float* c_row = c + C_OFFSET + (size_t)m * C_STEP;
        #pragma unroll
        for (int j = 0; j < NV; ++j) {
          const int n = n0 + j * VW;
          if (N % PW != 0 && n >= N) break;
          VEC v = acc[i][j];
          //@hole EPILOGUE
          v = fmax(v + load_columns(bias, n), 0.0f);
          //@end
          //@hole STORE
          store_columns(v, c_row, n);
          //@end
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void depthwise(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                        const __global float* restrict outside, __global float* restrict c) {
  depthwise_tile(a, b, bias, outside, c, (int)get_group_id(0));
}
