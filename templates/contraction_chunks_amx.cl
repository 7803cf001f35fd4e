// Contraction on a CPU's tile units, both operands of run time, by bfloat16 parts of floats, see tiles_amx.cl. A chunk of the terms of
// a work-item's rows and columns becomes parts in local memory, step by step of 32 terms; the chunk's sums are added to those before.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * f(B)[g, tap, k, n])
// A         hole A_ELEMENTS: as `v` the 16 values f(A)[g, m, tap, k .. k + 15]; with ROWS_INNERMOST f(A)[g, m .. m + 15, tap, k].
//           Default: row-major a[((g * M + m) * TAPS + tap) * K + k]. There hole A_LAST_ROWS fills to[l], l < 16, with
//           f(A)[g, min(m + l, M - 1), tap, k] for the last rows.
// B         hole PACK_B fills to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] for the work-item's panels, k0 <= k < k_end
//           and j < PW with f(B)[g, tap, k, min(panel * PW + j, N - 1)]. Default: row-major b[((g * TAPS + tap) * K + k) * N + n].
//           With B_COLUMNS hole B_ELEMENTS: as `v` the 16 values f(B)[g, tap, k, n .. n + 15], and nothing is copied.
// C         c[(g * M + m) * N + n], 16 columns at a time.
// local memory 4 * LOCAL_FLOATS bytes: sums of all blocks and of two of the chunk, parts of the chunk, floats of one step.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param K 1568 {16.., name}
//@include gemm_sizes
//@include amx/parts
//@include amx/columns
//@param MT 4 {1..}  blocks of 32 rows of a work-item
//@param ROWS_INNERMOST 0 {0, 1}  1: for A transposed. There M is at least 16
//@param B_COLUMNS 0 {0, 1}  1: vectors of B's columns, of which N are whole vectors, become parts at once
//@param CHUNK 4 {1..}  steps of 32 terms of a chunk; each tap's terms begin a step
//@param ONE_CHUNK 0 {0, 1}  1: all terms are one chunk
//@param CHUNK_AHEAD 0 {0, 1}  1: while a chunk is multiplied, the next one's lines are asked for. Holes NEXT_A and NEXT_B ask for one at
//                    (tap, k): of rows m .. m + 15 or columns n .. n + 15, or of the terms from k on of row m or column n
//@param B_BY_TERMS 0 {0, 1}  1: B's lines hold terms of a column, as A's do without ROWS_INNERMOST
//@param EPILOGUE_AHEAD 0 {0, 1}  1: hole NEXT_RESULTS asks for the lines that the epilogue reads and writes at row m, columns n to n + 15
//@param PV 16 {16}  A is copied by vectors
#define VW 16
#define PW 32
#define TAP_STEPS ((K + 31) / 32)
#define ROW_BLOCKS ((M + MT * 32 - 1) / (MT * 32))
#define PAD 16
// Floats of a step: panels of B, and terms of A's rows where these are neighbours.
#define B_PANEL (32 * PW + PAD)
#define A_TERM (MT * 32 + PAD)
#define COPIED_A (ROWS_INNERMOST ? 32 * A_TERM : 0)
#define COPIED_B (B_COLUMNS ? 0 : NP * B_PANEL)
#define COPIED (COPIED_B > COPIED_A ? COPIED_B : COPIED_A)
#define SUMS (ONE_CHUNK ? 0 : MT * NP)
#define LOCAL_FLOATS (16 + (SUMS + 2) * 1024 + (MT + NP) * CHUNK * STEP / 2 + COPIED)
#define PAIRS JOIN(oclc_parts_, PRODUCTS)
// Terms of the i-th pair of a step of B.
#define FIRST_OF_PAIR(i) (PRODUCTS == 1 ? 2 * (i) : (i))
#define SECOND_OF_PAIR(i) (PRODUCTS == 1 ? 2 * (i) + 1 : (i) + 16)
#define VEC float16
#define STORE(v, p) oclc_store(v, p)
#define STEP_TERMS 32
#define VALUES float16
#define SIXTEEN half_line[h]

