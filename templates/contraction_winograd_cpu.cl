// Convolution of RxR taps on a CPU by Winograd's F(TxT, RxR): blocks of tiles transformed, multiplied and transformed back in
// local memory. Nothing but the image, the weights and the result goes through memory.
//
// formula   C[image,oy,ox,o] = epilogue(sum over c < K, ky < R, kx < R of A[image, oy + ky, ox + kx, c] * W[ky,kx,c,o])
//           in coordinates of the padded image; A is 0 outside rows Y_FIRST .. Y_LAST and columns X_FIRST .. X_LAST.
//           Y = output^T (U * V) output, V = input D input^T of a window D of WIN x WIN, U = filter W filter^T; WIN = T + R - 1.
//           Points: WIN = 4: 0, 1, -1, infinity; WIN = 6: 0, 3/4, -3/4, 3/2, -3/2, infinity.
// A         A[image, y, x, c] = origin[(y - top) * A_Y + (x - left) * A_X + c], the hole A_ORIGIN for the window at (top, left).
// B         b[((n / PW * POINTS + point) * K + c) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
// C         c[((image * OH + oy) * OW + ox) * N + o].     bias: PANELS * PW values (default epilogue).     zero: K zeros.
// local     v[(point * TBR + tile) * V_PITCH + c], then products[(point * TBR + tile) * PW + n % PW]; TBR = TB rounded up to MR.
// local memory 4 * POINTS * TBR * (V_PITCH + PW) bytes: at most half the second-level cache.
// launch: BLOCKS * PANEL_BLOCKS groups of one work-item.
// paper     Lavin, Gray: Fast algorithms for convolutional neural networks, 2015.
//@kernel 1, LOCAL_FLOATS
//@param T 2 {2, 4} R 3 {3, 5}  outputs of a tile and taps of the filter, down and across; 5 where T is 2
//@param IMAGES 1 {1.., name}  images
//@param K 64 {VW.. step VW} N 64 {1..}  channels, features
//@param OH 56 {1..} OW 56 {1..} Y_FIRST 1 {0..} Y_LAST 56 {Y_FIRST..} X_FIRST 1 {0..} X_LAST 56 {X_FIRST..}  the image
//@param A_X K {0..} A_Y (56 * K) {0..}  from a column and from a row of the image to the next
//@param MR 8 {1..16} NV 3 {1..8}  rows and vectors of the register tile: MR * NV + NV + 1 <= vector registers
//@param EPILOGUE_UNROLL T {1, T}  T: the epilogue of a row of pixels is written out; 1: small code, for an expensive one
//@include vectors
//@include panels
//@param K_CHAIN K {1..}  longest chain of fma; longer sums are added up from pieces
//@param K_GROUP K {K_CHAIN..}  terms of pieces, a multiple of K_CHAIN, that are added up before they are added to others
//@param INDEX int {int, long}  type of indices into A and C
//@param PREFETCH_DISTANCE 0 {0..}  rows of a panel by which B is prefetched before its use; 0: never
//@param FIRST_PREFETCH_DISTANCE PREFETCH_DISTANCE {PREFETCH_DISTANCE..}  the same in the register tile that meets weights first, which nobody has prefetched
//@param NEXT 0 {0, 1}  1: weights of the next point are asked for while those of this one are used
//@param TB 24 {1..} NP PANELS {1..}  tiles and panels of a work-item
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define WIN (T + R - 1)
#define POINTS (WIN * WIN)
#define TILES_Y ((OH + T - 1) / T)
#define TILES_X ((OW + T - 1) / T)
#define BLOCKS ((IMAGES * (TILES_Y * TILES_X) + TB - 1) / TB)
#define TBR ((TB + MR - 1) / MR * MR)
#define V_PITCH (K + 16)
// Floats of the next point's weights that each row of this one's asks for: all of them, after the last register tile.
#define NEXT_STEP ((PW + TBR / MR - 1) / (TBR / MR))
#define LOCAL_FLOATS (POINTS * TBR * (V_PITCH + PW))

