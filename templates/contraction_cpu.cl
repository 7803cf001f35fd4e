// Contraction on a CPU, rows of A read in place, B packed at compile time: GEMM, batched GEMM, implicit-GEMM convolution.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g, row m, tap, k] * B[g, tap, k, n])
// A         A(m,tap,k) = p[k * A_STEP]; p comes from the holes ROW_STATE (once per row tile) and A_POINTER (once per tap).
//           Default: row-major a[(g * M + m) * K + k]. A convolution over NHWC has rows m = (image, oy, ox), taps = (ky, kx),
//           K = input channels of one group, and points rows of taps that fall into the padding to `zero`.
// B         b[(((g * PANELS + n / PW) * TAPS + tap) * K + k) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
//           A row-major B[g][k][n] of run time, N a multiple of PW: B_PANEL = PW, B_STEP = N, B_GROUP = K * N.
// C         c[C_OFFSET + g * C_GROUP + m * C_STEP + n]. C_STEP > N stores into a slice of a wider tensor; the groups of a
//           convolution have C_STEP = G * N and C_GROUP = N. Default: C_STEP = N, C_GROUP = M * C_STEP.
// bias      PANELS * PW values for each g (default epilogue).     zero: (K - 1) * A_STEP + 1 zeros.
// parameter legal values (default)
//   G       independent contractions: batch of a matmul, groups of a convolution (1)
//   M       rows; a literal, or the name (not one letter) of an int argument added to both functions
//   N, K    columns, summed elements of a tap; TAPS (1)
//   VW      4, 8, 16: vector width of the target
//   MR, NV  rows and vectors of the register tile: MR * NV + NV + 1 <= vector registers, 32 (12x2, 10x2, 7x2, 8x3, 6x4, 4x4)
//           or 16 (6x2, 4x3)
//   HALF_LAST  1, for VW = 16: one panel, whose last vector has no more than 8 columns, with which half a vector multiplies (0)
//   MT, NP  row tiles and panels of a work-item: at least 1
//   K_CHAIN, TAP_CHAIN  longest chain of fma: K_CHAIN elements of a tap (K), or TAP_CHAIN whole taps with K_CHAIN = K (TAPS);
//           chains are then added up, which divides the rounding error of long sums
//   A_TYPE, A_FROM, B_FROM  elements of A in memory and the functions that make floats of A's and B's elements (float, none, none)
//   EPILOGUE_UNROLL  MR: no copy through memory, for a cheap epilogue; 1: small code, for an expensive one (MR)
//   AHEAD   rows of a packed panel by which B is asked for ahead of its use; 0: never (0)
//   FIRST_AHEAD  the same in the row tile that meets a panel first, for which nobody asked; at least AHEAD (AHEAD)
//   NEXT    floats of a packed panel by which each row of the one before asks for it; 0: not (0)
//   ROWS_FASTEST  1: neighbouring work-items share panels of B (large B); 0: they share rows of A (large A)
// local memory 0. launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
// paper     Goto, van de Geijn: Anatomy of high-performance matrix multiplication, 2008; Georganas et al.: Anatomy of
//           high-performance deep learning convolutions on SIMD architectures, 2018.
#ifndef G
#define G 1
#endif
#ifndef M
#define M 128
#endif
#ifndef N
#define N 768
#endif
#ifndef K
#define K 768
#endif
#ifndef TAPS
#define TAPS 1
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#define MR 12
#endif
#ifndef NV
#define NV 2
#endif
#ifndef MT
#define MT 1
#endif
#ifndef NP
#define NP 1
#endif
#ifndef K_CHAIN
#define K_CHAIN K
#endif
#ifndef TAP_CHAIN
#define TAP_CHAIN TAPS
#endif
#ifndef EPILOGUE_UNROLL
#define EPILOGUE_UNROLL MR
#endif
#ifndef ROWS_FASTEST
#define ROWS_FASTEST 1
#endif
#ifndef A_STEP
#define A_STEP 1
#endif
#ifndef B_STEP
#define B_STEP PW
#endif
#ifndef B_PANEL
#define B_PANEL (TAPS * K * PW)
#endif
#ifndef B_GROUP
#define B_GROUP ((size_t)PANELS * B_PANEL)
#endif
#ifndef HALF_LAST
#define HALF_LAST 0
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
#ifndef FIRST_AHEAD
#define FIRST_AHEAD AHEAD
#endif
#ifndef NEXT
#define NEXT 0
#endif
#ifndef C_STEP
#define C_STEP N
#endif
#ifndef C_GROUP
#define C_GROUP ((size_t)M * C_STEP)
#endif
#ifndef C_OFFSET
#define C_OFFSET 0
#endif
#define CHAINED ((K_CHAIN < K) | (TAP_CHAIN < TAPS))
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
#define ROW_TILES ((M + MR - 1) / MR)
#define ROW_BLOCKS ((ROW_TILES + MT - 1) / MT)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#ifndef B_FROM
#define B_FROM(v) v
#endif
#ifndef A_TYPE
#define A_TYPE float
#endif
#ifndef A_FROM
#define A_FROM(v) v
#endif
#define VEC JOIN(float, VW)
// a * b + sum for vector j of a row of the tile.
#if HALF_LAST
#define MULTIPLY_ADD(a, b, sum, j) ((j) == NV - 1 ? oclc_fma_low(a, b, sum) : fma(a, b, sum))
#else
#define MULTIPLY_ADD(a, b, sum, j) fma(a, b, sum)
#endif
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)