void contraction_chunks_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                             int tile, __local float* restrict space) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  //@lines GROUP
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_begin = tile % PANEL_BLOCKS * NP, panel_end = min(PANELS, panel_begin + NP);
  const int m_begin = row_block * (MT * 32), m_end = min(M, m_begin + MT * 32);
  const int row_blocks = (m_end - m_begin + 31) / 32, panels = panel_end - panel_begin, blocks = row_blocks * panels;
  __local float* sums = space + (64 - ((size_t)space & 63)) / 4;
  __local float* chunk_sums = sums + SUMS * 1024;
  __local ushort* rows = (__local ushort*)(chunk_sums + 2 * 1024);
  __local ushort* columns = rows + MT * CHUNK * STEP;
  __local float* copy = (__local float*)(columns + NP * CHUNK * STEP);
  const int all_steps = TAPS * TAP_STEPS;
  oclc_tiles_open();
  for (int s_begin = 0; s_begin < all_steps; s_begin += CHUNK) {
    const int s_end = min(all_steps, s_begin + CHUNK), steps = s_end - s_begin;
    const bool last = s_end == all_steps;
    for (int s = s_begin; s < s_end; ++s) {
      const int tap = s / TAP_STEPS, k0 = s % TAP_STEPS * 32, k_end = min(K, k0 + 32);
#if B_COLUMNS
      const int columns_end = min(N, panel_end * PW) - panel_begin * PW;
      for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < columns_end; j += 16) {
          const int n = panel_begin * PW + j;
          float16 pair[2];
          #pragma unroll
          for (int q = 0; q < 2; ++q) {
            const int k = k0 + (q == 0 ? FIRST_OF_PAIR(i) : SECOND_OF_PAIR(i));
            float16 v = 0;
            if (K % 32 == 0 || k < K) {
              //@hole B_ELEMENTS
              v = vload16(0, b + ((size_t)(g * TAPS + tap) * K + k) * N + n);
              //@end
            }
            pair[q] = v;
          }
          PAIRS(pair[0], pair[1], columns + (j / PW * CHUNK + s - s_begin) * STEP + j % PW / 16 * 512, i, 1024);
        }
      }
#else
      {
        __local float* restrict to = copy;
        //@include pack_b
      }
      for (int p = 0; p < panels; ++p)
        oclc_tiles_panel(PRODUCTS, copy + p * B_PANEL, k_end - k0, columns + (p * CHUNK + s - s_begin) * STEP);
#endif
#if ROWS_INNERMOST
      for (int k = k0; k < k0 + 32; ++k) {
        for (int r = 0; r < row_blocks * 32; r += 16) {
          const int m = m_begin + r;
          __local float* restrict to = copy + (k - k0) * A_TERM + r;
          if (k >= k_end || m >= M) {
            oclc_store((float16)(0), to);
          } else if (M % 16 == 0 || m + 16 <= M) {
            float16 v;
            //@hole A_ELEMENTS
            for (int l = 0; l < 16; ++l) ((float*)&v)[l] = a[((size_t)(g * M + m + l) * TAPS + tap) * K + k];
            //@end
            oclc_store(v, to);
          } else {
            //@hole A_LAST_ROWS
            for (int l = 0; l < 16; ++l) to[l] = a[((size_t)(g * M + min(m + l, M - 1)) * TAPS + tap) * K + k];
            //@end
          }
        }
      }
      for (int r = 0; r < row_blocks * 32; r += 16) {
        __local ushort* line = rows + (r / 32 * CHUNK + s - s_begin) * STEP;
        float16 x[16], y[16];
        #pragma unroll
        for (int l = 0; l < 16; ++l) x[l] = vload16(0, copy + l * A_TERM + r);
        oclc_transpose(x);
        #pragma unroll
        for (int l = 0; l < 16; ++l) y[l] = vload16(0, copy + (l + 16) * A_TERM + r);
        oclc_transpose(y);
        #pragma unroll
        for (int l = 0; l < 16; ++l) SPLIT(x[l], y[l], line, r % 32 + l, 1024);
      }
#else
      for (int r = 0; r < row_blocks * 32; ++r) {
        // Surplus rows of the last block repeat row M - 1 and are not stored.
        const int m = min(m_begin + r, M - 1);
        float16 half_line[2];
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int k_first = k0 + h * 16;
          half_line[h] = 0;
          //@include amx/sixteen
        }
        SPLIT(half_line[0], half_line[1], rows + (r / 32 * CHUNK + s - s_begin) * STEP, r % 32, 1024);
      }
#endif
    }
#if CHUNK_AHEAD
    // Lines of the next chunk, of a term or of a row or column at a time.
    const int next_steps = min(all_steps, s_end + CHUNK) - s_end;
    const int next_a = ROWS_INNERMOST ? next_steps * 32 : next_steps == 0 ? 0 : m_end - m_begin;
    const int next_b = !B_BY_TERMS ? next_steps * 32 : next_steps == 0 ? 0 : min(N, panel_end * PW) - panel_begin * PW;
    int multiplied = 0, asked_a = 0, asked_b = 0;
