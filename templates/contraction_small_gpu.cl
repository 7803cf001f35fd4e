// Short contraction on the matrix units of an NVIDIA GPU, as of one image: what bounds it is how long memory takes to answer. The
// sub-groups of a group share the terms of a small tile and read their operands straight into registers, many loads at once;
// what they sum is added up in local memory. Where the unit is missing contraction_gpu.cl stands in, with the same BM, BN and ITEMS.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
//           SPLIT 1: as in contraction_mma_gpu.cl: both operands in two parts of TF32, sums of 8 terms are added up in single
//           precision. SPLIT 0: operands rounded to TF32. Lane t of four has terms 4 * t .. 4 * t + 3 of 16, of A and B alike.
// A, B, C   as in contraction_gpu.cl, with the same holes; A and B in fours along k.
// local     C's tile of each sharer: space[(sharer * BM + m - m0) * C_PITCH + n - n0].
// local memory 4 * SPACE bytes.
// launch: G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items.
//@kernel ITEMS, SPACE, 16
//@param K 768 {4.. step 4}  a literal
//@include gemm_sizes
//@param BM 16 {16.. step 16} BN 16 {WN.. step WN}  rows and columns of a group's tile
//@param WN 16 {16.. step 16}  columns of a sub-group of 32 work-items, which has 16 rows
//@param SHARERS 8 {1..}  sub-groups that share the terms of a tile; ITEMS = BM / 16 * (BN / WN) * SHARERS * 32
//@param AHEAD 2 {1..}  steps of 16 terms whose operands are loaded together
//@param SPLIT 1 {0, 1}
//@param HALVES 0 {0, 1}  1: B is constant and packed, for SPLIT 0: halves of each column's own scale, which have TF32's bits, as the sub-groups'
//                    registers hold them, see codegen/contraction/gpu/pack_halves.h; a step has 32 terms then
//@param MASKS 0 {0, 1}  1: elements of A are zeros or copied as they lie, at the sum of a place of the row and one of the term, as the holes
//                    A_ROW and A_STEP of contraction_f16x2_sm90a.cl tell; at most 32 TAPS
//@param WEIGHTS b {name} SCALES_AT 0 {0..}  what is so packed, and where in it the scales begin
#define ITEMS (BM / 16 * (BN / WN) * SHARERS * 32)
#define ROW_TILES ((M + BM - 1) / BM)
#define COLUMN_TILES ((N + BN - 1) / BN)
#define NJ (WN / 8)
#define PIECES (HALVES ? 2 : 1)
#define STEP (PIECES * 16)
#define STEPS ((TERMS + 31) / 32)
#define BLOCKS ((N + 7) / 8)
#define STRIDE (SHARERS * STEP)
#define TERMS (TAPS * K)
#define RAGGED (TERMS % (STRIDE * AHEAD) != 0)
#define C_PITCH (BN + 8)
#define SPACE (SHARERS * BM * C_PITCH)

void contraction_short_gpu_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c, int tile,
                                __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  const int g = tile / (ROW_TILES * COLUMN_TILES);
  const int place = tile % (ROW_TILES * COLUMN_TILES);
  //@lines GROUP
  const int m0 = place % ROW_TILES * BM;
  const int n0 = place / ROW_TILES * BN;
  const int lane_row = item % 32 / 4;
  const int lane_k = item % 4 * 4;
  const int sharer = item / 32 % SHARERS;
  const int warp_row = item / 32 / SHARERS / (BN / WN) * 16;
  const int warp_column = item / 32 / SHARERS % (BN / WN) * WN;
  float acc[NJ][4];
  #pragma unroll
  for (int j = 0; j < NJ; ++j) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = 0.0f;
#if HALVES
  const float4 scale =
      *(const __global float4*)(WEIGHTS + SCALES_AT + g * (BLOCKS * 8) + min(n0 + item % (BN / 4) * 4, BLOCKS * 8 - 4));
#endif
#if MASKS
  // Of a lane's rows their places, and a bit for each tap whose elements are there.
  int places[2];
  uint masks[2];
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int m = min(m0 + warp_row + 8 * h + lane_row, M - 1);
    //@include row_of_a
    places[h] = row_at;
    masks[h] = 0;
    #pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
      const int k = 0;
      //@include step_of_a
      const int4 edge = row_edges + step_edges;
      masks[h] |= (edge.x | edge.y | edge.z | edge.w) >= 0 ? 1u << tap : 0;
    }
  }
