// Convolution of few input channels on a CPU: a zero-padded input window in local memory, B packed at compile time.
//
// formula   C[n,oy,ox,o] = epilogue(sum over ic < IC, ky < KH, kx < KW of A[n,ic,y,x] * B[ic,ky,kx,o]), 0 outside A,
//           y = oy * SY + ky * DY - PAD_Y, x = ox * SX + kx * DX - PAD_X
// A         a[((n * IC + ic) * H + y) * W + x] (NCHW); the hole WINDOW_ROW changes layout or applies a prologue.
// window    window[(ic * WH + wy) * WW + wx], WH = (ROWS - 1) * SY + (KH - 1) * DY + 1, WW = (OW - 1) * SX + (KW - 1) * DX + 1
// B         b[((o / PW * IC * KH + ic * KH + ky) * KW + kx) * PW + o % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
// C         c[C_OFFSET + ((n * OH + oy) * OW + ox) * C_STEP + o] (NHWC).      bias: PANELS * PW values (default epilogue).
// parameter legal values (default)
//   IMAGES  images; a literal, or the name of an int argument added to both functions (1): used by the launch alone
//   IC, H, W, KH, KW, SY, SX, DY, DX, PAD_Y, PAD_X, OH, OW, N   the shape (first layer of a residual network)
//   VW      4, 8, 16: vector width of the target
//   MR, NV  rows and vectors of the register tile: MR * NV + NV + 1 <= vector registers (6, 4)
//   ROWS    output rows of a work-item (2)
// local memory 4 * IC * WH * WW bytes. launch: IMAGES * ceil(OH / ROWS) groups of one work-item.
#ifndef IC
#define IC 3
#endif
#ifndef H
#define H 224
#endif
#ifndef W
#define W 224
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
#ifndef PAD_Y
#define PAD_Y 3
#endif
#ifndef PAD_X
#define PAD_X 3
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
#ifndef EPILOGUE_UNROLL
#define EPILOGUE_UNROLL MR
#endif
#ifndef C_STEP
#define C_STEP N
#endif
#ifndef C_OFFSET
#define C_OFFSET 0
#endif
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
#define BANDS ((OH + ROWS - 1) / ROWS)
#define WH ((ROWS - 1) * SY + (KH - 1) * DY + 1)
#define WW ((OW - 1) * SX + (KW - 1) * DX + 1)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) JOIN(vstore, VW)(v, 0, p)

// The vector at column n of a row of N values; lanes from column N on are 0 and are not read.
VEC load_columns(const __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) return LOAD(row + n);
  float lanes[VW];
  for (int l = 0; l < VW; ++l) lanes[l] = n + l < N ? row[n + l] : 0.0f;
  return LOAD(lanes);
}

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
  const int image = tile / BANDS;
  const int oy0 = tile % BANDS * ROWS;
  for (int ic = 0; ic < IC; ++ic) {
    for (int wy = 0; wy < WH; ++wy) {
      __local float* restrict dst = window + (ic * WH + wy) * WW;
      const int y = oy0 * SY - PAD_Y + wy;
      if (y < 0 || y >= H) {
        for (int wx = 0; wx < WW; ++wx) dst[wx] = 0.0f;
        continue;
      }
      const int x_end = min(WW - PAD_X, W);
      for (int wx = 0; wx < min(PAD_X, WW); ++wx) dst[wx] = 0.0f;
      //@hole WINDOW_ROW
      const __global float* restrict src = a + ((image * IC + ic) * H + y) * W;
      for (int x = 0; x < x_end; ++x) dst[PAD_X + x] = src[x];
      //@end
      for (int wx = PAD_X + x_end; wx < WW; ++wx) dst[wx] = 0.0f;
    }
  }
  const int pixels = min(ROWS, OH - oy0) * OW;
  for (int panel = 0; panel < PANELS; ++panel) {
    for (int m0 = 0; m0 < pixels; m0 += MR) {
      // Surplus pixels of the last tile repeat the last pixel and are not stored.
      const __local float* row[MR];
      #pragma unroll
      for (int i = 0; i < MR; ++i) {
        const int pixel = min(m0 + i, pixels - 1);
        row[i] = window + pixel / OW * (SY * WW) + pixel % OW * SX;
      }
      VEC acc[MR][NV];
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) acc[i][j] = 0.0f;
      const __global float* w = b + panel * (IC * KH * KW * PW);
      for (int ic = 0; ic < IC; ++ic) {
        for (int ky = 0; ky < KH; ++ky) {
          const int at = (ic * WH + ky * DY) * WW;
          for (int kx = 0; kx < KW; ++kx) {
            VEC x[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) x[j] = LOAD(w + j * VW);
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = row[i][at + kx * DX];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            w += PW;
          }
        }
      }
      // acc stays in registers only if all its indices become constants: a rolled epilogue reads the copy.
      VEC out[MR][NV];
      #pragma unroll
      for (int i = 0; i < MR; ++i)
        #pragma unroll
        for (int j = 0; j < NV; ++j) out[i][j] = acc[i][j];
      #pragma unroll EPILOGUE_UNROLL
      for (int i = 0; i < MR; ++i) {
        if (m0 + i >= pixels) break;
        const int m = (image * OH + oy0) * OW + m0 + i;
        __global float* c_row = c + C_OFFSET + (size_t)m * C_STEP;
        #pragma unroll
        for (int j = 0; j < NV; ++j) {
          const int n = panel * PW + j * VW;
          if (N % PW != 0 && n >= N) break;
          VEC v = out[i][j];
          //@hole EPILOGUE
          v += LOAD(bias + n);
          //@end
          //@hole STORE
          store_columns(v, c_row, n);
          //@end
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_window(const __global float* restrict a, const __global float* restrict b,
                                 const __global float* restrict bias, __global float* restrict c) {
  __local float window[IC * WH * WW];
  contraction_window_tile(a, b, bias, c, (int)get_group_id(0), window);
}