#endif
    // Beside each step some rows of the block before are added up, or go through the epilogue: while the unit multiplies, vectors are
    // computed and stored.
    for (int at = 0; at <= blocks; ++at) {
      const int pieces = at == blocks ? 1 : steps;
      for (int q = 0; q < pieces; ++q) {
#if CHUNK_AHEAD
        multiplied = min(multiplied + 1, blocks * steps);
        for (const int end = next_a * multiplied / (blocks * steps); asked_a < end; ++asked_a) {
#if ROWS_INNERMOST
          const int tap = (s_end + asked_a / 32) / TAP_STEPS, k = (s_end + asked_a / 32) % TAP_STEPS * 32 + asked_a % 32;
          for (int m = m_begin; m < m_end && k < K; m += 16) {
#else
          const int m = m_begin + asked_a, tap = s_end / TAP_STEPS;
          for (int k = s_end % TAP_STEPS * 32, k_end = min(K, k + next_steps * 32); k < k_end; k += 16) {
#endif
            //@hole NEXT_A
            oclc_prefetch_l2(a + ((size_t)(g * M + m) * TAPS + tap) * K + k);
            //@end
          }
        }
        for (const int end = next_b * multiplied / (blocks * steps); asked_b < end; ++asked_b) {
#if B_BY_TERMS
          const int n = panel_begin * PW + asked_b, tap = s_end / TAP_STEPS;
          for (int k = s_end % TAP_STEPS * 32, k_end = min(K, k + next_steps * 32); k < k_end; k += 16) {
#else
          const int tap = (s_end + asked_b / 32) / TAP_STEPS, k = (s_end + asked_b / 32) % TAP_STEPS * 32 + asked_b % 32;
          for (int n = panel_begin * PW, n_end = min(N, panel_end * PW); n < n_end && k < K; n += 16) {
#endif
            //@hole NEXT_B
            oclc_prefetch_l2(b + ((size_t)(g * TAPS + tap) * K + k) * N + n);
            //@end
          }
        }
#endif
        if (at < blocks) {
          __local float* to = chunk_sums + (at & 1) * 1024;
          // A CPU has one space of addresses.
          const __global ushort* w = (const __global ushort*)(size_t)(columns + (at % panels * CHUNK + q) * STEP);
          if (q == 0) oclc_tiles_begin(to, 1);
          MULTIPLY(to, rows + (at / panels * CHUNK + q) * STEP, 0, 1, 1024, STEP, w, 1, 0, w);
          if (q + 1 == steps) oclc_tiles_end(to);
#if EPILOGUE_AHEAD
          for (int i = 32 * q / steps; i < (last ? 32 * (q + 1) / steps : 0); ++i)
            #pragma unroll
            for (int j = 0; j < PW; j += 16) {
              const int m = m_begin + at / panels * 32 + i, n = (panel_begin + at % panels) * PW + j;
              //@hole NEXT_RESULTS
              oclc_prefetch_l2(c + (size_t)(g * M + m) * N + n);
              //@end
            }
#endif
        }
        if (at == 0) continue;
        const int m0 = m_begin + (at - 1) / panels * 32, n0 = (panel_begin + (at - 1) % panels) * PW;
        const __local float* from = chunk_sums + (at - 1 & 1) * 1024;
        __local float* sum = sums + (at - 1) * 1024;
        const int i_end = min(32 * (q + 1) / pieces, m_end - m0);
        for (int i = 32 * q / pieces; i < i_end; ++i) {
          if (!(ONE_CHUNK || last)) {
            #pragma unroll
            for (int at_column = i * PW; at_column < i * PW + PW; at_column += 16) {
              const float16 v = vload16(0, from + at_column);
              oclc_store(s_begin == 0 ? v : v + vload16(0, sum + at_column), sum + at_column);
            }
            continue;
          }
          const int m = m0 + i;
          //@include row_of_c
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int n = n0 + j * 16;
            if (N % 32 != 0 && n >= N) break;
            float16 v = vload16(i * 2 + j, from);
            if (!ONE_CHUNK && s_begin > 0) v += vload16(i * 2 + j, sum);
            //@include epilogue
          }
        }
      }
    }
  }
  oclc_tiles_close();
}
