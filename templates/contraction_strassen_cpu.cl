// Contraction on a CPU by Strassen's seven products of halves instead of eight: rows, columns and terms are taken in pairs,
// whose combinations are made in local memory; on the right, by the first tile of rows that multiplies them.
//
// formula   C[m,n] = epilogue(sum over k < K of f(A)[row m, k] * B[k,n]). With A[i][h] rows and terms of the pairs' halves and
//           B[h][j] terms and columns: P0 = (A00 + A11) (B00 + B11), P1 = (A10 + A11) B00, P2 = A00 (B01 - B11),
//           P3 = A11 (B10 - B00), P4 = (A00 + A01) B11, P5 = (A10 - A00) (B00 + B01), P6 = (A01 - A11) (B10 + B11);
//           C00 = P0 + P3 - P4 + P6, C01 = P2 + P4, C10 = P1 + P3, C11 = P0 - P1 + P2 + P5.
// pairs     rows r and r + half of a work-item's rows, terms k0 + t and k0 + KC + t of a chunk of 2 * KC terms, columns n and
//           n + PW of a panel of 2 * PW columns.
// A         hole A_ELEMENTS: the VW values f(A)[m, k .. k + VW - 1]; with ROWS_INNERMOST f(A)[m .. m + VW - 1, k], and hole
//           A_LAST_ROWS fills to[l], l < PV, with f(A)[min(m + l, M - 1), k]. Default: row-major a[m * K + k].
// B         B00, B01, B10, B11 of chunks and panels, b[(((first * CHUNKS + chunk * count + panel - first) * 4 + q) * KC + t) * PW
//           + j] of the count panels of a work-item from `first` on; columns beyond N are 0. With B_COPIED hole PACK_B fills
//           to[(k - k0) * PW + j], k0 <= k < k_end, j < PW, of the one panel of PW columns that panel_begin is, with
//           f(B)[k, min(panel_begin * PW + j, N - 1)]. Default: row-major b[k * N + n].
// C         c[m * N + n].      bias: 2 * PANELS * PW values (default epilogue).
// local     left[p * LEFT + r * A_PITCH + t], with ROWS_INNERMOST [p * LEFT + r / BR * A_BUNDLE + t * BR + r % BR]; right[t * PW + j]
//           of one product; with B_COPIED blocks[(q * KC + t) * PW + j] of a panel; sums[((panel - first) * 7 + p) * SUM + r * PW + j].
// local memory 4 * LOCAL_FLOATS bytes: at most half the second-level cache.
// launch: ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
// paper     Strassen: Gaussian elimination is not optimal, 1969; Huang, Smith, Henry, van de Geijn: Strassen's algorithm
//           reloaded, 2016.
//@kernel 1, LOCAL_FLOATS
//@param G 1 {1} TAPS 1 {1}
//@param K 768 {2 * KC.. step 2 * KC}  terms
//@include gemm_sizes
//@include vectors
//@param MR 8 {1..16} NV 3 {1..8}  rows and vectors of the register tile: MR * NV + NV + 1 <= vector registers
//@param KC 64 {1..}  pairs of terms of a chunk, without ROWS_INNERMOST a multiple of VW: the longest chain of fma
//@param MT 8 {1..} NP 2 {1..}  row tiles of pairs and panels of a work-item
//@param ROWS_INNERMOST 0 {0, 1}  1: A's rows are neighbours in memory. There RB is a multiple of BR
//@param BR MR {MR.. step MR}  rows of a bundle, a multiple of VW and of MR
//@param B_COPIED 0 {0, 1}  1: B is given at run time
//@param ASK_AHEAD 0 {0, 1}  1: while a panel is multiplied, lines are asked for: hole NEXT_B asks for B's of the next panel at (tap, k), of
//                    columns n .. n + 15, or of terms from k on of column n; hole NEXT_A, behind a chunk's last panel, for A's of
//                    the next chunk, of rows m .. m + 15 or terms from k on
//@param B_BY_TERMS 0 {0, 1}  1: B's lines hold terms of a column
//@param NEXT 0 {0..}  floats of the next panel's B that each term of a tile of the first four products asks for; 0: none
//@param EPILOGUE_UNROLL 2 {1, 2}  2: the epilogue is written out; 1: small code, for an expensive one
#define RB (MT * MR)
#define PW (NV * VW)
#define CHUNKS (K / (2 * KC))
#define PANELS ((N + 2 * PW - 1) / (2 * PW))
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define ROW_BLOCKS ((M + 2 * RB - 1) / (2 * RB))
#define PV VW
#define B_PANEL 0
#define A_PITCH (KC + 16)
#define A_ROW (ROWS_INNERMOST ? 1 : A_PITCH)
#define A_TERM (ROWS_INNERMOST ? BR : 1)
#define A_BUNDLE (KC * BR + 16)
#define FACTOR (KC * PW)
// Matrices of whole pages would meet in one set of the first-level cache.
#define LEFT ((ROWS_INNERMOST ? (RB + BR - 1) / BR * A_BUNDLE : RB * A_PITCH) + 16)
#define SUM (RB * PW + 16)
#define LEFT_FLOATS (7 * LEFT)
#define SUMS ((CHUNKS > 1 ? NP : 1) * 7 * SUM)
#define BLOCKS (B_COPIED ? 4 * FACTOR : 0)
#define LOCAL_FLOATS (LEFT_FLOATS + FACTOR + BLOCKS + SUMS)
#define BITS JOIN(uint, VW)
#define AS_BITS JOIN(as_uint, VW)
#define AS_VEC JOIN(as_float, VW)

