// Convolution of few input channels on a CPU: a zero-padded window of the image in local memory, B packed at compile time or read
// in place.
//
// formula   C[image,oy,ox,o] = epilogue(sum over ic < IC, ky < KH, kx < KW of A[image, ic, y, x] * B[ic,ky,kx,o]),
//           y = oy * SY + ky * DY, x = ox * SX + kx * DX in coordinates of the padded image; A is 0 outside rows
//           Y_FIRST .. Y_LAST and columns X_FIRST .. X_LAST.
// A         A[image, ic, y, x] = src[x * A_X]; the hole A_ROW gives src for a row y of a channel. Default: NCHW.
// window    window[(ic * WH + wy) * WW + x], WH = (ROWS - 1) * SY + (KH - 1) * DY + 1 rows from y = oy * SY on,
//           WW = (PIXELS - 1) * SX + (KW - 1) * DX + 1 columns, PIXELS = OW rounded up to MR.
// B         b[((n / PW * IC * KH + ic * KH + ky) * KW + kx) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
//           With IN_PLACE b[ic * W_CHANNEL + ky * W_Y + kx * W_X + n], PW divides N.
// C         c[((image * OH + oy) * OW + ox) * N + o] (NHWC).      bias: PANELS * PW values (default epilogue).
// local memory 4 * IC * WH * WW bytes. launch: images * BANDS groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param IC 3 {1..} N 64 {1..}  input channels, features
//@param MR 6 {1..16} NV 4 {1..8}  pixels of a row and vectors of the register tile: MR * NV + NV + 1 <= vector registers
//@include vectors
//@include panels
//@include image
//@param A_X 1 {0..}  from a column of the image to the next
//@param ROWS 2 {1..}  output rows of a work-item
//@param IN_PLACE 0 {0, 1}  1: B is read where it lies
//@param W_CHANNEL N {0..} W_Y (KW * IC * N) {0..} W_X (IC * N) {0..}  elements between its channels, rows and columns of taps
//@param CHAIN TAP_ROWS {1..TAP_ROWS}  rows of taps, of a channel or with IN_PLACE of all, in the longest chain of fma; longer sums are added up
//                    from pieces
//@param INDEX int {int, long}  type of indices into A and C
#define TAP_ROWS (IN_PLACE ? KH : IC * KH)
#define BANDS ((OH + ROWS - 1) / ROWS)
#define PIXELS ((OW + MR - 1) / MR * MR)
#define WH ((ROWS - 1) * SY + (KH - 1) * DY + 1)
#define WW ((PIXELS - 1) * SX + (KW - 1) * DX + 1)
#define X_END (X_LAST < WW ? X_LAST + 1 : WW)
#define LOCAL_FLOATS (IC * WH * WW)
#define HAS_CHAINS CHAIN < TAP_ROWS

void contraction_window_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                             __global float* restrict c, int tile, __local float* restrict window) {
  const INDEX image = tile / BANDS;
  const int top = tile % BANDS * ROWS;
  for (int ic = 0; ic < IC; ++ic) {
    for (int wy = 0; wy < WH; ++wy) {
      __local float* restrict dst = window + (ic * WH + wy) * WW;
      const int y = top * SY + wy;
      if (y < Y_FIRST || y > Y_LAST) {
        for (int x = 0; x < WW; ++x) dst[x] = 0.0f;
        continue;
      }
      for (int x = 0; x < X_FIRST; ++x) dst[x] = 0.0f;
      //@hole A_ROW
      const __global float* src = a + ((image * IC + ic) * (Y_LAST - Y_FIRST + 1) + y - Y_FIRST) * (X_LAST - X_FIRST + 1) - X_FIRST;
      //@end
      for (int x = X_FIRST; x < X_END; ++x) dst[x] = src[x * A_X];
      for (int x = X_END; x < WW; ++x) dst[x] = 0.0f;
    }
  }
  for (int panel = 0; panel < PANELS; ++panel) {
    for (int oy = top; oy < min(OH, top + ROWS); ++oy) {
      for (int left = 0; left < OW; left += MR) {
        // Surplus pixels of the last tile are not stored.
        //@include zero_tiles
        //@hole B_POINTER
        const __global float* w = b + panel * (IN_PLACE ? PW : IC * KH * KW * PW);
        //@end
#if IN_PLACE
        // Taps outermost, then channels, as the weights lie.
        for (int row = 0; row < KH; ++row) {
          const __local float* p = window + ((oy - top) * SY + row * DY) * WW + left * SX;
          for (int kx = 0; kx < KW; ++kx) {
            #pragma unroll
            for (int ic = 0; ic < IC; ++ic) {
              //@include row_of_panel W="w + row * W_Y + kx * W_X + ic * W_CHANNEL"
              //@include multiply_add A="p[ic * (WH * WW) + i * SX + kx * DX]" C=NV
            }
          }
#else
        for (int row = 0; row < IC * KH; ++row) {
          const __local float* p = window + (row / KH * WH + (oy - top) * SY + row % KH * DY) * WW + left * SX;
          oclc_terms(acc, MR, NV, p[i * SX], p[i * SX + DX], w, PW, KW);
          if (!oclc_optimized) w += KW * PW;
          if (oclc_optimized) for (int kx = 0; kx < KW; ++kx) {
            //@include row_of_panel W=w
            //@include multiply_add A="p[i * SX + kx * DX]" C=NV
            w += PW;
          }
#endif
          if (CHAIN < TAP_ROWS && (row + 1) % CHAIN == 0) {
            //@include add_chain X=out Y=acc R=MR C=NV
          }
        }
        //@include add_last_chain
        #pragma unroll EPILOGUE_UNROLL
        for (int i = 0; i < MR; ++i) {
          if (OW % MR != 0 && left + i >= OW) break;
          const INDEX m = (image * OH + oy) * OW + left + i;
          #pragma unroll
          for (int j = 0; j < NV; ++j) {
            const int n = panel * PW + j * VW;
            if (N % PW != 0 && n >= N) break;
            VEC v = out[i][j];
            //@include epilogue_bias
          }
        }
      }
    }
  }
}
