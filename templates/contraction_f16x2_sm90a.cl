// Contraction with a packed B on NVIDIA's matrix units (sm_90a), which multiply numbers of 16 bits twice as fast as TF32. Every 32
// terms of a row of A, and every column of B, are multiplied by a power of two that takes their largest element to 2^14 .. 2^15, so
// that no exponent is lost. A number is then the sum of two halves, of which three of the four products are summed, as accurate as a
// chain of fma; or it is rounded to one, which has TF32's 11 bits. Sums of 32 terms of the matrix unit, whose accumulator truncates,
// are scaled back and added up in single precision. Of rounded operands, whose error is larger by far, the accumulator keeps the whole
// sum: a row keeps its power of two until an element is 2^12 times as large as the largest of those that chose it; sums that are there are
// then scaled down. Columns that have a scale for each step are the exception.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
// A         hole A_PLACE sets `from` to where four elements from (m, k) on lie in memory, a multiple of 16 bytes, and `inside` to 0 if
//           they are zeros instead. Default: row-major a[(g * M + m) * K + k]. The four are of k, or without A_ALONG_K of m.
//           With TABLE, place and condition are sums of one of the row and one of the term, as the holes A_ROW and A_STEP set them:
//           base + row_at + step_at, and zeros where row_edges + step_edges has a negative component. With MASKS that is found for
//           each row and tap once a tile.
// B         weights[((g * COLUMN_TILES + n / BN) * STEPS + step) * IMAGE], 4-byte words: as it lies in local memory; behind the images,
//           from SCALES_AT on, what column n of group g is to be multiplied by: [(g * COLUMN_TILES * BN) + n]. With STEP_SCALES every
//           image ends with such numbers for its own 32 k.
// C         holes EPILOGUE_VALUE and EPILOGUE as in contraction_sm90a.cl.
// local A   stage of rows of 32 k, 128 bytes: element k of row r at r * 32 + ((k / 4) ^ (r % 2 * 4)) * 4 + k % 4; without A_ALONG_K
//           k after k: at k * BM + (r ^ (k / 4 % 4 * 8)).
// local B   PARTS images of rows of 32 k, 64 bytes, one a column: of each 16 k the pairs (0,1) (4,5) (8,9) (12,13), then (2,3) (6,7)
//           (10,11) (14,15): 8 halves, piece 2 * (k / 16), then piece 2 * (k / 16) + 1. Piece p of row r at p ^ (r / 2 % 4).
// local memory SPACE floats, from a multiple of 1024 bytes on.
// launch: at most G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items, each of which takes every so manyth tile: its loads go on
// while results are stored.
// paper     Ootomo, Yokota: Recovering single precision accuracy from Tensor Cores, 2022.
//@kernel ITEMS, SPACE, 1024
//@only OCLC_SM90A
//@include gemm_sizes
//@param AV 4 {1, 4}  elements that are copied together; 1 wants TABLE
//@param A_ALONG_K 1 {0, 1}  1: neighbours of A in memory follow one another in k; 0: in m, of which there are whole vectors; wants AV 4
//@param TABLE 0 {0, 1}  1: a table of a tile's rows saves the loaders their coordinates in every step; wants A_ALONG_K
//@param MASKS 0 {0, 1, 2}  1, 2: conditions of at most 32, 64 TAPS, which depend on the row and the tap alone; wants TABLE
//@param WARPGROUPS 2 {1, 2, 3} ROWS 128 {64, 128}  128 work-items each and the rows of each; 3 of 64
//@param BN 128 {64, 128, 192, 256}  columns of a group's tile; 192 or 256 of rounded operands without STEP_SCALES, with 64 ROWS
//@param PARTS 2 {1, 2}  2: single precision by parts; 1: rounded operands
//@param REGAIN 0 {0, 1}  1: what the unit cuts off on average is given back
//@param STEP_SCALES 0 {0, 1}  1: columns are scaled in every step by themselves: the images were made by pack_halves when the plan runs
//@param STAGES 3 {1..}  stages of 32 k in flight
//@param UNITS 1 {1..}  groups that share a compute unit: with 1, the loaders' registers go to the others
#define BM (WARPGROUPS * ROWS)
#define BK 32
//@include gpu/group_tiles
//@include gpu/group_steps
//@include sm90a/results
//@include join
#define MULTIPLY_FIRST JOIN(JOIN(oclc_wgmma_half_, BN), _zero)
#define MULTIPLY JOIN(oclc_wgmma_half_, BN)
#define MULTIPLIED JOIN(JOIN(oclc_wgmma_, BN), _wait)
#define BLOCKS (ROWS / 64)
#define COMPUTERS (WARPGROUPS * 128)
#define LOADERS 128
#define ITEMS (COMPUTERS + LOADERS)
#define TILES (G * ROW_TILES * COLUMN_TILES)
// The accumulator keeps the whole sum; powers of two that a row's later elements may be larger by.
#define KEEPS (PARTS == 1 && STEP_SCALES == 0)
#define HEADROOM (12u << 23)
// Where sums wait for the scales of columns as well, and registers are left, the exponents of a block of 64 rows are found while the
// matrix unit multiplies the one before it. Neighbours in k that lie apart are not read twice.
#define EARLY (STEP_SCALES == 1 && WARPGROUPS == 2 && A_ALONG_K == 1)
#define IMAGE (PARTS * BN * 16 + STEP_SCALES * 128)
#define SCALES_AT (G * COLUMN_TILES * STEPS * IMAGE)
#define B_AT (BM * 32)
#define STAGE (B_AT + IMAGE)
#define PITCH 68
#define SUMS out[b]
// Rows that all loaders copy at once.
#define PASS (LOADERS / (32 / AV))
#define ROW(at) at
#define IS_ROW(at) 1
#define FIRST_ROW m0 + warp_row + b * 64
// Four neighbours in k, those 16 k on, those 8 rows on, and those of the next 64 rows.
#if A_ALONG_K
#define QUAD(from) (*(const __local float4*)(from))
#define LATER(at) ((at) ^ 16)
#define BELOW(at) ((at) + 8 * 32)
#define BLOCK (64 * 32)
#else
#define QUAD(from) ((float4)((from)[0], (from)[BM], (from)[2 * BM], (from)[3 * BM]))
#define LATER(at) ((at) + 16 * BM)
#define BELOW(at) ((at) ^ 8)
#define BLOCK 64
#endif
#define EXPONENT0(from) oclc_largest_exponent(QUAD((from) + lane_at), QUAD((from) + LATER(lane_at)))
#define EXPONENT8(from) oclc_largest_exponent(QUAD((from) + BELOW(lane_at)), QUAD((from) + BELOW(LATER(lane_at))))
#define TABLE_AT (STAGES * STAGE + COMPUTERS / 2 * PITCH)
// Rows whose places a loader reads from the table at once: reads of local memory do not pass a copy.
#define READ_AHEAD (MASKS && BM / PASS % 8 == 0 ? 8 : 4)
#define TABLE_WORDS (MASKS == 1 ? 2 : MASKS == 2 ? 4 : 5)
#define SPACE (TABLE_AT + TABLE * BM * TABLE_WORDS + STAGES * 4)