void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}

void contraction_tile(const __global float* restrict a, const __global float* restrict b,
                      const __global float* restrict bias, const __global float* restrict zero,
                      __global float* restrict c, int tile) {
  //@hole SIZES
  //@end
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int block = tile % (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = ROWS_FASTEST ? block % ROW_BLOCKS : block / PANEL_BLOCKS;
  const int panel_block = ROWS_FASTEST ? block / ROW_BLOCKS : block % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m_end = min(M, (row_block + 1) * (MT * MR));
  for (int panel = panel_block * NP; panel < panel_end; ++panel) {
    for (int m0 = row_block * (MT * MR); m0 < m_end; m0 += MR) {
      // Surplus rows of the last tile repeat row M - 1 and are not stored.
      //@hole ROW_STATE
      const __global float* row[MR];
      #pragma unroll
      for (int i = 0; i < MR; ++i) row[i] = a + (g * M + min(m0 + i, M - 1)) * K;
      //@end
      VEC acc[MR][NV];
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) acc[i][j] = 0.0f;
      VEC out[MR][NV];
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) out[i][j] = 0.0f;
      //@hole B_POINTER
      const __global float* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
      //@end
#if AHEAD > 0
      const bool meets_first = m0 == row_block * (MT * MR) && (NEXT == 0 || panel == panel_block * NP);
      const int rows_ahead = meets_first ? FIRST_AHEAD : AHEAD;
#endif
#if NEXT > 0
      // From here to what is asked for: a part of the next panel in each row tile, and nothing new beside the last panel.
      const int part = m0 / MR - row_block * MT;
      int ahead = panel + 1 < panel_end && part * NEXT < PW ? B_PANEL + part * (TAPS * K * NEXT) : 0;
#endif
      for (int tap = 0; tap < TAPS; ++tap) {
        const __global A_TYPE* p[MR];
        //@hole A_POINTER
        #pragma unroll
        for (int i = 0; i < MR; ++i) p[i] = row[i];
        //@end
        for (int k0 = 0; k0 < K; k0 += K_CHAIN) {
          const int k_end = min(K, k0 + K_CHAIN);
          for (int k = k0; k < k_end; ++k) {
            VEC x[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) x[j] = B_FROM(LOAD(w + j * VW));
#if AHEAD > 0
            #pragma unroll
            for (int j = 0; j < NV; j += 16 / VW) oclc_prefetch(w + rows_ahead * PW + j * VW);
#endif
#if NEXT > 0
            #pragma unroll
            for (int j = 0; j < NEXT; j += 16) oclc_prefetch_l2(w + ahead + j);
            ahead -= PW - NEXT;
#endif
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = A_FROM(p[i][k * A_STEP]);
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = MULTIPLY_ADD(s, x[j], acc[i][j], j);
            }
            w += B_STEP;
          }
          if (CHAINED && (tap + 1) % TAP_CHAIN == 0) {
            #pragma unroll
            for (int i = 0; i < MR; ++i)
              #pragma unroll
              for (int j = 0; j < NV; ++j) out[i][j] += acc[i][j], acc[i][j] = 0.0f;
          }
        }
      }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) out[i][j] = CHAINED ? out[i][j] + acc[i][j] : acc[i][j];
      #pragma unroll EPILOGUE_UNROLL
      for (int i = 0; i < MR; ++i) {
        const int m = m0 + i;
        if (m >= M) break;
        //@hole C_ROW
        __global float* c_row = c + C_OFFSET + (size_t)g * C_GROUP + (size_t)m * C_STEP;
        //@end
        #pragma unroll
        for (int j = 0; j < NV; ++j) {
          const int n = panel * PW + j * VW;
          if (N % PW != 0 && n >= N) break;
          VEC v = out[i][j];
          //@hole EPILOGUE
          v += LOAD(bias + g * (PANELS * PW) + n);
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
__kernel void contraction(const __global float* restrict a, const __global float* restrict b,
                          const __global float* restrict bias, const __global float* restrict zero,
                          __global float* restrict c) {
  contraction_tile(a, b, bias, zero, c, (int)get_group_id(0));
}
