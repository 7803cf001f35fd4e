// Contraction on a CPU's tile units by integers of three bytes: GEMM and convolution by rows, see digits_amx.cl. A work-item finds the
// largest of each of its rows, makes digits of them, and multiplies them with its panels of B: half the products and bytes of three
// parts of bfloat16, with errors relative to the largest of a row, 1e-6 of a usual row's results.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * B[g, tap, k, n])
// A         hole A_ELEMENTS as in contraction_amx.cl, values of float.
// B         b[((g * PANELS + n / 32) * TAPS + tap) * TAP_STEPS + k / 64] is a step of digits_amx.cl, K padded with zeros to steps of
//           64, columns N .. 32 * PANELS - 1 zero; units[g * 32 * PANELS + n]: 65536 units of the column.
// C         c[(g * M + m) * N + n], 16 columns at a time.
// local memory 4 * LOCAL_FLOATS bytes: a row, the digits of all rows and their units, sums of two blocks, with several chunks all results.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param M 70 {1.., name} N 48 {1.., name} K 80 {1..43000}  TAPS * K up to 43,000
//@include gemm_sizes
//@include amx/columns
#define BLOCK_ROWS 16
#define STEP_TERMS 64
#define TAP_STEPS ((K + 63) / 64)
//@include amx/rows
//@param PV 16 {1, 16}  1 where neighbours in k are not neighbours in memory or K < 16
//@param CHUNK STEPS {1..STEPS}  steps of which digits are made at a time, with units of their own; all, TAPS * TAP_STEPS, where they fit
#define CHUNKED (CHUNK < STEPS)
#define SUM 1536
#define STEP (16 * OCLC_DIGITS_LINE)
#define LOCAL_FLOATS (16 + 2 * SUM + MT * 16 + CHUNK * 64 + CHUNKED * MT * NP * 512 + MT * CHUNK * (STEP / 4))
#define VALUES float16
#define SIXTEEN quarter

void contraction_tile(const __global float* restrict a, const __global char* restrict b, const __global float* restrict units,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_begin = tile % PANEL_BLOCKS * NP, panel_end = min(PANELS, panel_begin + NP);
  const int m_begin = FIRST_BLOCK(row_block) * 16, m_end = min(M, FIRST_BLOCK(row_block + 1) * 16);
  const int row_blocks = (m_end - m_begin + 15) / 16, blocks = row_blocks * (panel_end - panel_begin);
  __local int* sums = (__local int*)(space + (64 - ((size_t)space & 63)) / 4);
  __local float* row_units = (__local float*)sums + 2 * SUM;
  __local float* row = row_units + MT * 16;
  __local float16* results = (__local float16*)(row + CHUNK * 64);
  __local uchar* digits = (__local uchar*)(results + CHUNKED * MT * NP * 32);
  const __global char* w = 0;
  const __global float* column_units = 0;
  //@hole B_POINTER
  w = b + (size_t)g * PANELS * (STEPS * 6144);
  column_units = units + g * (PANELS * 32);
  //@end
  oclc_tiles_open();
  for (int s_begin = 0; s_begin < STEPS; s_begin += CHUNK) {
    const int s_end = min(STEPS, s_begin + CHUNK), steps = s_end - s_begin;
    for (int r = 0; r < row_blocks * 16; ++r) {
      // Surplus rows of the last block repeat row M - 1 and are not stored.
      const int m = min(m_begin + r, M - 1);
      int16 bits = 0;
      for (int s = s_begin; s < s_end; ++s) {
        const int tap = s / TAP_STEPS, k0 = s % TAP_STEPS * 64;
        #pragma unroll
        for (int h = 0; h < 4; ++h) {
          float16 quarter = 0;
          const int k_first = k0 + h * 16;
          //@include amx/sixteen
          ((__local float16*)row)[(s - s_begin) * 4 + h] = quarter;
          bits = max(bits, as_int16(quarter) & 0x7fffffff);
        }
      }
      const int largest = oclc_digits_bits(bits);
      const float scale = oclc_digits_scale(largest);
      row_units[r] = oclc_digits_unit(largest);
      for (int s = 0; s < steps; ++s) {
        const __local float16* x = (const __local float16*)row + s * 4;
        oclc_digits_line(x[0], x[1], x[2], x[3], scale, digits + (r / 16 * CHUNK + s) * STEP, r % 16, 1024);
      }
    }
    for (int at = 0; at <= blocks; ++at) {
      const int i_block = at % row_blocks, panel = panel_begin + at / row_blocks, pieces = at == blocks ? 1 : min(steps, PIECES);
      __local int* to = sums + (at & 1) * SUM;
      for (int q = 0; q < pieces; ++q) {
        if (at < blocks) {
          const int begin = steps * q / pieces, end = steps * (q + 1) / pieces;
          const __global char* from = w + ((size_t)panel * STEPS + s_begin + begin) * 6144;
          // One block reads each panel once, as it comes from memory: far ahead of a long one there is no room.
          const int part = MT == 1 ? -1 : i_block - (panel == panel_begin);
          if (begin == 0) oclc_digits_begin(to, 1);
          oclc_digits_multiply(to, digits + (i_block * CHUNK + begin) * STEP, 1024, STEP, from, end - begin,
                               oclc_tiles_share(part, SPREAD, panel + 1 == panel_end),
                               oclc_tiles_soon((const __global ushort*)from, part, SPREAD, STEPS * 3072, begin * 3072, steps * 3072));
          if (end == steps) oclc_digits_end(to);
        }
        if (at == 0) continue;
        const int stored_block = (at - 1) % row_blocks, m0 = m_begin + stored_block * 16;
        const int n0 = (panel_begin + (at - 1) / row_blocks) * 32, i_end = min(16 * (q + 1) / pieces, m_end - m0);
        const __local int* from = sums + ((at - 1) & 1) * SUM;
        for (int i = 16 * q / pieces; i < i_end; ++i) {
          const int m = m0 + i;
          //@include row_of_c
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int n = n0 + j * 16;
            if (N % 32 != 0 && n >= N) break;
            float16 v = oclc_digits_sum(from, i, j) * vload16(0, column_units + n) * row_units[stored_block * 16 + i];
            if (CHUNKED) {
              __local float16* result = results + ((at - 1) * 16 + i) * 2 + j;
              if (s_begin > 0) v += *result;
              if (s_end < STEPS) {
                *result = v;
                continue;
              }
            }
            //@include epilogue
          }
        }
      }
    }
  }
  oclc_tiles_close();
}