void contraction_halves_sm90a_tile(const __global float* restrict a, const __global float* restrict weights, __global float* restrict c,
                                   int first_tile, __local float* restrict space) {
  //@lines SIZES
  //@include sm90a/stages L="LOADERS + 1"
  if (item >= COMPUTERS) {
#if UNITS == 1 && WARPGROUPS == 2
    oclc_registers_40();
#endif
#if WARPGROUPS == 3
    oclc_registers_32();
#endif
    const int loader = item - COMPUTERS;
    int stage = 0;
    uint phase = 1;
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
      //@include gpu/tile_of_group
      const __global float* image = weights + (size_t)(g * COLUMN_TILES + within / swath_rows) * (STEPS * IMAGE);
#if TABLE
#if MASKS
      // Of each row its place, and a bit for each tap whose elements are there.
#if MASKS == 1
      __local int2* restrict table = (__local int2*)(space + TABLE_AT);
#else
      __local int4* restrict table = (__local int4*)(space + TABLE_AT);
#endif
#else
      __local int4* restrict edges = (__local int4*)(space + TABLE_AT);
      __local int* restrict places = (__local int*)(space + TABLE_AT + 4 * BM);
#endif
      // A warp makes the table of the rows that it loads.
      oclc_warp_barrier();
      for (int i = 0; i < BM; i += 128) {
        const int row = i + (AV == 4 ? loader / 32 * 4 + loader % 4 + loader % 32 / 4 * 16 : loader / 32 + loader % 32 * 4);
        if (row < BM) {
          const int m = min(m0 + row, M - 1);
          //@include row_of_a
#if MASKS
          uint mask = 0, later_mask = 0;
          for (int tap = 0; tap < TAPS; ++tap) {
            const int k = 0;
            //@include step_of_a
            const int4 edge = row_edges + step_edges;
            const uint bit = (edge.x | edge.y | edge.z | edge.w) >= 0 ? 1u << tap % 32 : 0;
            if (tap < 32)
              mask |= bit;
            else
              later_mask |= bit;
          }
#if MASKS == 1
          table[row] = (int2)(row_at, (int)mask);
#else
          table[row] = (int4)(row_at, (int)mask, (int)later_mask, 0);
#endif
#else
          places[row] = row_at;
          edges[row] = row_edges;
#endif
        }
      }
      oclc_warp_barrier();
#endif
      int at_tap = 0, at_k = 0;
      for (int step = 0; step < STEPS; ++step) {
        oclc_barrier_wait(used + stage * 8, phase);
        const uint to = stages + stage * (STAGE * 4);
        if (loader == 0) {
          oclc_barrier_expect(loaded + stage * 8, IMAGE * 4);
          oclc_copy_bulk(to + B_AT * 4, image, IMAGE * 4, loaded + stage * 8);
        }
        image += IMAGE;
#if A_ALONG_K
        const int in_k = loader % (32 / AV) * AV;
        //@include gpu/term_of_step
#endif
#if TABLE
        //@include step_of_a
#endif
#if TABLE
        for (int row = loader / (32 / AV); row < BM; row += READ_AHEAD * PASS) {
          int places_of[READ_AHEAD], inside[READ_AHEAD];
          #pragma unroll
          for (int j = 0; j < READ_AHEAD; ++j) {
#if MASKS == 1
            const int2 at = table[row + j * PASS];
            places_of[j] = at.x + step_at;
            inside[j] = at.y >> tap & 1;
#endif
#if MASKS == 2
            const int4 at = table[row + j * PASS];
            places_of[j] = at.x + step_at;
            inside[j] = (tap < 32 ? at.y : at.z) >> tap % 32 & 1;
#endif
#if MASKS == 0
            const int4 edge = edges[row + j * PASS] + step_edges;
            places_of[j] = places[row + j * PASS] + step_at;
            inside[j] = (edge.x | edge.y | edge.z | edge.w) >= 0;
#endif
            if (RAGGED && at_k + in_k >= DEPTH) inside[j] = 0;
          }
          #pragma unroll
          for (int j = 0; j < READ_AHEAD; ++j) {
            const uint row_to = to + (row + j * PASS) * 128 + ((in_k / 4 ^ row % 2 * 4) << 4);
            const __global float* from = inside[j] ? base + places_of[j] : weights;
#if AV == 4
            oclc_copy_16(row_to, from, inside[j] ? 16 : 0);
#else
            oclc_copy_4(row_to + in_k % 4 * 4, from, inside[j] ? 4 : 0);
#endif
          }
        }
#else
#if A_ALONG_K
        #pragma unroll 4
        for (int row = loader / 8; row < BM; row += PASS) {
          const int m = min(m0 + row, M - 1);
          const __global float* from = weights;
          int inside = 1;
          //@hole A_PLACE
          from = a + (size_t)(g * M + m) * K + k;
          //@end
          if (RAGGED && at_k + in_k >= DEPTH) inside = 0;
          oclc_copy_16(to + row * 128 + ((in_k / 4 ^ row % 2 * 4) << 4), inside ? from : weights, inside ? 16 : 0);
        }
#else
        #pragma unroll 4
        for (int i = loader; i < BM * 8; i += LOADERS) {
          const int row = i % (BM / 4) * 4, in_k = i / (BM / 4);
          const int m = min(m0 + row, M - 4);
          //@include gpu/term_of_step
          const __global float* from = weights;
          int inside = 1;
          //@hole A_PLACE
          from = a + (size_t)(g * K + k) * M + m;
          //@end
          if (RAGGED && at_k + in_k >= DEPTH) inside = 0;
          oclc_copy_16(to + ((in_k * BM + (row ^ in_k / 4 % 4 * 8)) << 2), inside ? from : weights, inside ? 16 : 0);
        }
#endif
#endif
        oclc_copies_arrive(loaded + stage * 8);
        at_k += 32;
        if (!FLAT && at_k >= K) at_k = 0, ++at_tap;
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
    }
  } else {
#if UNITS == 1 && WARPGROUPS == 2
    oclc_registers_232();
#endif
#if WARPGROUPS == 3
    oclc_registers_160();
#endif
    const int warp = item / 32;
    const int lane = item % 32;
    const int warp_row = warp / 4 * ROWS + warp % 4 * 16;
    // Four neighbours in k of rows lane / 4 and lane / 4 + 8, of the first 16 k of a step; of the others, 16 elements from there.
#if A_ALONG_K
    const int lane_at = (warp_row + lane / 4) * 32 + (lane % 4 ^ lane / 4 % 2 * 4) * 4;
#else
    const int lane_at = lane % 4 * 4 * BM + (warp_row + lane / 4 ^ lane % 4 * 8);
#endif
    const ulong tile_b = oclc_wgmma_half_tile(stages + B_AT * 4);
    int stage = 0;
    uint phase = 0;
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
      //@include gpu/tile_of_group
      const int n0 = within / swath_rows * BN;
      float out[BLOCKS][BN / 2];
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b)
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i) out[b][i] = 0.0f;
#if KEEPS
      //@include sm90a/kept_sums
