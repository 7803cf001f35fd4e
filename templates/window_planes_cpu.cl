// Depthwise convolution and pooling between planes (NCHW) on a CPU: vectors along rows, out of rows with margins in local memory.
//
// formula   C[plane,oy,ox] = epilogue(reduce over ky < KH, kx < KW of A[plane, y, x] and w[ky * KW + kx]), y = oy * SY + ky * DY,
//           x = ox * SX + kx * DX in coordinates of the padded plane; A is FILL outside rows Y_FIRST .. Y_LAST and columns
//           X_FIRST .. X_LAST. The reduction in the hole TAP: fma(x, w, acc) from FILL (default), or a sum or maximum of x.
// A         A[plane, y, x] = src[x]; the hole A_ROW gives src for a row y. Default: planes one after another.
// rows      rows[(r * SX + p) * WP + i] = A[plane, top * SY + r, i * SX + p]: columns by their remainder, so that neighbours of
//           the result read neighbours. The last vector of a row of results ends with the row.
// local memory 4 * WH * SX * WP bytes. launch: ceil(COUNT / PLANES) groups of one work-item.
//@kernel 1, LOCAL_FLOATS
//@param SX 1 {1, 2} Y_LAST 112 {Y_FIRST..} X_LAST 112 {X_FIRST..} OH 112 {1..} OW 112 {VW..}  vectors are at most as long as a row
//@include image
//@param VW 16 {4, 8, 16}  vector width
//@param MR 4 {1..}  rows of results that share what they read
//@param ROWS 28 {MR.. step MR}  rows of results between copies
//@param PREFETCH_DISTANCE 36 {ROWS..}  rows of results by which what they read is prefetched while others are computed
//@param PLANES 1 {1..} COUNT 32 {expr}  planes of a work-item, and of all
//@param FILL 0.0f {0.0f, -INFINITY}  what lies outside, and where the reduction starts
#define WH ((ROWS - 1) * SY + (KH - 1) * DY + 1)
// Rows begin on cache lines: a vector that lies in two of them is read twice.
#define WP ((OW + (KW - 1) * DX / SX + 15) / 16 * 16)
#define LOCAL_FLOATS (WH * SX * WP)
// Columns of the plane that somebody reads, and those of whole pairs.
#define X_END (X_LAST < SX * WP ? X_LAST + 1 : SX * WP)
#define PAIR_FIRST ((X_FIRST + 1) / 2)
#define PAIR_END (X_END / 2)
//@include vector_types

void window_planes_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict bias,
                        __global float* restrict c, int tile, __local float* restrict rows) {
  for (int i = 0; i < LOCAL_FLOATS; ++i) rows[i] = FILL;
  const int plane_end = min((int)(COUNT), (tile + 1) * PLANES);
  for (int plane = tile * PLANES; plane < plane_end; ++plane) {
    //@hole PLANE
    const __global float* w = b + plane * (KH * KW);
    //@end
    for (int top = 0; top < OH; top += ROWS) {
      for (int r = 0; r < WH; ++r) {
        const int y = top * SY + r;
        __local float* restrict dst = rows + r * (SX * WP);
        if (y < Y_FIRST || y > Y_LAST) {
          for (int i = 0; i < SX * WP; ++i) dst[i] = FILL;
          continue;
        }
        //@hole A_ROW
        const __global float* src = a + (plane * (Y_LAST - Y_FIRST + 1) + y - Y_FIRST) * (X_LAST - X_FIRST + 1) - X_FIRST;
        //@end
        if (SX == 1) {
          int x = X_FIRST;
          for (; x + VW <= X_END; x += VW) STORE(LOAD(src + x), dst + x);
          if (X_END - X_FIRST >= VW) {
            if (x < X_END) STORE(LOAD(src + X_END - VW), dst + X_END - VW);
          } else {
            for (; x < X_END; ++x) dst[x] = src[x];
          }
        } else {
          if (X_FIRST % 2 == 1) dst[WP + X_FIRST / 2] = src[X_FIRST];
          int pair = PAIR_FIRST;
          for (; pair + VW <= PAIR_END; pair += VW) {
            const VEC left = LOAD(src + 2 * pair), right = LOAD(src + 2 * pair + VW);
            STORE((VEC)(left.even, right.even), dst + pair);
            STORE((VEC)(left.odd, right.odd), dst + WP + pair);
          }
          if (PAIR_END - PAIR_FIRST >= VW && pair < PAIR_END) {
            const VEC left = LOAD(src + 2 * PAIR_END - 2 * VW), right = LOAD(src + 2 * PAIR_END - VW);
            STORE((VEC)(left.even, right.even), dst + PAIR_END - VW);
            STORE((VEC)(left.odd, right.odd), dst + WP + PAIR_END - VW);
            pair = PAIR_END;
          }
          for (; pair < PAIR_END; ++pair) {
            dst[pair] = src[2 * pair];
            dst[WP + pair] = src[2 * pair + 1];
          }
          if (X_END % 2 == 1) dst[X_END / 2] = src[X_END - 1];
        }
      }
      for (int first = top; first < min(OH, top + ROWS); first += MR) {
        for (int left = 0; left < OW; left += VW) {
          const int ox = min(left, OW - VW);
          VEC acc[MR];
          #pragma unroll
          for (int i = 0; i < MR; ++i) acc[i] = FILL;
          // Behind a plane lies the next one.
          #pragma unroll
          for (int i = 0; i < MR * SY; ++i) {
            const int y = (first + PREFETCH_DISTANCE) * SY + i;
            //@hole A_ROW
            const __global float* src = a + (plane * (Y_LAST - Y_FIRST + 1) + y - Y_FIRST) * (X_LAST - X_FIRST + 1) - X_FIRST;
            //@end
            #pragma unroll
            for (int s = 0; s < SX; ++s) oclc_prefetch(src + ox * SX + s * 16);
          }
          #pragma unroll
          for (int ky = 0; ky < KH; ++ky) {
            #pragma unroll
            for (int kx = 0; kx < KW; ++kx) {
              #pragma unroll
              for (int i = 0; i < MR; ++i) {
                const VEC x = LOAD(rows + (((first - top + i) * SY + ky * DY) * SX + kx * DX % SX) * WP + kx * DX / SX + ox);
                //@hole TAP
                acc[i] = fma(x, w[ky * KW + kx], acc[i]);
                //@end
              }
            }
          }
          #pragma unroll
          for (int i = 0; i < MR; ++i) {
            const int oy = first + i;
            if (oy >= OH) break;
            VEC v = acc[i];
            //@hole EPILOGUE
            STORE(v + bias[plane], c + (plane * OH + oy) * OW + ox);
            //@end
          }
        }
      }
    }
  }
  //@lines END
}
