// Convolution on a CPU's tile units by integers of three bytes, see digits_amx.cl and contraction_window_amx.cl, of which this has the
// geometry, holes and parameters, but for PRODUCTS and VALUES. A work-item finds the largest number of its window first: one unit serves
// all of it, so that taps are offsets of lines. A result is NaN where its taps meet an infinity or NaN.
//
// B         b[(n / 32 * TAPS + ky * KW + kx) * TAP_STEPS + k / 64] is a step of digits_amx.cl; units[n]: 65536 units of the column.
// K         at least 16; TAPS * K up to 43,000
// local memory 4 * LOCAL_FLOATS bytes: units of lines, the window, and two blocks of sums, or all blocks' if taps are not taken all at once.
// launch: IMAGES * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
#ifndef IMAGES
#define IMAGES 1
#endif
#ifndef OH
#define OH 9
#endif
#ifndef OW
#define OW 9
#endif
#ifndef N
#define N 48
#endif
#ifndef K
#define K 48
#endif
#ifndef KH
#define KH 3
#endif
#ifndef KW
#define KW 3
#endif
#ifndef SY
#define SY 1
#endif
#ifndef SX
#define SX 1
#endif
#ifndef DY
#define DY 1
#endif
#ifndef DX
#define DX 1
#endif
#ifndef Y_FIRST
#define Y_FIRST 1
#endif
#ifndef Y_LAST
#define Y_LAST 9
#endif
#ifndef X_FIRST
#define X_FIRST 1
#endif
#ifndef X_LAST
#define X_LAST 9
#endif
#ifndef PITCH
#define PITCH 10
#endif
#ifndef ROWS
#define ROWS 4
#endif
#ifndef NP
#define NP 1
#endif
#ifndef INDEX
#define INDEX int
#endif
#define TAPS (KH * KW)
#ifndef AT_ONCE
#define AT_ONCE TAPS
#endif
#define PIECES (TAPS / AT_ONCE)
#define PIECE (AT_ONCE * TAP_STEPS * 6144)
#define TAP_STEPS ((K + 63) / 64)
#define STEPS (TAPS * TAP_STEPS)
#define PANELS ((N + 31) / 32)
#define ROW_BLOCKS ((OH + ROWS - 1) / ROWS)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define REACH ((KH - 1) * DY / SY * PITCH + (KW - 1) * DX / SX)
#define BLOCKS ((ROWS * PITCH + 15) / 16)
#define PHASE_LINES (BLOCKS * 16 + REACH)
// Blocks of positions that ask for a part of the next panel.
#define SPREAD (BLOCKS >= 16 ? 16 : BLOCKS >= 8 ? 8 : BLOCKS >= 4 ? 4 : BLOCKS >= 2 ? 2 : 1)
#define LINES (SY * SX * PHASE_LINES)
#define WINDOW_STEP (LINES * OCLC_DIGITS_LINE)
#define SUM 1536
#define SUMS (PIECES > 1 ? BLOCKS : 2)
// Where the sums of the `at`-th block that is multiplied lie. The last rows of an image may be one block.
#define SUMS_OF(at, block, panel) (PIECES == 1 ? (at) & 1 : blocks == 1 ? (panel) & 1 : (block))
#define LOCAL_FLOATS (16 + SUMS * SUM + (LINES + 15) / 16 * 16 + TAP_STEPS * WINDOW_STEP / 4)
// The line of a window that tap (ky, kx) meets for its position 0.
#define TAP_LINE(ky, kx) (((ky) * DY % SY * SX + (kx) * DX % SX) * PHASE_LINES + (ky) * DY / SY * PITCH + (kx) * DX / SX)
// Channels k .. k + 15 of the pixel at src, zeros behind the last.
#define LAST_CHANNELS oclc_first_lanes_after(vload16(0, src + K - 16), 16 - K % 16)
#define CHANNELS(k) ((k) + 16 <= K ? vload16(0, src + (k)) : (k) < K ? LAST_CHANNELS : (float16)(0))

void store_columns(float16 v, __global float* row, int n) {
  float lanes[16];
  vstore16(v, 0, lanes);
  for (int l = 0; l < 16 && n + l < N; ++l) row[n + l] = lanes[l];
}