#else
#if EARLY
      oclc_barrier_wait(loaded + stage * 8, phase);
      const __local float* restrict from_a = space + stage * STAGE;
      uint exponent0 = EXPONENT0(from_a), exponent8 = EXPONENT8(from_a);
#endif
      for (int step = 0; step < STEPS; ++step) {
        const int read = stage;
        const ulong from_b = tile_b + read * (STAGE * 4 / 16);
#if EARLY == 0
        oclc_barrier_wait(loaded + stage * 8, phase);
#endif
        #pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
#if EARLY == 0
          const __local float* restrict from_a = space + stage * STAGE + b * BLOCK;
#endif
          // Elements of rows 0 and 8 after lane / 4, of both 16 k.
          const float4 x0 = QUAD(from_a + lane_at);
          const float4 y0 = QUAD(from_a + LATER(lane_at));
          const float4 x8 = QUAD(from_a + BELOW(lane_at));
          const float4 y8 = QUAD(from_a + BELOW(LATER(lane_at)));
#if EARLY == 0
          const uint exponent0 = oclc_largest_exponent(x0, y0);
          const uint exponent8 = oclc_largest_exponent(x8, y8);
#endif
          const float up0 = oclc_scale_up(exponent0), down0 = oclc_scale_down(exponent0, (step + lane / 4) * REGAIN);
          const float up8 = oclc_scale_up(exponent8), down8 = oclc_scale_down(exponent8, (step + lane / 4) * REGAIN);
          const float4 u0 = x0 * up0, u8 = x8 * up8, v0 = y0 * up0, v8 = y8 * up8;
          const uint4 first = oclc_halves(u0, u8), second = oclc_halves(v0, v8);
#if PARTS == 2
          const uint4 first_rest = oclc_rests(u0, u8, first), second_rest = oclc_rests(v0, v8, second);
#endif
          float sum[BN / 2];
          oclc_wgmma_begin();
#if PARTS == 2
          // The small products come first: what the unit cuts off an accumulator is relative to what it holds.
          MULTIPLY_FIRST(sum, first_rest, from_b);
          MULTIPLY(sum, second_rest, from_b + 2);
          MULTIPLY(sum, first, from_b + BN * 64 / 16);
          MULTIPLY(sum, second, from_b + BN * 64 / 16 + 2);
          MULTIPLY(sum, first, from_b);
#else
          MULTIPLY_FIRST(sum, first, from_b);
#endif
          MULTIPLY(sum, second, from_b + 2);
          oclc_wgmma_end();
#if EARLY
          from_a += BLOCK;
          if (b == BLOCKS - 1) {
            if (++stage == STAGES) stage = 0, phase ^= 1;
            if (step < STEPS - 1) oclc_barrier_wait(loaded + stage * 8, phase);
            from_a = space + stage * STAGE;
          }
          // After the last step, of what is there: nothing uses them.
          exponent0 = EXPONENT0(from_a);
          exponent8 = EXPONENT8(from_a);
#endif
          MULTIPLIED(sum);
#if STEP_SCALES
          const __local float* restrict columns = space + read * STAGE + B_AT + PARTS * BN * 16 + lane % 4 * 2;
          #pragma unroll
          for (int i = 0; i < BN / 2; i += 4) {
            const float2 scale = *(const __local float2*)(columns + i * 2);
            out[b][i] = fma(sum[i] * scale.x, down0, out[b][i]);
            out[b][i + 1] = fma(sum[i + 1] * scale.y, down0, out[b][i + 1]);
            out[b][i + 2] = fma(sum[i + 2] * scale.x, down8, out[b][i + 2]);
            out[b][i + 3] = fma(sum[i + 3] * scale.y, down8, out[b][i + 3]);
          }
#else
          #pragma unroll
          for (int i = 0; i < BN / 2; ++i) out[b][i] = fma(sum[i], i % 4 < 2 ? down0 : down8, out[b][i]);
#endif
        }
        // One work-item speaks for its warp: all of them have read what the next copy overwrites.
#if STEP_SCALES
        oclc_publish();
#endif
        oclc_warp_barrier();
        if (lane == 0) oclc_barrier_arrive(used + read * 8);
#if EARLY == 0
        if (++stage == STAGES) stage = 0, phase ^= 1;
#endif
      }
#endif
      // Through local memory, 64 columns at a time, so that neighbours in memory are stored together.
      __local float* restrict rows = space + STAGES * STAGE + warp * (16 * PITCH);
#if STEP_SCALES == 0
      const __global float* scales = weights + SCALES_AT + (size_t)g * (COLUMN_TILES * BN);
#endif
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b) {
        #pragma unroll
        for (int c0 = 0; c0 < BN; c0 += 64) {
          //@include sm90a/sums
          //@include sm90a/warp_results
        }
      }
    }
  }
}
