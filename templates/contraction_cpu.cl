// Contraction on a CPU, rows of A read in place, B packed at compile time: GEMM, batched GEMM, implicit-GEMM convolution.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g, row m, tap, k] * B[g, tap, k, n])
// A         A(m,tap,k) = p[k * A_STEP]; p comes from the holes ROW_STATE (once per row tile) and A_POINTER (once per tap).
//           Default: row-major a[(g * M + m) * K + k]. A convolution over NHWC has rows m = (image, oy, ox), taps = (ky, kx),
//           K = input channels of one group, and points rows of taps that fall into the padding to `zero`.
// B         b[(((g * PANELS + n / PW) * TAPS + tap) * K + k) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
//           A row-major B[g][k][n] of run time, N a multiple of PW: B_STEP = N, and hole B_POINTER.
// C         c[(g * M + m) * N + n].      zero: (K - 1) * A_STEP + 1 zeros.
// local memory 0. launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
// paper     Goto, van de Geijn: Anatomy of high-performance matrix multiplication, 2008; Georganas et al.: Anatomy of
//           high-performance deep learning convolutions on SIMD architectures, 2018.
//@kernel 1
//@include fma
#define TERMS K
#define A_AT(i, k) A_FROM(p[i][k * A_STEP])
#define W_STEP B_STEP
#define ENDS_CHAIN CHAINED && (tap + 1) % TAP_CHAIN == 0
#define HAS_CHAINS CHAINED
#define N0 panel * PW

void contraction_tile(const __global float* restrict a, const __global float* restrict b,
                      const __global float* restrict zero, __global float* restrict c, int tile) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int block = tile % (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = ROWS_FASTEST ? block % ROW_BLOCKS : block / PANEL_BLOCKS;
  const int panel_block = ROWS_FASTEST ? block / ROW_BLOCKS : block % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m_end = min(M, (row_block + 1) * (MT * MR));
  for (int panel = panel_block * NP; panel < panel_end; ++panel) {
    for (int m0 = row_block * (MT * MR); m0 < m_end; m0 += MR) {
      //@include row_state
      //@include zero_tiles
      //@include panel_of_b
#if PREFETCH_DISTANCE > 0
      const bool meets_first = m0 == row_block * (MT * MR) && (NEXT == 0 || panel == panel_block * NP);
      const int rows_ahead = meets_first ? FIRST_PREFETCH_DISTANCE : PREFETCH_DISTANCE;
#endif
#if NEXT > 0
      // From here to what is asked for: a part of the next panel in each row tile, and nothing new beside the last panel.
      const int part = m0 / MR - row_block * MT;
      int ahead = panel + 1 < panel_end && part * NEXT < PW ? B_PANEL + part * (TAPS * K * NEXT) : 0;
#endif
      for (int tap = 0; tap < TAPS; ++tap) {
        const __global A_TYPE* p[MR];
        //@include a_pointer
        //@include fma_terms
      }
      //@include add_last_chain
      //@include store_tile
    }
  }
}
