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
    //@include winograd/tile
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
        //@include winograd/input X=x Y=d J=[j]
      }
      #pragma unroll
      for (int i = 0; i < WIN; ++i) {
        VEC y[WIN];
        //@include winograd/input X=d[i] Y=y J=
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
        //@include zeros T=VEC X=group R=MR C=NV
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
            //@include row_of_panel W="w + k * PW"
#if PREFETCH_DISTANCE > 0
            #pragma unroll
            for (int j = 0; j < NV; j += 16 / VW) oclc_prefetch(w + (k + rows_ahead) * PW + j * VW);
#endif
#if NEXT
            #pragma unroll
            for (int j = 0; j < NEXT_STEP; j += 16) oclc_prefetch_l2(w + K * PW + r0 / MR * (K * NEXT_STEP) + k * NEXT_STEP + j);
#endif
            //@include multiply_add A="p[i * V_PITCH + k]" C=NV
          }
#if K_GROUP < K
          //@include add_chain X=group Y=acc R=MR C=NV
          if (k_end % K_GROUP == 0 || k_end == K) {
            //@include add_chain X=out Y=group R=MR C=NV
          }
#else
          if (K_CHAIN < K) {
            //@include add_chain X=out Y=acc R=MR C=NV
          }
#endif
        }
        __local float* restrict q = products + (point * TBR + r0) * PW;
        //@include store_sums V="K_CHAIN < K ? out[i][j] : acc[i][j]" Q=q P=PW
      }
    }
    for (int r = 0; r < tile_count; ++r) {
      //@include winograd/tile
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
          //@include winograd/output X=s Y=d J=[x]
        }
        VEC pixels[T][T];
        #pragma unroll
        for (int i = 0; i < T; ++i) {
          //@include winograd/output X=d[i] Y=pixels[i] J=
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