void contraction_tile(const __global float* restrict a, const __global char* restrict b, const __global float* restrict units,
                      const __global float* restrict bias, __global float* restrict c, int tile, __local float* restrict space) {
  //@hole SIZES
  //@end
  const int image = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_begin = panel_block * NP, panel_end = min(PANELS, panel_begin + NP);
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
    for (int tap = 0; !finite && tap < TAPS; ++tap)
      if (p % PITCH < OW) good &= line_units[TAP_LINE(tap / KW, tap % KW) + p] != 0;
    line_units[p] = good ? unit : as_float(0x7fc00000);
  }
  oclc_tiles_open();
  // Panels, or the steps of some taps of one, that all blocks of positions multiply. Beside each tap some rows of the block before
  // go through the epilogue: while the unit multiplies, vectors are computed and stored.
  const int blocks = (y_count * PITCH + 15) / 16, first_piece = panel_begin * PIECES, all = (panel_end - panel_begin) * PIECES * blocks;
  for (int at = 0; at <= all; ++at) {
    const int piece = first_piece + at / blocks, panel = piece / PIECES, block = at % blocks, p0 = block * 16;
    const int tap_begin = piece % PIECES * AT_ONCE, tap_end = at == all ? tap_begin + 1 : tap_begin + AT_ONCE;
    const __global char* w;
    const __global float* column_units;
    //@hole B_POINTER
    w = b + (size_t)panel * (STEPS * 6144);
    column_units = units;
    //@end
    w += tap_begin * (TAP_STEPS * 6144);
    for (int tap = tap_begin; tap < tap_end; ++tap, w += TAP_STEPS * 6144) {
      if (at < all) {
        __local int* to = sums + SUMS_OF(at, block, panel) * SUM;
        const int part = block - (piece == first_piece),
                  share = oclc_tiles_share(part, SPREAD, piece + 1 == panel_end * PIECES);
        if (tap == tap_begin) oclc_digits_begin(to, tap == 0);
        oclc_digits_multiply(to, window + (TAP_LINE(tap / KW, tap % KW) + p0) * OCLC_DIGITS_PITCH, LINES * 64,
                             WINDOW_STEP, w, TAP_STEPS, share,
                             oclc_tiles_soon((const __global ushort*)w, part, SPREAD, PIECE / 2, (tap - tap_begin) * (TAP_STEPS * 3072),
                                             PIECE / 2));
        if (tap + 1 == tap_end) oclc_digits_end(to);
      }
      const int before = at - 1, stored_piece = first_piece + before / blocks, stored = before % blocks;
      if (before < 0 || stored_piece % PIECES < PIECES - 1) continue;
      const int stored_panel = stored_piece / PIECES, i_begin = 16 * (tap - tap_begin) / (tap_end - tap_begin),
                i_end = 16 * (tap - tap_begin + 1) / (tap_end - tap_begin);
      const __local int* from = sums + SUMS_OF(before, stored, stored_panel) * SUM;
      int y = (stored * 16 + i_begin) / PITCH, x = (stored * 16 + i_begin) % PITCH;
      for (int i = i_begin; i < i_end && y < y_count; ++i) {
        if (x < OW) {
          const INDEX m = ((INDEX)image * OH + y_begin + y) * OW + x;
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int n = stored_panel * 32 + j * 16;
            if (N % 32 != 0 && n >= N) break;
            float16 v = oclc_digits_sum(from, i, j) * vload16(0, column_units + n) * line_units[stored * 16 + i];
            //@hole EPILOGUE
            v += vload16(0, bias + n);
            //@end
            //@hole STORE
            store_columns(v, c + (size_t)m * N, n);
            //@end
          }
        }
        if (++x == PITCH) x = 0, ++y;
      }
    }
  }
  oclc_tiles_close();
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction(const __global float* restrict a, const __global char* restrict b, const __global float* restrict units,
                          const __global float* restrict bias, __global float* restrict c) {
  __local float space[LOCAL_FLOATS];
  contraction_tile(a, b, units, bias, c, (int)get_group_id(0), space);
}
