// Contraction on a CPU's tile units: GEMM and implicit-GEMM convolution by bfloat16 parts of floats, see tiles_amx.cl.
// A work-item splits the lines of its rows into parts, a chunk of k at a time, and multiplies them with its panels of B.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * B[g, tap, k, n])
// A         hole A_ELEMENTS: the values f(A)[g, m, tap, k .. k + PV - 1] as `v`. Default, row-major: a[((g * M + m) * TAPS + tap) * K + k].
// B         b[((g * PANELS + n / 32) * TAPS + tap) * TAP_STEPS + k / 32] is a step of tiles_amx.cl, K padded with zeros to steps of
//           32, columns N .. 32 * PANELS - 1 zero.
//           With one product A may lie in memory as bfloat16: its vectors are then VALUES = ushort16, taken as they are.
// C         c[(g * M + m) * N + n], 16 columns at a time.
// local memory 4 * LOCAL_FLOATS bytes: the split chunk and sums, of two blocks, or of all if there are several chunks, or of a sweep.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param M 70 {1.., name} N 48 {1.., name} K 80 {1..}
//@include gemm_sizes
//@include amx/parts
//@include amx/columns
#define BLOCK_ROWS 32
#define STEP_TERMS 32
#define TAP_STEPS ((K + 31) / 32)
//@include amx/rows
//@param PV 16 {1, 16}  1 where neighbours in k are not neighbours in memory or K < 16
//@param VALUES float16 {float16, ushort16}  ushort16: bfloat16 with PRODUCTS = 1 and PV = 16
//@param CHUNK STEPS {1..STEPS}  steps of k that are split at a time: all, TAPS * TAP_STEPS, where they fit
//@param SWEEP 0 {0, 1}  1: a block of rows meets all panels before the next block does, and its results are stored row by row; for one chunk
//                    and weights that stay in the second-level cache
#define CHUNKED (CHUNK < STEPS)
#define SUMS (CHUNKED ? MT * NP : SWEEP ? NP : 2)
// Where the sums of the `at`-th block of a work-item lie, of rows `i_block` and columns `panel`.
#define SUMS_OF(at, i_block, panel) (CHUNKED ? (i_block) * NP + (panel) - panel_begin : SWEEP ? (panel) - panel_begin : (at) & 1)
// Floats from one block of sums to the next: rows of a sweep's do not share their sets of the first-level cache.
#define SUM (SWEEP ? 1040 : 1024)
#define LOCAL_FLOATS (16 + SUMS * SUM + MT * CHUNK * STEP / 2)
#define SIXTEEN half_line[h]
#define FIRST_COLUMN panel * 32
#define SUMS_AT(i, j) vload16(i * 2 + j, from)
#define ROW_OF_C c_row

void contraction_tile(const __global float* restrict a, const __global ushort* restrict b,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_begin = panel_block * NP, panel_end = min(PANELS, panel_begin + NP);
  const int m_begin = FIRST_BLOCK(row_block) * 32, m_end = min(M, FIRST_BLOCK(row_block + 1) * 32);
  const int row_blocks = (m_end - m_begin + 31) / 32, split_rows = row_blocks * 32;
  // What is multiplied before something is stored: blocks, one after another, or rows of blocks in a sweep.
  const int units = row_blocks * (SWEEP ? 1 : panel_end - panel_begin);
  __local float* sums = space + (64 - ((size_t)space & 63)) / 4;
  __local ushort* block = (__local ushort*)(sums + SUMS * SUM);
  const __global ushort* w = 0;
  //@hole B_POINTER
  w = b + (size_t)g * PANELS * (STEPS * STEP);
  //@end
  oclc_tiles_open();
  for (int s_begin = 0; s_begin < STEPS; s_begin += CHUNK) {
    const int s_end = min(STEPS, s_begin + CHUNK);
    for (int r = 0; r < split_rows; ++r) {
      // Surplus rows of the last block repeat row M - 1 and are not stored.
      const int m = min(m_begin + r, M - 1);
      __local ushort* line = block + r / 32 * (CHUNK * STEP);
      for (int s = s_begin; s < s_end; ++s, line += STEP) {
        const int tap = s / TAP_STEPS, k0 = s % TAP_STEPS * 32;
        VALUES half_line[2];
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          half_line[h] = 0;
          const int k_first = k0 + h * 16;
          //@include amx/sixteen
        }
        SPLIT(half_line[0], half_line[1], line, r % 32, 1024);
      }
    }
    const int steps = s_end - s_begin;
    for (int at = 0; at < units + !SWEEP; ++at) {
      const int i_block = at % row_blocks, p_begin = panel_begin + (SWEEP ? 0 : at / row_blocks), p_end = SWEEP ? panel_end : p_begin + 1;
      const int pieces = at == units ? 1 : SWEEP ? p_end - p_begin + 1 : min(steps, PIECES);
      for (int q = 0; q < pieces; ++q) {
        const int panel = SWEEP ? p_begin + q : p_begin;
        if (at < units && panel < p_end) {
          const int begin = SWEEP ? 0 : steps * q / pieces, end = SWEEP ? steps : steps * (q + 1) / pieces;
          __local float* to = sums + SUMS_OF(at, i_block, panel) * SUM;
          const __global ushort* from = w + ((size_t)panel * STEPS + s_begin + begin) * STEP;
          // One block reads each panel once, as it comes from memory: far ahead of a long one there is no room.
          const int part = MT == 1 ? -1 : i_block - (p_begin == panel_begin);
          if (begin == 0) oclc_tiles_begin(to, s_begin == 0);
          MULTIPLY(to, block + (i_block * CHUNK + begin) * STEP, 0, 1, 1024, STEP, from, end - begin,
                   oclc_tiles_share(part, SPREAD, p_end == panel_end),
                   oclc_tiles_soon(from, part, SPREAD, STEPS * STEP, begin * STEP, steps * STEP));
          if (end == steps) oclc_tiles_end(to);
        }
        const int stored = SWEEP ? at : at - 1;
        if (s_end < STEPS || stored < 0 || (SWEEP && q < pieces - 1)) continue;
        const int stored_block = stored % row_blocks, m0 = m_begin + stored_block * 32;
        const int stored_panel = panel_begin + (SWEEP ? 0 : stored / row_blocks), stored_end = SWEEP ? panel_end : stored_panel + 1;
        const int i_end = min(SWEEP ? 32 : 32 * (q + 1) / pieces, m_end - m0);
        for (int i = SWEEP ? 0 : 32 * q / pieces; i < i_end; ++i) {
          const int m = m0 + i;
          //@hole C_ROW
          __global float* c_row = c + (size_t)(g * M + m) * N;
          //@end
          for (int panel = stored_panel; panel < stored_end; ++panel) {
            const __local float* from = sums + SUMS_OF(stored, stored_block, panel) * SUM;
            //@include amx/two_vectors
          }
        }
      }
    }
  }
  oclc_tiles_close();
}
