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
// C         c[m * N + n], 16 columns at a time.
// local memory 4 * LOCAL_FLOATS bytes: the window and two blocks of sums, or all blocks' if taps are not taken all at once.
// launch: IMAGES * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@include amx/parts
//@param VALUES float16 {float16, ushort16}  ushort16: bfloat16 with PRODUCTS = 1
#define BLOCK_LINES 32
#define STEP_ELEMENTS STEP
#define TAP_STEPS ((K + 31) / 32)
//@include amx/window
#define WINDOW_STEP (PARTS * LINES * 32)
#define SUM 1024
#define LOCAL_FLOATS (16 + SUMS * 1024 + TAP_STEPS * WINDOW_STEP / 2)
#define SUM_TYPE float
#define WEIGHT ushort
#define HAS_UNITS 0
#define BEGIN oclc_tiles_begin
#define END oclc_tiles_end
#define SOON oclc_tiles_soon(w, part, SPREAD, PIECE, (tap - tap_begin) * (TAP_STEPS * STEP), PIECE)
#define MULTIPLY_TAP MULTIPLY(to, window, TAP_LINE + p0, 1, LINES * 32, WINDOW_STEP, w, TAP_STEPS, share, SOON)
#define FIRST_COLUMN stored_panel * 32
#define SUMS_AT(i, j) vload16(i * 2 + j, from)
#define ROW_OF_C c + (size_t)m * N

void contraction_tile(const __global float* restrict a, const __global ushort* restrict b,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  //@include amx/rows_of_image
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
  //@include amx/window_product
}
