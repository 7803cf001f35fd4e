// Convolution on a CPU's tile units by bfloat16 parts of floats, see tiles_amx.cl. A work-item splits the window of an image that its
// output rows read once, for all taps: a tap is an offset of lines.
//
// formula   C[m,n] = epilogue(sum over ky < KH, kx < KW, k < K of X[image, y * SY + ky * DY, x * SX + kx * DX, k] * B[ky, kx, k, n]),
//           m = (image * OH + y) * OW + x, positions of X in the padded image, zeros outside of Y_FIRST .. Y_LAST, X_FIRST .. X_LAST
// window    phase (py, px) < (SY, SX) holds positions (wy * SY + py, wx * SX + px) as lines wy * PITCH + wx; outputs y, x are lines
//           y * PITCH + x of sums, of which x >= OW are not stored. Zeros right of a row may be those left of the next one.
// X         hole A_PIXEL: pointer `src` to channel 0 of position (y, x). Default: a dense [image][H][W][K], one row and column of
//           zeros around it. With one product it may lie in memory as bfloat16, VALUES = ushort16.
// B         b[(n / 32 * TAPS + ky * KW + kx) * TAP_STEPS + k / 32] is a step of tiles_amx.cl, as in contraction_amx.cl.
// C         c[m * N + n], 16 columns at a time.      bias: 32 * PANELS values (default epilogue).
// parameter legal values (default)
//   IMAGES, OH, OW, N, K   images; output rows and columns; features; channels: at least 16
//   KH, KW, SY, SX, DY, DX  taps, strides, dilations; with a stride above 1 the dilation is 1
//   Y_FIRST, Y_LAST, X_FIRST, X_LAST, PITCH   see above; PITCH >= OW
//   PRODUCTS  6, 3, 1 (6)
//   VALUES    float16; ushort16: bfloat16 with PRODUCTS = 1 (float16)
//   ROWS, NP  output rows and panels of 32 columns of a work-item: at least 1
//   AT_ONCE   taps whose steps of a panel all blocks multiply before they go on: TAPS, or a divisor of it for panels of which two
//             would not stay in the second-level cache (TAPS)
// local memory 4 * LOCAL_FLOATS bytes: the window and two blocks of sums, or all blocks' if taps are not taken all at once.
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
#ifndef PRODUCTS
#define PRODUCTS 6
#endif
#ifndef VALUES
#define VALUES float16
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
#define PIECE (AT_ONCE * TAP_STEPS * STEP)
#define TAP_STEPS ((K + 31) / 32)
#define STEPS (TAPS * TAP_STEPS)
#define PARTS (PRODUCTS == 6 ? 3 : PRODUCTS == 3 ? 2 : 1)
#define STEP (PARTS * 1024)
#define PANELS ((N + 31) / 32)
#define ROW_BLOCKS ((OH + ROWS - 1) / ROWS)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define REACH ((KH - 1) * DY / SY * PITCH + (KW - 1) * DX / SX)
#define PHASE_USED (ROWS * PITCH + REACH)
#define PHASE_LINES ((ROWS * PITCH + 31) / 32 * 32 + REACH)
#define BLOCKS ((ROWS * PITCH + 31) / 32)
// Blocks of positions that ask for a part of the next panel.
#define SPREAD (BLOCKS >= 16 ? 16 : BLOCKS >= 8 ? 8 : BLOCKS >= 4 ? 4 : BLOCKS >= 2 ? 2 : 1)
#define LINES (SY * SX * PHASE_LINES)
#define WINDOW_STEP (PARTS * LINES * 32)
#define SUMS (PIECES > 1 ? BLOCKS : 2)
// Where the sums of the `at`-th block that is multiplied lie. The last rows of an image may be one block.
#define SUMS_OF(at, block, panel) (PIECES == 1 ? (at) & 1 : blocks == 1 ? (panel) & 1 : (block))
#define LOCAL_FLOATS (16 + SUMS * 1024 + TAP_STEPS * WINDOW_STEP / 2)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define SPLIT JOIN(oclc_split_, PRODUCTS)
#define MULTIPLY JOIN(oclc_tiles_multiply_, PRODUCTS)

void store_columns(float16 v, __global float* row, int n) {
  float lanes[16];
  vstore16(v, 0, lanes);
  for (int l = 0; l < 16 && n + l < N; ++l) row[n + l] = lanes[l];
}