void contraction_winograd_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                               const __global float* restrict zero, __global float* restrict c, int tile, __local float* restrict block) {
  //@lines SIZES
  // All tiles of the image with the same panels one after another: a core brings them from memory once, and others theirs.
  const int first_tile = tile % BLOCKS * TB;
  const int first_panel = tile / BLOCKS * NP;
  const int panel_end = min(PANELS, first_panel + NP);
  const int tile_count = min(TB, IMAGES * (TILES_Y * TILES_X) - first_tile);
  __local float* restrict products = block + POINTS * TBR * V_PITCH;
  for (int r = 0; r < tile_count; ++r) {
    const int t = first_tile + r;
    const INDEX image = t / (TILES_Y * TILES_X);
    const int top = t % (TILES_Y * TILES_X) / TILES_X * T;
    const int left = t % TILES_X * T;
    //@hole A_ORIGIN
    const __global float* origin = a + image * ((Y_LAST - Y_FIRST + 1) * A_Y) + (top - Y_FIRST) * A_Y + (left - X_FIRST) * A_X;
    //@end
    const __global float* p[WIN][WIN];
    for (int i = 0; i < WIN; ++i) {
      const int inside = top + i >= Y_FIRST && top + i <= Y_LAST;
      for (int j = 0; j < WIN; ++j)
        p[i][j] = inside && left + j >= X_FIRST && left + j <= X_LAST ? origin + (i * A_Y + j * A_X) : zero;
    }
    __local float* restrict v = block + r * V_PITCH;
    for (int k = 0; k < K; k += VW) {
      VEC d[WIN][WIN];
      #pragma unroll
      for (int j = 0; j < WIN; ++j) {
        VEC x[WIN];
        #pragma unroll
        for (int i = 0; i < WIN; ++i) x[i] = LOAD(p[i][j] + k);
#if WIN == 4
        d[0][j] = x[0] - x[2];
        d[1][j] = x[1] + x[2];
        d[2][j] = x[1] - x[2];
        d[3][j] = x[3] - x[1];
#else
        const VEC e = fma(x[2], 2.25f, -x[4]), o = 0.75f * fma(x[1], 2.25f, -x[3]);
        const VEC f = fma(x[2], 0.5625f, -x[4]), h = 1.5f * fma(x[1], 0.5625f, -x[3]);
        d[0][j] = fma(x[0], 1.265625f, fma(x[2], -2.8125f, x[4]));
        d[1][j] = o + e;
        d[2][j] = o - e;
        d[3][j] = h + f;
        d[4][j] = h - f;
        d[5][j] = fma(x[1], 1.265625f, fma(x[3], -2.8125f, x[5]));
#endif
      }
      #pragma unroll
      for (int i = 0; i < WIN; ++i) {
        VEC y[WIN];
#if WIN == 4
        y[0] = d[i][0] - d[i][2];
        y[1] = d[i][1] + d[i][2];
        y[2] = d[i][1] - d[i][2];
        y[3] = d[i][3] - d[i][1];
#else
        const VEC e = fma(d[i][2], 2.25f, -d[i][4]), o = 0.75f * fma(d[i][1], 2.25f, -d[i][3]);
        const VEC f = fma(d[i][2], 0.5625f, -d[i][4]), h = 1.5f * fma(d[i][1], 0.5625f, -d[i][3]);
        y[0] = fma(d[i][0], 1.265625f, fma(d[i][2], -2.8125f, d[i][4]));
        y[1] = o + e;
        y[2] = o - e;
        y[3] = h + f;
        y[4] = h - f;
        y[5] = fma(d[i][1], 1.265625f, fma(d[i][3], -2.8125f, d[i][5]));
#endif
        #pragma unroll
        for (int j = 0; j < WIN; ++j) STORE(y[j], v + (i * WIN + j) * (TBR * V_PITCH) + k);
      }
    }
  }
  // Surplus rows of the last register tile are multiplied as well: what another kernel left there may be slow, as denormal numbers.
  for (int r = tile_count; r % MR != 0; ++r)
    for (int point = 0; point < POINTS; ++point)
      for (int k = 0; k < K; k += VW) STORE((VEC)(0.0f), block + (point * TBR + r) * V_PITCH + k);
  for (int panel = first_panel; panel < panel_end; ++panel) {
    //@hole B_POINTER
    const __global float* w = b + (size_t)panel * (POINTS * K * PW);
    //@end
    for (int point = 0; point < POINTS; ++point, w += K * PW) {
      for (int r0 = 0; r0 < tile_count; r0 += MR) {
        //@include zero_tiles
#if K_GROUP < K
        VEC group[MR][NV];
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) group[i][j] = 0.0f;
#endif
#if PREFETCH_DISTANCE > 0
        const bool meets_first = r0 == 0 && (NEXT == 0 || (point == 0 && panel == first_panel));
        const int rows_ahead = meets_first ? FIRST_PREFETCH_DISTANCE : PREFETCH_DISTANCE;
#endif
        const __local float* p = block + (point * TBR + r0) * V_PITCH;
        for (int k0 = 0; k0 < K; k0 += K_CHAIN) {
          const int k_end = min(K, k0 + K_CHAIN);
          oclc_terms(acc, MR, NV, p[i * V_PITCH + k0], p[i * V_PITCH + k0 + 1], w + k0 * PW, PW, k_end - k0);
          if (oclc_optimized) for (int k = k0; k < k_end; ++k) {
            VEC x[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) x[j] = LOAD(w + k * PW + j * VW);
#if PREFETCH_DISTANCE > 0
            #pragma unroll
            for (int j = 0; j < NV; j += 16 / VW) oclc_prefetch(w + (k + rows_ahead) * PW + j * VW);
#endif
#if NEXT
            #pragma unroll
            for (int j = 0; j < NEXT_STEP; j += 16) oclc_prefetch_l2(w + K * PW + r0 / MR * (K * NEXT_STEP) + k * NEXT_STEP + j);
#endif
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = p[i * V_PITCH + k];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
          }
#if K_GROUP < K
          #pragma unroll
          for (int i = 0; i < MR; ++i)
            #pragma unroll
            for (int j = 0; j < NV; ++j) group[i][j] += acc[i][j], acc[i][j] = 0.0f;
          if (k_end % K_GROUP == 0 || k_end == K) {
            #pragma unroll
            for (int i = 0; i < MR; ++i)
              #pragma unroll
              for (int j = 0; j < NV; ++j) out[i][j] += group[i][j], group[i][j] = 0.0f;
          }
#else
          if (K_CHAIN < K) {
            //@include add_chain
          }
#endif
        }
        __local float* restrict q = products + (point * TBR + r0) * PW;
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) STORE(K_CHAIN < K ? out[i][j] : acc[i][j], q + i * PW + j * VW);
      }
    }
    for (int r = 0; r < tile_count; ++r) {
      const int t = first_tile + r;
      const INDEX image = t / (TILES_Y * TILES_X);
      const int top = t % (TILES_Y * TILES_X) / TILES_X * T;
      const int left = t % TILES_X * T;
      for (int j = 0; j < NV; ++j) {
        const int n = panel * PW + j * VW;
        if (N % PW != 0 && n >= N) break;
        const __local float* q = products + r * PW + j * VW;
        VEC d[T][WIN];
        #pragma unroll
        for (int x = 0; x < WIN; ++x) {
          VEC s[WIN];
          #pragma unroll
          for (int i = 0; i < WIN; ++i) s[i] = LOAD(q + (i * WIN + x) * (TBR * PW));
#if WIN == 4
          d[0][x] = s[0] + (s[1] + s[2]);
          d[1][x] = (s[1] - s[2]) + s[3];
#else
          const VEC e = s[1] + s[2], o = s[1] - s[2], f = s[3] + s[4], h = s[3] - s[4];
          d[0][x] = s[0] + e + f;
#if T == 2
          d[1][x] = fma(h, 1.5f, fma(o, 0.75f, s[5]));
#else
          d[1][x] = fma(h, 1.5f, 0.75f * o);
          d[2][x] = fma(f, 2.25f, 0.5625f * e);
          d[3][x] = fma(h, 3.375f, fma(o, 0.421875f, s[5]));
#endif
#endif
        }
        VEC pixels[T][T];
        #pragma unroll
        for (int i = 0; i < T; ++i) {
#if WIN == 4
          pixels[i][0] = d[i][0] + (d[i][1] + d[i][2]);
          pixels[i][1] = (d[i][1] - d[i][2]) + d[i][3];
#else
          const VEC e = d[i][1] + d[i][2], o = d[i][1] - d[i][2], f = d[i][3] + d[i][4], h = d[i][3] - d[i][4];
          pixels[i][0] = d[i][0] + e + f;
#if T == 2
          pixels[i][1] = fma(h, 1.5f, fma(o, 0.75f, d[i][5]));
#else
          pixels[i][1] = fma(h, 1.5f, 0.75f * o);
          pixels[i][2] = fma(f, 2.25f, 0.5625f * e);
          pixels[i][3] = fma(h, 3.375f, fma(o, 0.421875f, d[i][5]));
#endif
#endif
        }
        #pragma unroll EPILOGUE_UNROLL
        for (int i = 0; i < T; ++i) {
          if (OH % T != 0 && top + i >= OH) break;
          #pragma unroll EPILOGUE_UNROLL
          for (int x = 0; x < T; ++x) {
            if (OW % T != 0 && left + x >= OW) break;
            const INDEX m = (image * OH + top + i) * OW + left + x;
            VEC v = pixels[i][x];
            //@include epilogue_bias
          }
        }
      }
    }
  }
}
