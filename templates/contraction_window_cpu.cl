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
// C         c[((image * OH + oy) * OW + ox) * C_STEP + o] (NHWC).      bias: PANELS * PW values (default epilogue).
// parameter legal values (default)
//   IC, KH, KW, SY, SX, DY, DX, OH, OW, N   the shape (first layer of a residual network)
//   Y_FIRST, Y_LAST, X_FIRST, X_LAST, A_X   the image (224x224, padding 3)
//   VW      4, 8, 16: vector width of the target
//   MR, NV  pixels of a row and vectors of the register tile: MR * NV + NV + 1 <= vector registers (6, 4)
//   ROWS    output rows of a work-item (2)
//   IN_PLACE  1: B is read where it lies (0); W_CHANNEL, W_Y, W_X: elements between its channels, rows and columns of taps
//   CHAIN   rows of taps, of a channel or with IN_PLACE of all, in the longest chain of fma; longer sums are added up from
//           pieces (all)
//   INDEX   int, long: type of indices into A and C (int)
//   EPILOGUE_UNROLL  MR: the epilogue is written out; 1: small code, for an expensive one (MR)
// local memory 4 * IC * WH * WW bytes. launch: images * BANDS groups of one work-item.
#ifndef IC
#define IC 3
#endif
#ifndef KH
#define KH 7
#endif
#ifndef KW
#define KW 7
#endif
#ifndef SY
#define SY 2
#endif
#ifndef SX
#define SX 2
#endif
#ifndef DY
#define DY 1
#endif
#ifndef DX
#define DX 1
#endif
#ifndef OH
#define OH 112
#endif
#ifndef OW
#define OW 112
#endif
#ifndef N
#define N 64
#endif
#ifndef Y_FIRST
#define Y_FIRST 3
#endif
#ifndef Y_LAST
#define Y_LAST 226
#endif
#ifndef X_FIRST
#define X_FIRST 3
#endif
#ifndef X_LAST
#define X_LAST 226
#endif
#ifndef A_X
#define A_X 1
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#define MR 6
#endif
#ifndef NV
#define NV 4
#endif
#ifndef ROWS
#define ROWS 2
#endif
#ifndef INDEX
#define INDEX int
#endif
#ifndef EPILOGUE_UNROLL
#define EPILOGUE_UNROLL MR
#endif
#ifndef C_STEP
#define C_STEP N
#endif
#ifndef IN_PLACE
#define IN_PLACE 0
#endif
#define TAP_ROWS (IN_PLACE ? KH : IC * KH)
#ifndef CHAIN
#define CHAIN TAP_ROWS
#endif
#ifndef W_CHANNEL
#define W_CHANNEL N
#endif
#ifndef W_Y
#define W_Y (KW * IC * N)
#endif
#ifndef W_X
#define W_X (IC * N)
#endif
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
#define BANDS ((OH + ROWS - 1) / ROWS)
#define PIXELS ((OW + MR - 1) / MR * MR)
#define WH ((ROWS - 1) * SY + (KH - 1) * DY + 1)
#define WW ((PIXELS - 1) * SX + (KW - 1) * DX + 1)
#define X_END (X_LAST < WW ? X_LAST + 1 : WW)
#define LOCAL_FLOATS (IC * WH * WW)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)

void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}

void contraction_window_tile(const __global float* restrict a, const __global float* restrict b,
                             const __global float* restrict bias, __global float* restrict c, int tile,
                             __local float* restrict window) {
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
        VEC acc[MR][NV];
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) acc[i][j] = 0.0f;
        VEC out[MR][NV];
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) out[i][j] = 0.0f;
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
              VEC x[NV];
              #pragma unroll
              for (int j = 0; j < NV; ++j) x[j] = LOAD(w + row * W_Y + kx * W_X + ic * W_CHANNEL + j * VW);
              #pragma unroll
              for (int i = 0; i < MR; ++i) {
                const VEC s = p[ic * (WH * WW) + i * SX + kx * DX];
                #pragma unroll
                for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
              }
            }
          }
#else
        for (int row = 0; row < IC * KH; ++row) {
          const __local float* p = window + (row / KH * WH + (oy - top) * SY + row % KH * DY) * WW + left * SX;
          for (int kx = 0; kx < KW; ++kx) {
            VEC x[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) x[j] = LOAD(w + j * VW);
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = p[i * SX + kx * DX];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            w += PW;
          }
#endif
          if (CHAIN < TAP_ROWS && (row + 1) % CHAIN == 0) {
            #pragma unroll
            for (int i = 0; i < MR; ++i)
              #pragma unroll
              for (int j = 0; j < NV; ++j) out[i][j] += acc[i][j], acc[i][j] = 0.0f;
          }
        }
        // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) out[i][j] = CHAIN < TAP_ROWS ? out[i][j] + acc[i][j] : acc[i][j];
        #pragma unroll EPILOGUE_UNROLL
        for (int i = 0; i < MR; ++i) {
          if (OW % MR != 0 && left + i >= OW) break;
          const INDEX m = (image * OH + oy) * OW + left + i;
          #pragma unroll
          for (int j = 0; j < NV; ++j) {
            const int n = panel * PW + j * VW;
            if (N % PW != 0 && n >= N) break;
            VEC v = out[i][j];
            //@hole EPILOGUE
            v += LOAD(bias + n);
            //@end
            //@hole STORE
            store_columns(v, c + (size_t)m * C_STEP, n);
            //@end
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_window(const __global float* restrict a, const __global float* restrict b,
                                 const __global float* restrict bias, __global float* restrict c) {
  __local float window[LOCAL_FLOATS];
  contraction_window_tile(a, b, bias, c, (int)get_group_id(0), window);
}