void contraction_tile(const __global float* restrict a, const __global ushort* restrict b, const __global float* restrict bias,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@hole SIZES
  //@end
  const int image = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_begin = panel_block * NP, panel_end = min(PANELS, panel_begin + NP);
  const int y_begin = row_block * ROWS, y_count = min(OH - y_begin, ROWS);
  __local float* sums = space + (64 - ((size_t)space & 63)) / 4;
  __local ushort* window = (__local ushort*)(sums + SUMS * 1024);
  for (int phase = 0; phase < SY * SX; ++phase) {
    const int used = y_count * PITCH + REACH;
    for (int wy = 0; wy * PITCH < used; ++wy) {
      const int y = (y_begin + wy) * SY + phase / SX;
      const int wx_end = min(PITCH, used - wy * PITCH);
      for (int wx = 0; wx < wx_end; ++wx) {
        const int x = wx * SX + phase % SX;
        const int line = phase * PHASE_LINES + wy * PITCH + wx;
        __local ushort* to = window;
        if (y >= Y_FIRST && y <= Y_LAST && x >= X_FIRST && x <= X_LAST) {
          //@hole A_PIXEL
          const __global float* src = a + ((size_t)(image * 9 + y - 1) * 9 + x - 1) * K;
          //@end
          for (int k0 = 0; k0 < K / 32 * 32; k0 += 32, to += WINDOW_STEP)
            SPLIT(vload16(0, src + k0), vload16(1, src + k0), to, line, LINES * 32);
          if (K % 32 >= 16) {
            const VALUES rest = K % 16 == 0 ? (VALUES)(0) : oclc_first_lanes_after(vload16(0, src + K - 16), 16 - K % 16);
            SPLIT(vload16(0, src + K / 32 * 32), rest, to, line, LINES * 32);
          } else if (K % 32 > 0) {
            SPLIT(oclc_first_lanes_after(vload16(0, src + K - 16), 16 - K % 16), (VALUES)(0), to, line, LINES * 32);
          }
        } else {
          for (int s = 0; s < TAP_STEPS; ++s, to += WINDOW_STEP) SPLIT((VALUES)(0), (VALUES)(0), to, line, LINES * 32);
        }
      }
    }
  }
  oclc_tiles_open();
  // Panels, or the steps of some taps of one, that all blocks of positions multiply. Beside each tap some rows of the block before
  // go through the epilogue: while the unit multiplies, vectors are computed and stored.
  const int blocks = (y_count * PITCH + 31) / 32, first_piece = panel_begin * PIECES, all = (panel_end - panel_begin) * PIECES * blocks;
  for (int at = 0; at <= all; ++at) {
    const int piece = first_piece + at / blocks, panel = piece / PIECES, block = at % blocks, p0 = block * 32;
    const int tap_begin = piece % PIECES * AT_ONCE, tap_end = at == all ? tap_begin + 1 : tap_begin + AT_ONCE;
    const __global ushort* w;
    //@hole B_POINTER
    w = b + (size_t)panel * (STEPS * STEP);
    //@end
    w += tap_begin * (TAP_STEPS * STEP);
    for (int tap = tap_begin; tap < tap_end; ++tap, w += TAP_STEPS * STEP) {
      if (at < all) {
        __local float* to = sums + SUMS_OF(at, block, panel) * 1024;
        const int part = block - (piece == first_piece),
                  share = oclc_tiles_share(part, SPREAD, piece + 1 == panel_end * PIECES);
        const int ky = tap / KW, kx = tap % KW;
        if (tap == tap_begin) oclc_tiles_begin(to, tap == 0);
        MULTIPLY(to, window, (ky * DY % SY * SX + kx * DX % SX) * PHASE_LINES + ky * DY / SY * PITCH + kx * DX / SX + p0, 1,
                 LINES * 32, WINDOW_STEP, w, TAP_STEPS, share,
                 oclc_tiles_soon(w, part, SPREAD, PIECE, (tap - tap_begin) * (TAP_STEPS * STEP), PIECE));
        if (tap + 1 == tap_end) oclc_tiles_end(to);
      }
      const int before = at - 1, stored_piece = first_piece + before / blocks, stored = before % blocks;
      if (before < 0 || stored_piece % PIECES < PIECES - 1) continue;
      const int stored_panel = stored_piece / PIECES, i_begin = 32 * (tap - tap_begin) / (tap_end - tap_begin),
                i_end = 32 * (tap - tap_begin + 1) / (tap_end - tap_begin);
      const __local float* from = sums + SUMS_OF(before, stored, stored_panel) * 1024;
      int y = (stored * 32 + i_begin) / PITCH, x = (stored * 32 + i_begin) % PITCH;
      for (int i = i_begin; i < i_end && y < y_count; ++i) {
        if (x < OW) {
          const INDEX m = ((INDEX)image * OH + y_begin + y) * OW + x;
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int n = stored_panel * 32 + j * 16;
            if (N % 32 != 0 && n >= N) break;
            float16 v = vload16(i * 2 + j, from);
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
__kernel void contraction(const __global float* restrict a, const __global ushort* restrict b, const __global float* restrict bias,
                          __global float* restrict c) {
  __local float space[LOCAL_FLOATS];
  contraction_tile(a, b, bias, c, (int)get_group_id(0), space);
}
