// Convolution of few channels on a CPU's tile units by bfloat16 parts of floats, see tiles_amx.cl. A work-item copies a window of the
// image, plane by plane, and from it the patches of its output positions: all taps of all channels are the terms of one sum.
//
// formula   C[m,n] = epilogue(sum over c < IC, ky < KH, kx < KW of X[image, c, y * SY + ky * DY, x * SX + kx] * B[c,ky,kx,n]),
//           m = (image * OH + y) * OW + x, positions of X in the padded image, zeros outside of Y_FIRST .. Y_LAST, X_FIRST .. X_LAST
// X         hole A_ROW: pointer `src` to position 0 of row y of channel c; position x lies A_X elements behind for each x. Default:
//           a dense [image][c][H][W] with PAD zeros around it. With one product it may lie in memory as bfloat16, PART = 1.
// window    window[(c * WH + wy) * WW + x], of VALUE: floats, with one product bfloat16.
// patches   patches[i * TERMS + (c * KH + ky) * KW + kx], TERMS = STEPS * 32, from IC * KH * KW on zeros. With one product they are
//           lines of A as they lie; else their 32 lines are split.
// B         b[n / 32 * STEPS + k / 32] is a step of tiles_amx.cl, terms k in the order of a patch, padded with zeros.
// C         c[m * N + n], 16 columns at a time.
// local memory 4 * LOCAL_FLOATS bytes: sums of one or two blocks, the window, the patches of a block or of all, and what is split.
// launch: IMAGES * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param IMAGES 1 {1.., name} IC 3 {1..} N 48 {1..}  images, channels, features
//@include image
//@param A_X 1 {0..}  from a column of the image to the next
//@include amx/parts
//@include amx/columns
//@param VALUE float {float, ushort} PART 0 {0, 1}  ushort with one product; 1: X lies in memory as bfloat16, with one product
//@param SEGMENT 4 {4, 8, 16}  elements that are copied at a time, at most twice KW
//@param ROWS 4 {1..}  output rows of a work-item
//@param INDEX int {int, long}  type of indices into C
#define STEPS ((IC * KH * KW + 31) / 32)
#define TERMS (STEPS * 32)
#define ROW_BLOCKS ((OH + ROWS - 1) / ROWS)
#define WH ((ROWS - 1) * SY + (KH - 1) * DY + 1)
#define WW ((OW - 1) * SX + KW)
#define X_END (X_LAST < WW ? X_LAST + 1 : WW)
#define BLOCKS ((ROWS * OW + 31) / 32)
//@include amx/spread
#define SPREAD SPREAD_OF(BLOCKS)
// Copies of segments reach up to 15 elements over the end.
#define WINDOW_FLOATS (IC * WH * WW + 16)
#define PIECE(p) JOIN(vload, SEGMENT)(0, p)
#if PRODUCTS == 1
#define PATCH_FLOATS (BLOCKS * STEPS * 512 + 16)
#define SPLIT_FLOATS 0
#else
#define PATCH_FLOATS (STEPS * 1024 + 16)
#define SPLIT_FLOATS (BLOCKS * STEPS * STEP / 2)
#endif
// One block is multiplied while the one before is stored.
#define SUMS (BLOCKS * NP > 1 ? 2 : 1)
#define LOCAL_FLOATS (16 + SUMS * 1024 + WINDOW_FLOATS + PATCH_FLOATS + SPLIT_FLOATS)
#define FIRST_COLUMN stored_panel * 32
#define SUMS_AT(i, j) vload16(i * 2 + j, from)
#define ROW_OF_C c + (size_t)m * N

