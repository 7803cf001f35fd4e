// Convolution on a CPU's tile units by integers of three bytes, see digits_amx.cl and contraction_window_amx.cl, of which this has the
// geometry, holes and parameters, but for PRODUCTS and VALUES. A work-item finds the largest number of its window first: one unit serves
// all of it, so that taps are offsets of lines. A result is NaN where its taps meet an infinity or NaN.
//
// B         b[(n / 32 * TAPS + ky * KW + kx) * TAP_STEPS + k / 64] is a step of digits_amx.cl; units[n]: 65536 units of the column.
// K         at least 16; TAPS * K up to 43,000
// local memory 4 * LOCAL_FLOATS bytes: units of lines, the window, and two blocks of sums, or all blocks' if taps are not taken all at once.
// launch: IMAGES * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
#define BLOCK_LINES 16
#define STEP_ELEMENTS 6144
#define TAP_STEPS ((K + 63) / 64)
//@kernel 1, LOCAL_FLOATS
//@include amx/window
#define WINDOW_STEP (LINES * OCLC_DIGITS_LINE)
#define SUM 1536
#define LOCAL_FLOATS (16 + SUMS * SUM + (LINES + 15) / 16 * 16 + TAP_STEPS * WINDOW_STEP / 4)
#define SUM_TYPE int
#define WEIGHT char
#define HAS_UNITS 1
#define BEGIN oclc_digits_begin
#define END oclc_digits_end
#define SOON oclc_tiles_soon((const __global ushort*)w, part, SPREAD, PIECE / 2, (tap - tap_begin) * (TAP_STEPS * 3072), PIECE / 2)
#define MULTIPLY_TAP oclc_digits_multiply(to, window + (TAP_LINE + p0) * OCLC_DIGITS_PITCH, LINES * 64, WINDOW_STEP, w, TAP_STEPS, share, SOON)
#define FIRST_COLUMN stored_panel * 32
#define SUMS_AT(i, j) oclc_digits_sum(from, i, j) * vload16(0, column_units + n) * line_units[stored * 16 + i]
#define ROW_OF_C c + (size_t)m * N
// Channels k .. k + 15 of the pixel at src, zeros behind the last.
#define LAST_CHANNELS oclc_first_lanes_after(vload16(0, src + K - 16), 16 - K % 16)
#define CHANNELS(k) ((k) + 16 <= K ? vload16(0, src + (k)) : (k) < K ? LAST_CHANNELS : (float16)(0))

void contraction_tile(const __global float* restrict a, const __global char* restrict b, const __global float* restrict units,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  //@include amx/rows_of_image
  const int y_begin = row_block * ROWS, y_count = min(OH - y_begin, ROWS);
  __local int* sums = (__local int*)(space + (64 - ((size_t)space & 63)) / 4);
  __local float* line_units = (__local float*)sums + SUMS * SUM;
  __local uchar* window = (__local uchar*)(line_units + (LINES + 15) / 16 * 16);
  // Twice over the window: for its largest finite number, and for digits.
  const int used = y_count * PITCH + REACH;
  int16 bits = 0;
  int finite = 1;
  float scale = 0, unit = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int phase = 0; phase < SY * SX; ++phase) {
      for (int wy = 0; wy * PITCH < used; ++wy) {
        const int y = (y_begin + wy) * SY + phase / SX;
        const int wx_end = min(PITCH, used - wy * PITCH);
        for (int wx = 0; wx < wx_end; ++wx) {
          const int x = wx * SX + phase % SX;
          const int line = phase * PHASE_LINES + wy * PITCH + wx;
          __local uchar* to = window;
          if (y >= Y_FIRST && y <= Y_LAST && x >= X_FIRST && x <= X_LAST) {
            //@hole A_PIXEL
            const __global float* src = a + ((size_t)(image * 9 + y - 1) * 9 + x - 1) * K;
            //@end
            if (pass == 0) {
              int16 all = 0;
              #pragma unroll 4
              for (int k = 0; k < K; k += 16) all = max(all, as_int16(vload16(0, src + min(k, K - 16))) & 0x7fffffff);
              const int good = oclc_digits_bits(all) < 0x7f800000;
              if (good) bits = max(bits, all);
              line_units[line] = good;
              finite &= good;
            } else {
              for (int k = 0; k < K; k += 64, to += WINDOW_STEP)
                oclc_digits_line(CHANNELS(k), CHANNELS(k + 16), CHANNELS(k + 32), CHANNELS(k + 48), scale, to, line, LINES * 64);
            }
          } else if (pass == 0) {
            line_units[line] = 1;
          } else {
            for (int s = 0; s < TAP_STEPS; ++s, to += WINDOW_STEP)
              oclc_digits_line((float16)(0), (float16)(0), (float16)(0), (float16)(0), 0, to, line, LINES * 64);
          }
        }
      }
    }
    if (pass > 0) break;
    const int largest = oclc_digits_bits(bits);
    scale = oclc_digits_scale(largest);
    unit = oclc_digits_unit(largest);
  }
  // The unit of a position, NaN where a tap of it meets what is not finite: in place of its first tap's, behind which no other looks.
  for (int p = 0; p < y_count * PITCH; ++p) {
    int good = 1;
    for (int tap = 0; !finite && tap < TAPS; ++tap) {
      const int ky = tap / KW, kx = tap % KW;
      if (p % PITCH < OW) good &= line_units[TAP_LINE + p] != 0;
    }
    line_units[p] = good ? unit : as_float(0x7fc00000);
  }
  //@include amx/window_product
}