#endif
  #pragma unroll 1
  for (int first = sharer * STEP; first < TERMS; first += STRIDE * AHEAD) {
    float4 some_a[AHEAD * PIECES][2];
#if HALVES
    uint4 some_b[AHEAD][NJ];
#else
    float4 some_b[AHEAD][NJ];
#endif
    #pragma unroll
    for (int s = 0; s < AHEAD * PIECES; ++s) {
      // Of a whole step's terms, which are of one tap if steps divide K.
      const int begin = first + s / PIECES * STRIDE;
      const int term = begin + s % PIECES * 16 + lane_k;
      const int tap = TAPS == 1 ? 0 : K % STEP == 0 ? begin / K : term / K;
      const int k = TAPS == 1 ? term : K % STEP == 0 ? begin % K + s % PIECES * 16 + lane_k : term % K;
#if MASKS
      //@include step_of_a
#endif
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        float4 v = 0.0f;
#if MASKS
        if ((!RAGGED || term < TERMS) && masks[h] >> tap & 1) v = *(const __global float4*)(base + (places[h] + step_at));
#else
        const int m = min(m0 + warp_row + 8 * h + lane_row, M - 1);
        if (!RAGGED || term < TERMS) {
          //@hole A_ELEMENTS
          v = vload4(0, a + (size_t)(g * M + m) * K + k);
          //@end
        }
#endif
        some_a[s][h] = v;
      }
#if HALVES
      // What lies behind the last step or column is multiplied by zeros, or goes nowhere.
      if (s % PIECES == 0) {
        const int step = RAGGED ? min(begin / 32, STEPS - 1) : begin / 32;
        #pragma unroll
        for (int j = 0; j < NJ; ++j) {
          const int right = (n0 + warp_column) / 8 + j;
          const int block = N % BN == 0 ? right : min(right, BLOCKS - 1);
          some_b[s / PIECES][j] =
              *(const __global uint4*)(WEIGHTS + ((size_t)(g * BLOCKS + block) * STEPS + step) * 128 + item % 32 * 4);
        }
      }
#else
      #pragma unroll
      for (int j = 0; j < NJ; ++j) {
        const int n = min(n0 + warp_column + 8 * j + lane_row, N - 1);
        float4 v = 0.0f;
        if (!RAGGED || term < TERMS) {
          //@hole B_ELEMENTS
          v = vload4(0, b + (size_t)(g * N + n) * K + k);
          //@end
        }
        some_b[s][j] = v;
      }
#endif
    }
    #pragma unroll
    for (int s = 0; s < AHEAD * PIECES; ++s)
      #pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float2 upper = pair ? some_a[s][0].zw : some_a[s][0].xy;
        const float2 lower = pair ? some_a[s][1].zw : some_a[s][1].xy;
        uint x[4];
        x[0] = as_uint(upper.x), x[1] = as_uint(lower.x), x[2] = as_uint(upper.y), x[3] = as_uint(lower.y);
#if SPLIT
        uint small_x[4];
        //@include gpu/tf32_parts X=x S=small_x C=4
#else
        #pragma unroll
        for (int q = 0; q < 4; ++q) x[q] += 0x1000u;
#endif
        #pragma unroll
        for (int j = 0; j < NJ; ++j) {
#if HALVES
          const uint4 eight = some_b[s / PIECES][j];
          const uint two = s % PIECES ? (pair ? eight.w : eight.z) : (pair ? eight.y : eight.x);
          const float2 terms = oclc_half_floats(two);
          oclc_mma(acc[j], x, as_uint(terms.x), as_uint(terms.y));
#else
          const float2 terms = pair ? some_b[s][j].zw : some_b[s][j].xy;
          uint y[2];
          y[0] = as_uint(terms.x), y[1] = as_uint(terms.y);
#if SPLIT
          uint small_y[2];
          //@include gpu/tf32_parts X=y S=small_y C=2
          // The largest products come last: what the unit drops from a sum is a part of the sum so far.
          float d[4];
          oclc_mma_first(d, small_x, y[0], y[1]);
          oclc_mma(d, x, small_y[0], small_y[1]);
          oclc_mma(d, x, y[0], y[1]);
          #pragma unroll
          for (int q = 0; q < 4; ++q) acc[j][q] += d[q];
#else
          oclc_mma(acc[j], x, y[0] + 0x1000u, y[1] + 0x1000u);
#endif
#endif
        }
      }
  }
  #pragma unroll
  for (int j = 0; j < NJ; ++j)
    #pragma unroll
    for (int h = 0; h < 2; ++h)
      *(__local float2*)(space + (sharer * BM + warp_row + 8 * h + lane_row) * C_PITCH + warp_column + 8 * j + lane_k / 2) =
          (float2)(acc[j][2 * h], acc[j][2 * h + 1]);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = item; at < BM * BN / 4; at += ITEMS) {
    const int m = m0 + at / (BN / 4);
    const int n = n0 + at % (BN / 4) * 4;
    if (m < M && n < N) {
      const __local float* from = space + at / (BN / 4) * C_PITCH + at % (BN / 4) * 4;
      float4 v = *(const __local float4*)from;
      #pragma unroll
      for (int part = 1; part < SHARERS; ++part) v += *(const __local float4*)(from + part * (BM * C_PITCH));
#if HALVES
      v *= scale;
#endif
      //@include store_four
    }
  }
}
