// Contraction on a CPU, both operands of run time: chunks of their terms are copied into local memory, sums of a work-item's
// tiles lie there too. For operands whose terms lie on a page each, or that are computed.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * f(B)[g, tap, k, n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, tap, k .. k + PV - 1]; with ROWS_INNERMOST f(A)[g, m .. m + PV - 1, tap, k].
//           Default: row-major a[((g * M + m) * TAPS + tap) * K + k]. There hole A_LAST_ROWS fills to[l], l < PV, with
//           f(A)[g, min(m + l, M - 1), tap, k] for the last rows. With A_IN_PLACE hole ROW_STATE points row[i] to
//           A[g, min(m0 + i, M - 1), 0], whose terms are neighbours, and nothing is copied.
// B         hole PACK_B fills to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] for the work-item's panels, k0 <= k < k_end
//           and j < PW with f(B)[g, tap, k, min(panel * PW + j, N - 1)]. Default: row-major b[((g * TAPS + tap) * K + k) * N + n].
// a chunk   terms (tap, k), tap0 <= tap < tap0 + TC, k0 <= k < min(K, k0 + KC): a part of a tap, or whole taps.
//           With A_CONSTANT [row tile][k][MR], surplus rows 0.
// local A   block[r * A_PITCH + PAD + t], r = row within the AT tiles that are copied, t = (tap - tap0) * K + k - k0; with ROWS_INNERMOST
//           bundle by bundle of BR rows, block[r / BR * A_BUNDLE + t * BR + r % BR].
// local B   block[A_FLOATS + panel * B_PANEL + t * PW + j], panel within the work-item.
// sums      block[A_FLOATS + B_FLOATS + (panel * MT * MR + r) * PW + j], between chains.
// C         c[(g * M + m) * N + n].
// MT, NP    copying A costs about 2 / (NP * NV) of the multiplications and copying B about 12 / (MT * MR)
// local memory 4 * BLOCK_FLOATS bytes: at most three quarters of the second-level cache; a panel of B stays in the first.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
// paper     Goto, van de Geijn: Anatomy of high-performance matrix multiplication, 2008.
//@kernel 1, BLOCK_FLOATS
//@include gemm_sizes
//@include vectors
//@include tiles
//@include copy_vectors
//@param KC 256 {1..} TC 1 {1..TAPS}  terms of a tap and taps of a chunk: KC <= K where both are known, and TC = 1 unless KC = K
//@param CHAIN CHUNK {1..}  longest chain of fma: chains are then added to the sums
//@param ROWS_INNERMOST 0 {0, 1}  1, for A transposed: PV is at most M
//@param BR MR {MR..}  rows of a bundle: a multiple of PV and of MR
//@param AT MT {1..MT}  row tiles of A that are copied at a time
//@param A_IN_PLACE 0 {0, 1}  1: A's rows are read where they lie; TAPS = 1, AT = MT
//@param A_CONSTANT 0 {0, 1}  1: A is packed by tiles, hole A_TILE points p to [k0][0] of the tile at m0; TAPS = 1, AT = MT
//@param ONE_CHUNK 0 {0, 1}  1: all terms are one chunk, and sums stay in registers
//@param CHUNK_AHEAD 0 {0, 1}  1: while a chunk is multiplied, the next one's lines are asked for. Holes NEXT_A and NEXT_B ask for one at
//                    (tap, k): of rows m .. m + 15 or columns n .. n + 15, or of the terms from k on of row m or column n
//@param B_BY_TERMS 0 {0, 1}  1: B's lines hold terms of a column, as A's do without ROWS_INNERMOST
#define CHUNK (TC * KC)
#define PAD 16
#define A_PITCH (CHUNK + PAD)
#define A_ROW (ROWS_INNERMOST ? 1 : A_PITCH)
#define A_TERM (ROWS_INNERMOST ? BR : 1)
#define A_BUNDLE (CHUNK * BR + PAD)
#define BUNDLES ((AT * MR + BR - 1) / BR)
#define A_FLOATS (A_IN_PLACE || A_CONSTANT ? 0 : ROWS_INNERMOST ? BUNDLES * A_BUNDLE : AT * MR * A_PITCH)
#define B_PANEL (CHUNK * PW + PAD)
#define B_FLOATS (NP * B_PANEL)
#define BLOCK_FLOATS (A_FLOATS + B_FLOATS + (ONE_CHUNK ? 0 : NP * MT * MR * PW))
#define N0 panel * PW