void contraction_strassen_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                               __global float* restrict c, int tile, __local float* restrict block) {
  //@lines SIZES
  // All rows with the same panels one after another: a core brings them from memory once, and others theirs.
  const int m_begin = tile % ROW_BLOCKS * (2 * RB);
  const int panel_begin = tile / ROW_BLOCKS * NP;
  const int panel_end = min(PANELS, panel_begin + NP);
  const int rows = min(2 * RB, M - m_begin);
  const int half_rows = ROWS_INNERMOST ? RB : (rows + 1) / 2;
  const int padded = (half_rows + MR - 1) / MR * MR;
  __local float* restrict right = block + LEFT_FLOATS;
#if B_COPIED
  __local float* restrict blocks = right + FACTOR;
  __local float* restrict sums = blocks + BLOCKS;
  const __local float* w = blocks;
#define B_BLOCK const __local float*
#else
  __local float* restrict sums = right + FACTOR;
  //@hole B_POINTER
  const __global float* w = b + (size_t)panel_begin * (CHUNKS * 4 * FACTOR);
  //@end
#define B_BLOCK const __global float*
#endif
  for (int k0 = 0; k0 < K; k0 += 2 * KC) {
    // Surplus rows of the last register tile repeat the last one.
#if ROWS_INNERMOST
    for (int t = 0; t < KC; ++t) {
      for (int r = 0; r < RB; r += VW) {
#else
    for (int r = 0; r < padded; ++r) {
      for (int t = 0; t < KC; t += VW) {
#endif
        VEC x[2][2];
        #pragma unroll
        for (int i = 0; i < 2; ++i)
          #pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int k = k0 + h * KC + t;
            VEC v;
#if ROWS_INNERMOST
            const int m = m_begin + i * RB + r;
            if (M % (2 * RB) == 0 || m + VW <= M) {
              //@hole A_ELEMENTS
              v = LOAD(a + (size_t)k * M + m);
              //@end
            } else {
              float to[VW];
              //@hole A_LAST_ROWS
              for (int l = 0; l < PV; ++l) to[l] = a[(size_t)k * M + min(m + l, M - 1)];
              //@end
              v = LOAD(to);
            }
#else
            const int m = min(m_begin + min(r, half_rows - 1) + i * half_rows, M - 1);
            //@hole A_ELEMENTS
            v = LOAD(a + (size_t)m * K + k);
            //@end
#endif
            x[i][h] = v;
          }
        __local float* restrict to = block + (ROWS_INNERMOST ? r / BR * A_BUNDLE + t * BR + r % BR : r * A_PITCH + t);
        STORE(x[0][0] + x[1][1], to);
        STORE(x[1][0] + x[1][1], to + 1 * LEFT);
        STORE(x[0][0], to + 2 * LEFT);
        STORE(x[1][1], to + 3 * LEFT);
        STORE(x[0][0] + x[0][1], to + 4 * LEFT);
        STORE(x[1][0] - x[0][0], to + 5 * LEFT);
        STORE(x[0][1] - x[1][1], to + 6 * LEFT);
      }
    }
    for (int panel = panel_begin; panel < panel_end; ++panel) {
#if B_COPIED
      for (int q = 0; q < 4; ++q) {
        const int first_term = k0 + q / 2 * KC, block_panel = 2 * panel + q % 2;
        __local float* restrict to = blocks + q * FACTOR;
        {
          const int k0 = first_term, k_end = first_term + KC, panel_begin = block_panel, panel_end = block_panel + 1;
          //@hole PACK_B
          for (int k = k0; k < k_end; ++k)
            for (int panel = panel_begin; panel < panel_end; ++panel)
              for (int j = 0; j < PW; ++j) to[(k - k0) * PW + j] = b[(size_t)k * N + min(panel * PW + j, N - 1)];
          //@end
        }
      }
#endif
#if ASK_AHEAD
      // Each tile asks for its share of the next panel, and in a chunk's last panel of A's next chunk.
      const bool ends_chunk = panel + 1 == panel_end, ends = ends_chunk && k0 + 2 * KC >= K;
      const int next_k0 = ends_chunk ? k0 + 2 * KC : k0, next_k_end = next_k0 + 2 * KC;
      const int next_n = (ends_chunk ? panel_begin : panel + 1) * (2 * PW), next_n_end = min(N, next_n + 2 * PW);
      const int next_columns = ends ? 0 : B_BY_TERMS ? next_n_end - next_n : 2 * KC;
      const int next_rows = ends || !ends_chunk ? 0 : ROWS_INNERMOST ? 2 * KC : rows;
      const int tiles = 7 * (padded / MR);
      int multiplied = 0, asked_a = 0, asked_b = 0;
#endif
      __local float* restrict panel_sums = sums + (CHUNKS > 1 ? panel - panel_begin : 0) * (7 * SUM);
      for (int point = 0; point < 7; ++point) {
        // The factor on the right is the block `first` and, with a sign, the block `second`, if any: a hexadecimal digit each.
        B_BLOCK first = w + (0x2032100 >> 4 * point & 3) * FACTOR;
        B_BLOCK second = w + (0x3100303 >> 4 * point & 3) * FACTOR;
        const uint kept = point == 1 || point == 4 ? 0u : ~0u;
        const uint sign = point == 2 || point == 3 ? 0x80000000u : 0u;
        for (int r0 = 0; r0 < padded; r0 += MR) {
#if ASK_AHEAD
          ++multiplied;
          if (oclc_optimized) for (const int end = next_rows * multiplied / tiles; asked_a < end; ++asked_a) {
#if ROWS_INNERMOST
            const int k = next_k0 + asked_a;
            for (int m = m_begin; m < m_begin + rows; m += 16) {
#else
            const int m = m_begin + asked_a;
            for (int k = next_k0; k < next_k_end; k += 16) {
#endif
              //@hole NEXT_A
              oclc_prefetch_l2(a + (size_t)m * K + k);
              //@end
            }
          }
          if (oclc_optimized) for (const int end = next_columns * multiplied / tiles; asked_b < end; ++asked_b) {
#if B_BY_TERMS
            const int n = next_n + asked_b;
            for (int k = next_k0; k < next_k_end; k += 16) {
#else
            const int k = next_k0 + asked_b;
            for (int n = next_n; n < next_n_end; n += 16) {
#endif
              //@hole NEXT_B
              oclc_prefetch_l2(b + (size_t)k * N + n);
              //@end
            }
          }
#endif
          //@include zeros T=VEC X=acc R=MR C=NV
          const __local float* p = block + point * LEFT + (ROWS_INNERMOST ? r0 / BR * A_BUNDLE + r0 % BR : r0 * A_PITCH);
#if NEXT > 0
          const __global float* next = w + (4 + point) * FACTOR + r0 / MR * (KC * NEXT);
#endif
          if (!oclc_optimized && r0 == 0)
            for (int t = 0; t < KC * PW; t += VW) STORE(LOAD(first + t) + AS_VEC((AS_BITS(LOAD(second + t)) & kept) ^ sign), right + t);
          oclc_terms(acc, MR, NV, p[i * A_ROW], p[i * A_ROW + A_TERM], right, PW, KC);
          if (oclc_optimized) for (int t = 0; t < KC; ++t) {
            VEC x[NV];
            if (r0 == 0) {
              #pragma unroll
              for (int j = 0; j < NV; ++j) {
                const BITS other = (AS_BITS(LOAD(second + t * PW + j * VW)) & kept) ^ sign;
                x[j] = LOAD(first + t * PW + j * VW) + AS_VEC(other);
                STORE(x[j], right + t * PW + j * VW);
              }
            } else {
              #pragma unroll
              for (int j = 0; j < NV; ++j) x[j] = LOAD(right + t * PW + j * VW);
            }
#if NEXT > 0
            if (point < 4) {
              #pragma unroll
              for (int j = 0; j < NEXT; j += 16) oclc_prefetch_l2(next + t * NEXT + j);
            }
#endif
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC v = p[i * A_ROW + t * A_TERM];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = fma(v, x[j], acc[i][j]);
            }
          }
          __local float* restrict q = panel_sums + point * SUM + r0 * PW;
          if (CHUNKS > 1 && k0 > 0) {
            //@include store_sums V="LOAD(q + i * PW + j * VW) + acc[i][j]" Q=q P=PW
          } else {
            //@include store_sums V=acc[i][j] Q=q P=PW
          }
        }
      }
#if B_COPIED == 0
      w += 4 * FACTOR;
#endif
      if (k0 + 2 * KC < K) continue;
      for (int r = 0; r < half_rows; ++r) {
        for (int j = 0; j < NV; ++j) {
          VEC s[7];
          #pragma unroll
          for (int point = 0; point < 7; ++point) s[point] = LOAD(panel_sums + point * SUM + r * PW + j * VW);
          VEC y[2][2];
          y[0][0] = (s[0] + s[3]) + (s[6] - s[4]);
          y[0][1] = s[2] + s[4];
          y[1][0] = s[1] + s[3];
          y[1][1] = (s[0] - s[1]) + (s[2] + s[5]);
          #pragma unroll EPILOGUE_UNROLL
          for (int i = 0; i < 2; ++i) {
            if (r + i * half_rows >= rows) break;
            const int m = m_begin + r + i * half_rows;
            //@hole C_ROW
            __global float* c_row = c + (size_t)m * N;
            //@end
            #pragma unroll EPILOGUE_UNROLL
            for (int h = 0; h < 2; ++h) {
              const int n = (2 * panel + h) * PW + j * VW;
              if (N % (2 * PW) != 0 && n >= N) break;
              VEC v = y[i][h];
              //@hole EPILOGUE
              v += LOAD(bias + n);
              //@end
              //@hole STORE
              store_columns(v, c_row, n);
              //@end
            }
          }
        }
      }
    }
  }
}
