// Contraction on a CPU, rows of A packed into local memory through an expression, B packed at compile time.
// For A with an elementwise prologue or an index that is not a pointer per row and tap; the packed rows serve NP panels.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * B[g, tap, k, n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, tap, k .. k + PV - 1]. Default, a normalised and rectified row-major A:
//           max(a[((g * M + m) * TAPS + tap) * K + k] * scale[k] + shift[k], 0).
// local A   block[r * A_PITCH + tap * K + k], r = row within the work-item, A_PITCH = TAPS * K + 16: rows a multiple of 4 KiB
//           apart would fall into one cache set. With ROWS_INNERMOST block[(tap * K + k) * (MT * MR) + r], or where PV = MR
//           tile by tile, block[(r / MR * KT + tap * K + k) * MR + r % MR].
// B         as in contraction_cpu.cl. With COPY_B each panel is copied behind A's block before the row tiles meet it: its rows lie on a
//           page each.
// C         c[(g * M + m) * N + n].
// MT, NP    packing costs about MT * MR * TAPS * K / PV against NP * NV times as many multiplications, so NP covers all panels
//           unless cores would idle
// local memory 4 * MT * MR * (TAPS * K + 16) bytes, with ROWS_INNERMOST without the 16: at most half the second-level cache;
// with COPY_B 4 * PW * TAPS * K more: at most three quarters.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, BLOCK_FLOATS
//@param NEXT 0 {0}  the next panel is not asked for
//@include fma
//@param PV VW {1, 4, 8, 16}  width of the packing loop, at most K; 1 where neighbours in k are not neighbours in memory
//@param ROWS_INNERMOST 0 {0, 1}  1, for A transposed: A_ELEMENTS gives the values of rows m .. m + PV - 1 at k; MR and PV divide M, PV divides MT * MR
//@param COPY_B 0 {0, 1}  1: panels of B, floats of run time, are copied
//@param RT MT {1..}  row tiles that meet all panels before the next RT do: results of few rows are few pages and whole pieces of them,
//                    while B comes from the second- or third-level cache again
//@param EPILOGUE_AHEAD 0 {0, 1}  1: hole NEXT_RESULTS asks for the lines that the epilogue reads and writes at row m, columns n to n + 15
//@include copy_vectors
#define KT (TAPS * K)
#define A_PITCH (KT + 16)
#define A_ROW (ROWS_INNERMOST ? 1 : A_PITCH)
#define BY_TILES (ROWS_INNERMOST && PV == MR)
#define A_TERM (BY_TILES ? MR : ROWS_INNERMOST ? MT * MR : 1)
#define A_FLOATS (MT * MR * (ROWS_INNERMOST ? KT : A_PITCH))
#define BLOCK_FLOATS (A_FLOATS + COPY_B * KT * PW)
#define TERMS KT
#define A_AT(i, k) p[i * A_ROW + k * A_TERM]
#define W_STEP COPY_B ? PW : B_STEP
#define ENDS_CHAIN K_CHAIN < KT
#define HAS_CHAINS K_CHAIN < KT
#define N0 panel * PW

void contraction_packed_a_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict scale,
                               const __global float* restrict shift, __global float* restrict c, int tile, __local float* restrict block) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m_begin = row_block * (MT * MR);
  const int m_end = min(M, m_begin + MT * MR);
  const int packed_rows = (m_end - m_begin + MR - 1) / MR * MR;
  // Vectors of a row, of which the last overlaps its neighbour instead of reading past the row; or of rows, at one term.
  for (int outer = 0; outer < (ROWS_INNERMOST ? KT : packed_rows * TAPS); ++outer) {
    const int tap = ROWS_INNERMOST ? outer / K : outer % TAPS;
    for (int at = 0; at < (ROWS_INNERMOST ? packed_rows : K); at += PV) {
      const int m = ROWS_INNERMOST ? m_begin + at : min(m_begin + outer / TAPS, M - 1);
      const int k = ROWS_INNERMOST ? outer % K : min(at, K - PV);
      __local float* restrict to =
          block + (BY_TILES         ? at * KT + outer * MR
                   : ROWS_INNERMOST ? outer * (MT * MR) + at
                                    : outer / TAPS * A_PITCH + tap * K + k);
      PVEC v;
      //@hole A_ELEMENTS
      v = PLOAD(a + (size_t)(g * M + m) * KT + tap * K + k);
      v = fmax(fma(v, PLOAD(scale + k), PLOAD(shift + k)), 0.0f);
      //@end
      PSTORE(v, to);
    }
  }
  for (int near_begin = m_begin; near_begin < m_end; near_begin += RT * MR) {
    const int near_end = min(m_end, near_begin + RT * MR);
    for (int panel = panel_block * NP; panel < panel_end; ++panel) {
#if COPY_B
      __local float* restrict copy = block + A_FLOATS;
      //@include panel_of_b
      const int n0 = panel * PW;
      for (int k = 0; k < KT; ++k) {
        if (N % PW == 0 || n0 + PW <= N) {
          #pragma unroll
          for (int j = 0; j < NV; ++j) STORE(LOAD(w + j * VW), copy + k * PW + j * VW);
        } else {
          for (int j = 0; j < PW; ++j) copy[k * PW + j] = w[min(n0 + j, N - 1) - n0];
        }
        w += B_STEP;
      }
#endif
      for (int m0 = near_begin; m0 < near_end; m0 += MR) {
#if EPILOGUE_AHEAD
        // What the results of the next panel, behind the last one those of the next near rows, are computed with, and where they
        // go: the lines of a tile's rows.
        const int ends = panel + 1 == panel_end;
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < PW; j += 16) {
            const int m = m0 + i + ends * (RT * MR), n = j + (ends ? panel_block * (NP * PW) : (panel + 1) * PW);
            //@hole NEXT_RESULTS
            oclc_prefetch_l2(c + (size_t)(g * M + m) * N + n);
            //@end
          }
#endif
        //@include zero_tiles
#if COPY_B
        const __local float* w = copy;
#else
        //@include panel_of_b
#endif
#if PREFETCH_DISTANCE > 0
        const int rows_ahead = m0 == m_begin ? FIRST_PREFETCH_DISTANCE : PREFETCH_DISTANCE;
#endif
        const __local float* p = block + (m0 - m_begin) * (BY_TILES ? KT : A_ROW);
        //@include fma_terms
        //@include add_last_chain
        //@include store_tile
      }
    }
  }
}