void contraction_chunks_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                             int tile, __local float* restrict block) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  //@lines GROUP
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_begin = tile % PANEL_BLOCKS * NP;
  const int panel_end = min(PANELS, panel_begin + NP);
  const int m_begin = row_block * (MT * MR);
  const int m_end = min(M, m_begin + MT * MR);
  __local float* restrict copy = block + A_FLOATS;
  __local float* restrict sums = copy + B_FLOATS;
  for (int tap0 = 0; tap0 < TAPS; tap0 += TC) {
    const int tap_end = min(TAPS, tap0 + TC);
    for (int k0 = 0; k0 < K; k0 += KC) {
      const int k_end = min(K, k0 + KC);
      const int terms = (tap_end - tap0) * (k_end - k0);
      const bool first = tap0 == 0 && k0 == 0, last = tap_end == TAPS && k_end == K;
      for (int tap = tap0; tap < tap_end; ++tap) {
        __local float* restrict to = copy + (tap - tap0) * K * PW;
        //@include pack_b
      }
#if CHUNK_AHEAD
      const int next_k0 = k0 + KC < K ? k0 + KC : 0, next_k_end = min(K, next_k0 + KC);
      const int next_tap0 = k0 + KC < K ? tap0 : tap0 + TC, next_tap_end = min(TAPS, next_tap0 + TC);
      const int next_terms = last ? 0 : (next_tap_end - next_tap0) * (next_k_end - next_k0);
      const int n_begin = panel_begin * PW, n_end = min(N, panel_end * PW);
      const int next_rows = ROWS_INNERMOST ? next_terms : last ? 0 : m_end - m_begin;
      const int next_columns = !B_BY_TERMS ? next_terms : last ? 0 : n_end - n_begin;
      const int tiles = (panel_end - panel_begin) * ((m_end - m_begin + MR - 1) / MR);
      int multiplied = 0, asked_a = 0, asked_b = 0;
#endif
      for (int at0 = m_begin; at0 < m_end; at0 += AT * MR) {
        const int at_end = min(m_end, at0 + AT * MR);
#if A_IN_PLACE == 0 && A_CONSTANT == 0
        const int copied_rows = (at_end - at0 + MR - 1) / MR * MR;
#if ROWS_INNERMOST
        for (int t = 0; t < terms; ++t) {
          const int tap = tap0 + (TC > 1 ? t / K : 0);
          const int k = k0 + (TC > 1 ? t % K : t);
          for (int at = 0; at < copied_rows; at += PV) {
            const int m = at0 + at;
            __local float* restrict to = block + at / BR * A_BUNDLE + t * BR + at % BR;
            if ((M % PV == 0 && AT * MR % PV == 0) || m + PV <= M) {
              PVEC v;
              //@hole A_ELEMENTS
              for (int l = 0; l < PV; ++l) ((float*)&v)[l] = a[((size_t)(g * M + m + l) * TAPS + tap) * K + k];
              //@end
              PSTORE(v, to);
            } else {
              //@hole A_LAST_ROWS
              for (int l = 0; l < PV; ++l) to[l] = a[((size_t)(g * M + min(m + l, M - 1)) * TAPS + tap) * K + k];
              //@end
            }
          }
        }
#else
        for (int r = 0; r < copied_rows; ++r) {
          // Surplus rows of the last tile repeat row M - 1 and are not stored.
          const int m = min(at0 + r, M - 1);
          for (int tap = tap0; tap < tap_end; ++tap) {
            // The last vector overlaps its neighbour, or what lies in front of the row, instead of reading past the row.
            for (int at = k0; at < k_end; at += PV) {
              const int k = min(at, k_end - PV);
              __local float* restrict to = block + r * A_PITCH + PAD + (tap - tap0) * K + k - k0;
              PVEC v;
              //@hole A_ELEMENTS
              v = PLOAD(a + ((size_t)(g * M + m) * TAPS + tap) * K + k);
              //@end
              PSTORE(v, to);
            }
          }
        }
#endif
#endif
        for (int panel = panel_begin; panel < panel_end; ++panel) {
          for (int m0 = at0; m0 < at_end; m0 += MR) {
#if CHUNK_AHEAD
            // Each tile asks for its share of the next chunk.
            ++multiplied;
            if (oclc_optimized) for (const int end = next_rows * multiplied / tiles; asked_a < end; ++asked_a) {
#if ROWS_INNERMOST
              const int tap = next_tap0 + (TC > 1 ? asked_a / K : 0);
              const int k = next_k0 + (TC > 1 ? asked_a % K : asked_a);
              for (int m = m_begin; m < m_end; m += 16) {
#else
              const int m = m_begin + asked_a, tap = next_tap0;
              for (int k = next_k0; k < next_k_end; k += 16) {
#endif
                //@hole NEXT_A
                oclc_prefetch_l2(a + ((size_t)(g * M + m) * TAPS + tap) * K + k);
                //@end
              }
            }
            if (oclc_optimized) for (const int end = next_columns * multiplied / tiles; asked_b < end; ++asked_b) {
#if B_BY_TERMS
              const int n = n_begin + asked_b, tap = next_tap0;
              for (int k = next_k0; k < next_k_end; k += 16) {
#else
              const int tap = next_tap0 + (TC > 1 ? asked_b / K : 0);
              const int k = next_k0 + (TC > 1 ? asked_b % K : asked_b);
              for (int n = n_begin; n < n_end; n += 16) {
#endif
                //@hole NEXT_B
                oclc_prefetch_l2(b + ((size_t)(g * TAPS + tap) * K + k) * N + n);
                //@end
              }
            }
#endif
            __local float* restrict sum = sums + ((panel - panel_begin) * (MT * MR) + m0 - m_begin) * PW;
#if A_IN_PLACE
            //@include row_state
            #pragma unroll
            for (int i = 0; i < MR; ++i) row[i] += k0;
#define A_AT(i, t) row[i][t]
#else
#if A_CONSTANT
            //@hole A_TILE
            const __global float* p = a + (size_t)m0 * K + k0 * MR;
            //@end
#define A_AT(i, t) p[(t) * MR + (i)]
#else
            const int r = m0 - at0;
            const __local float* p = block + (ROWS_INNERMOST ? r / BR * A_BUNDLE + r % BR : r * A_PITCH + PAD);
#define A_AT(i, t) p[(i) * A_ROW + (t) * A_TERM]
#endif
#endif
            const __local float* w = copy + (panel - panel_begin) * B_PANEL;
            VEC out[MR][NV];
            for (int t0 = 0; t0 < terms; t0 += CHAIN) {
              const int t_end = min(terms, t0 + CHAIN);
              //@include zeros T=VEC X=acc R=MR C=NV
              oclc_terms(acc, MR, NV, A_AT(i, t0), A_AT(i, (t0 + 1)), w, PW, t_end - t0);
              if (!oclc_optimized) w += (t_end - t0) * PW;
              if (oclc_optimized) for (int t = t0; t < t_end; ++t) {
                //@include row_of_panel W=w
                //@include multiply_add A="A_AT(i, t)" C=NV
                w += PW;
              }
              const bool begins = first && t0 == 0, ends = last && t_end == terms;
              #pragma unroll
              for (int i = 0; i < MR; ++i)
                #pragma unroll
                for (int j = 0; j < NV; ++j) {
                  __local float* at = sum + i * PW + j * VW;
                  if (begins)
                    out[i][j] = acc[i][j];
                  else
                    out[i][j] = (ONE_CHUNK ? out[i][j] : LOAD(at)) + acc[i][j];
                  if (!(ONE_CHUNK || ends)) STORE(out[i][j], at);
                }
            }
            if (!(ONE_CHUNK || last)) continue;
            //@include store_tile
          }
        }
      }
    }
  }
}