void contraction_tile(const __global float* restrict a, const __global ushort* restrict b,
                      __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  //@include amx/rows_of_image
  const int y_begin = row_block * ROWS, positions = min(OH - y_begin, ROWS) * OW;
  __local float* sums = space + (64 - ((size_t)space & 63)) / 4;
  __local ushort* split = (__local ushort*)(sums + SUMS * 1024);
  __local VALUE* patches = (__local VALUE*)(sums + SUMS * 1024 + SPLIT_FLOATS);
  __local VALUE* window = (__local VALUE*)(sums + SUMS * 1024 + SPLIT_FLOATS + PATCH_FLOATS);
  for (int ic = 0; ic < IC; ++ic) {
    for (int wy = 0; wy < WH; ++wy) {
      __local VALUE* restrict to = window + (ic * WH + wy) * WW;
      const int y = y_begin * SY + wy;
      if (y < Y_FIRST || y > Y_LAST) {
        for (int x = 0; x < WW; ++x) to[x] = 0;
        continue;
      }
      for (int x = 0; x < X_FIRST; ++x) to[x] = 0;
      //@hole A_ROW
      const __global float* src = a + ((image * IC + ic) * 9 + y - 1) * 9 - 1;
      //@end
#if PRODUCTS == 1 && PART == 0
      int x = X_FIRST;
      if (A_X == 1)
        for (; x + 16 <= X_END; x += 16) oclc_store(oclc_to_bf16(vload16(0, src + x)), to + x);
      for (; x < X_END; ++x) to[x] = oclc_to_bf16(src[x * A_X]);
#else
      for (int x = X_FIRST; x < X_END; ++x) to[x] = src[x * A_X];
#endif
      for (int x = X_END; x < WW; ++x) to[x] = 0;
    }
  }
  for (int p0 = 0; p0 < positions; p0 += 32) {
    __local VALUE* line = patches + (PRODUCTS == 1 ? p0 * TERMS : 0);
    for (int i = 0; i < 32; ++i, line += TERMS) {
      // Surplus lines of the last block repeat the last position and are not stored.
      const int p = min(p0 + i, positions - 1);
      const __local VALUE* from = window + p / OW * SY * WW + p % OW * SX;
      __local VALUE* to = line;
      // What a copy writes over the end of a row of taps, the next one writes over.
      for (int ic = 0; ic < IC; ++ic) {
        #pragma unroll
        for (int ky = 0; ky < KH; ++ky, to += KW) {
          const __local VALUE* row = from + (ic * WH + ky * DY) * WW;
          #pragma unroll
          for (int s = 0; s < KW; s += SEGMENT) oclc_store(PIECE(row + s), to + s);
        }
      }
      if (IC * KH * KW < TERMS) oclc_store((JOIN(VALUE, 16))(0), line + IC * KH * KW);
      if (IC * KH * KW + 16 < TERMS) oclc_store((JOIN(VALUE, 16))(0), line + TERMS - 16);
    }
#if PRODUCTS != 1
    __local ushort* block = split + p0 / 32 * (STEPS * STEP);
    for (int i = 0; i < 32; ++i)
      for (int s = 0; s < STEPS; ++s)
        SPLIT(vload16(0, patches + i * TERMS + s * 32), vload16(1, patches + i * TERMS + s * 32), block + s * STEP, i, 1024);
#endif
  }
  oclc_tiles_open();
  // Beside each step some rows of the block before go through the epilogue: while the unit multiplies, vectors are computed and
  // stored.
  const int blocks = (positions + 31) / 32, all = (panel_end - panel_begin) * blocks;
  for (int at = 0; at <= all; ++at) {
    const int panel = panel_begin + at / blocks, block = at % blocks, steps = at == all ? 1 : STEPS;
    const __global ushort* w;
    //@hole B_POINTER
    w = b + (size_t)panel * (STEPS * STEP);
    //@end
    for (int s = 0; s < steps; ++s, w += STEP) {
      if (at < all) {
        __local float* to = sums + (at & 1) * 1024;
        const int part = block - (panel == panel_begin), share = oclc_tiles_share(part, SPREAD, panel + 1 == panel_end);
        const __global ushort* soon = oclc_tiles_soon(w, part, SPREAD, STEPS * STEP, s * STEP, STEPS * STEP);
        if (s == 0) oclc_tiles_begin(to, 1);
#if PRODUCTS == 1
        MULTIPLY(to, patches + block * 32 * TERMS + s * 32, 0, STEPS, 0, 32, w, 1, share, soon);
#else
        MULTIPLY(to, split + (block * STEPS + s) * STEP, 0, 1, 1024, STEP, w, 1, share, soon);
#endif
        if (s + 1 == steps) oclc_tiles_end(to);
      }
      if (at == 0) continue;
      const int p0 = (at - 1) % blocks * 32, stored_panel = panel_begin + (at - 1) / blocks;
      const __local float* from = sums + (at - 1 & 1) * 1024;
      const int i_end = min(32 * (s + 1) / steps, positions - p0);
      for (int i = 32 * s / steps; i < i_end; ++i) {
        const INDEX m = ((INDEX)image * OH + y_begin) * OW + p0 + i;
        //@include amx/two_vectors
      }
    }
  }
  oclc_tiles_close();
}
