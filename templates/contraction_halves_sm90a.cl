// Contraction with a packed B on NVIDIA's matrix units (sm_90a), which multiply numbers of 16 bits twice as fast as TF32. Every 32
// terms of a row of A, and every column of B, are multiplied by a power of two that takes their largest element to 2^14 .. 2^15, so
// that no exponent is lost. A number is then the sum of two halves, of which three of the four products are summed, as accurate as a
// chain of fma; or it is rounded to one, which has TF32's 11 bits. Sums of 32 terms of the matrix unit, whose accumulator truncates,
// are scaled back and added up in single precision. Of rounded operands, whose error is larger by far, the accumulator keeps the whole
// sum: a row keeps its power of two until an element is 16 times as large as the largest of those that chose it; sums that are there are
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
// parameter legal values (default)
//   G, M, N, K, TAPS, FLAT, SWATH   as in contraction_gpu.cl
//   AV      elements that are copied together: 4, or 1, which wants TABLE (4)
//   A_ALONG_K  1: neighbours of A in memory follow one another in k; 0: in m, of which there are whole vectors; wants AV 4 (1)
//   TABLE   1: a table of a tile's rows saves the loaders their coordinates in every step; wants A_ALONG_K (0)
//   MASKS   1, 2: conditions of at most 32, 64 TAPS, which depend on the row and the tap alone; wants TABLE (0)
//   WARPGROUPS  1, 2, or 3 of 64 ROWS: 128 work-items each (2)
//   ROWS    64, 128: rows of a warpgroup (128)
//   BN      columns of a group's tile: 64, 128; 192 or 256 of rounded operands without STEP_SCALES, with 64 ROWS (128)
//   PARTS   2: single precision by parts; 1: rounded operands (2)
//   REGAIN  1: what the unit cuts off on average is given back (0)
//   RESULTS  what EPILOGUE stores of each vector: v, and RESULTS - 1 vectors others[j] that EPILOGUE_VALUE leaves (1)
//   STEP_SCALES  1: columns are scaled in every step by themselves: the images were made by pack_halves when the plan runs (0)
//   STAGES  stages of 32 k in flight (3)
//   UNITS   groups that share a compute unit: with 1, the loaders' registers go to the others (1)
//   AT_ONCE  vectors of the epilogue whose operands are read together: 1, 2, 4 (4)
//   SHARES  groups that share the steps of a tile: each leaves its sums in `parts`, for each share of a tile, each warp and each 64
//           columns 256 vectors as they lie in local memory; once all are there, groups add up one of so many slices each, in the
//           order of shares (1)
// counters  with SHARES > 1, `turns`: tickets, which groups take for shares, then for slices; from TURNS_AT on, of each tile and warp,
//           how many shares are there and then how many slices are done. All are zeros again when the launch ends. Only slices are
//           waited for, and all shares have been taken then by groups that run.
// local memory SPACE floats, from a multiple of 1024 bytes on.
// launch: at most SHARES * G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items, each of which takes every so manyth tile: its loads go on
// while results are stored.
// paper     Ootomo, Yokota: Recovering single precision accuracy from Tensor Cores, 2022.
#ifdef OCLC_SM90A
#ifndef G
#define G 1
#endif
#ifndef M
#define M 128
#endif
#ifndef N
#define N 768
#endif
#ifndef K
#define K 768
#endif
#ifndef TAPS
#define TAPS 1
#endif
#ifndef WARPGROUPS
#define WARPGROUPS 2
#endif
#ifndef ROWS
#define ROWS 128
#endif
#ifndef BN
#define BN 128
#endif
#ifndef AV
#define AV 4
#endif
#ifndef A_ALONG_K
#define A_ALONG_K 1
#endif
#ifndef TABLE
#define TABLE 0
#endif
#ifndef MASKS
#define MASKS 0
#endif
#ifndef PARTS
#define PARTS 2
#endif
#ifndef REGAIN
#define REGAIN 0
#endif
#ifndef RESULTS
#define RESULTS 1
#endif
#ifndef STEP_SCALES
#define STEP_SCALES 0
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef UNITS
#define UNITS 1
#endif
#ifndef AT_ONCE
#define AT_ONCE 4
#endif
#ifndef SHARES
#define SHARES 1
#endif
#ifndef FLAT
#define FLAT 0
#endif
#ifndef SWATH
#define SWATH 8
#endif
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define MULTIPLY_FIRST JOIN(JOIN(oclc_wgmma_half_, BN), _zero)
#define MULTIPLY JOIN(oclc_wgmma_half_, BN)
#define MULTIPLIED JOIN(JOIN(oclc_wgmma_, BN), _wait)
#define BM (WARPGROUPS * ROWS)
#define BLOCKS (ROWS / 64)
#define COMPUTERS (WARPGROUPS * 128)
#define LOADERS 128
#define ITEMS (COMPUTERS + LOADERS)
#define ROW_TILES ((M + BM - 1) / BM)
#define COLUMN_TILES ((N + BN - 1) / BN)
#define TILES (G * ROW_TILES * COLUMN_TILES)
// The accumulator keeps the whole sum; powers of two that a row's later elements may be larger by.
#define KEEPS (PARTS == 1 && STEP_SCALES == 0)
#define HEADROOM (4u << 23)
// Where sums wait for the scales of columns as well, and registers are left, the exponents of a block of 64 rows are found while the
// matrix unit multiplies the one before it. Neighbours in k that lie apart are not read twice.
#define EARLY (STEP_SCALES == 1 && WARPGROUPS == 2 && A_ALONG_K == 1)
#define DEPTH (FLAT ? TAPS * K : K)
#define STEPS (FLAT ? (TAPS * K + 31) / 32 : TAPS * ((K + 31) / 32))
// The steps of this group.
#if SHARES > 1
#define FIRST_STEP (share * STEPS / SHARES)
#define OWN_STEPS ((share + 1) * STEPS / SHARES - FIRST_STEP)
#else
#define FIRST_STEP 0
#define OWN_STEPS STEPS
#endif
#define TICKETS (TILES * SHARES)
#define WARPS (COMPUTERS / 32)
#define TURNS_AT 32
#define TURNS (TURNS_AT + TILES * WARPS)
// Vectors of a warp's tile that its work-items each have, and floats of all shares.
#define VECTORS (BLOCKS * BN / 8)
#define PARTS_SPACE (TICKETS * BM * BN)
#define RAGGED (DEPTH % 32 != 0)
#define IMAGE (PARTS * BN * 16 + STEP_SCALES * 128)
#define SCALES_AT (G * COLUMN_TILES * STEPS * IMAGE)
#define B_AT (BM * 32)
#define STAGE (B_AT + IMAGE)
#define PITCH 68
// Rows that all loaders copy at once.
#define PASS (LOADERS / (32 / AV))
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
#define STAGES_END (TABLE_AT + TABLE * BM * TABLE_WORDS + STAGES * 4)
#define SPACE (STAGES_END + (SHARES > 1 ? 8 : 0))

void contraction_halves_sm90a_tile(const __global float* restrict a, const __global float* restrict weights,
                                   const __global float* restrict bias, __global float* restrict c, __global float* parts,
                                   volatile __global uint* turns, int first_tile, __local float* restrict space) {
  //@hole SIZES
  //@end
  const int item = get_local_id(0);
  const uint stages = oclc_shared(space);
  // Of each stage: what it holds has been loaded, and has been used.
  const uint loaded = stages + (STAGES_END - STAGES * 4) * 4;
  const uint used = loaded + STAGES * 8;
#if SHARES > 1
  // A ticket has been written, and read by all warps.
  const uint told = used + STAGES * 8, taken = told + 8;
  volatile __local int* ticket_at = (volatile __local int*)(space + STAGES_END + 4);
#endif
  if (item == 0) {
    for (int s = 0; s < STAGES; ++s) {
      oclc_barrier_init(loaded + s * 8, LOADERS + 1);
      oclc_barrier_init(used + s * 8, WARPS);
    }
#if SHARES > 1
    oclc_barrier_init(told, 1);
    oclc_barrier_init(taken, ITEMS / 32);
#endif
    oclc_publish();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
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
#if SHARES > 1
    for (uint told_phase = 0;; told_phase ^= 1) {
      if (loader == 0) {
        oclc_barrier_wait(taken, told_phase ^ 1);
        *ticket_at = (int)oclc_next_of(turns, 2 * TICKETS + (uint)get_num_groups(0) - 1);
        oclc_barrier_arrive(told);
      }
      oclc_barrier_wait(told, told_phase);
      const int ticket = *ticket_at;
      oclc_warp_barrier();
      if (loader % 32 == 0) oclc_barrier_arrive(taken);
      if (ticket >= 2 * TICKETS) break;
      if (ticket >= TICKETS) continue;
      const int tile = ticket / SHARES, share = ticket % SHARES;
#else
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
#endif
      const int g = tile / (ROW_TILES * COLUMN_TILES);
      const int place = tile % (ROW_TILES * COLUMN_TILES);
      //@hole GROUP
      //@end
      const int swath = place / (SWATH * COLUMN_TILES);
      const int swath_rows = min(ROW_TILES - swath * SWATH, SWATH);
      const int within = place - swath * (SWATH * COLUMN_TILES);
      const int m0 = (swath * SWATH + within % swath_rows) * BM;
      const __global float* image = weights + (size_t)(g * COLUMN_TILES + within / swath_rows) * (STEPS * IMAGE) + FIRST_STEP * IMAGE;
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
          int row_at = 0;
          int4 row_edges = 0;
          //@hole A_ROW
          row_at = (g * M + m) * K;
          //@end
#if MASKS
          uint mask = 0, later_mask = 0;
          for (int tap = 0; tap < TAPS; ++tap) {
            const int k = 0;
            const __global float* base = weights;
            int step_at = 0;
            int4 step_edges = 0;
            //@hole A_STEP
            base = a;
            step_at = k;
            //@end
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
#if FLAT
      int at_k = FIRST_STEP * 32;
#else
      int at_tap = FIRST_STEP / ((K + 31) / 32), at_k = FIRST_STEP % ((K + 31) / 32) * 32;
#endif
      for (int step = 0; step < OWN_STEPS; ++step) {
        oclc_barrier_wait(used + stage * 8, phase);
        const uint to = stages + stage * (STAGE * 4);
        if (loader == 0) {
          oclc_barrier_expect(loaded + stage * 8, IMAGE * 4);
          oclc_copy_bulk(to + B_AT * 4, image, IMAGE * 4, loaded + stage * 8);
        }
        image += IMAGE;
#if A_ALONG_K
        const int in_k = loader % (32 / AV) * AV;
#if FLAT
        const int tap = (at_k + in_k) / K;
        const int k = (at_k + in_k) % K;
#else
        const int tap = at_tap;
        const int k = at_k + in_k;
#endif
#endif
#if TABLE
        const __global float* base = weights;
        int step_at = 0;
        int4 step_edges = 0;
        //@hole A_STEP
        base = a;
        step_at = k;
        //@end
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
#if FLAT
          const int tap = (at_k + in_k) / K;
          const int k = (at_k + in_k) % K;
#else
          const int tap = at_tap;
          const int k = at_k + in_k;
#endif
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
#if FLAT == 0
        if (at_k >= K) at_k = 0, ++at_tap;
#endif
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
#if SHARES > 1
    for (uint told_phase = 0;; told_phase ^= 1) {
      oclc_barrier_wait(told, told_phase);
      const int ticket = *ticket_at;
      oclc_warp_barrier();
      if (lane == 0) oclc_barrier_arrive(taken);
      if (ticket >= 2 * TICKETS) break;
      const int tile = ticket % TICKETS / SHARES, share = ticket % SHARES;
#else
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
#endif
      const int g = tile / (ROW_TILES * COLUMN_TILES);
      const int place = tile % (ROW_TILES * COLUMN_TILES);
      //@hole GROUP
      //@end
      const int swath = place / (SWATH * COLUMN_TILES);
      const int swath_rows = min(ROW_TILES - swath * SWATH, SWATH);
      const int within = place - swath * (SWATH * COLUMN_TILES);
      const int m0 = (swath * SWATH + within % swath_rows) * BM;
      const int n0 = within / swath_rows * BN;
#if STEP_SCALES == 0
      const __global float* scales = weights + SCALES_AT + (size_t)g * (COLUMN_TILES * BN);
#endif
#if SHARES > 1
      volatile __global uint* turn = turns + TURNS_AT + tile * WARPS + warp;
      __global float4* own = (__global float4*)parts + (size_t)(tile * SHARES * WARPS + warp) * (VECTORS * 32) + lane;
      if (ticket >= TICKETS) {
        if (lane == 0) oclc_wait_for(turn, SHARES);
        oclc_warp_barrier();
        for (int i = share; i < VECTORS; i += SHARES) {
          float4 v = own[i * 32];
          #pragma unroll
          for (int j = 1; j < SHARES; ++j) v += own[j * (WARPS * VECTORS * 32) + i * 32];
          const int at = i % 8 * 32 + lane;
          const int m = m0 + warp_row + i / 8 / (BN / 64) * 64 + at / 16;
          const int n = n0 + i / 8 % (BN / 64) * 64 + at % 16 * 4;
          if (m < M && n < N) {
#if STEP_SCALES == 0
            v *= *(const __global float4*)(scales + n);
#endif
#if RESULTS > 1
            float4 others[1][RESULTS - 1];
            const int j = 0;
#endif
            //@hole EPILOGUE_VALUE
            v += vload4(0, bias + n);
            //@end
            //@hole EPILOGUE
            vstore4(v, 0, c + (size_t)(g * M + m) * N + n);
            //@end
          }
        }
        oclc_warp_barrier();
        if (lane == 0) oclc_next_of(turn, 2 * SHARES - 1);
        continue;
      }
#endif
      float out[BLOCKS][BN / 2];
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b)
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i) out[b][i] = 0.0f;
#if KEEPS
      // Exponents that the sums of rows lane / 4 and lane / 4 + 8 are scaled by, and the halves of two steps: the matrix unit reads those
      // of one while those of the next are made.
      uint held0[BLOCKS], held8[BLOCKS];
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b) held0[b] = held8[b] = 0;
      uint4 first[2][BLOCKS], second[2][BLOCKS];
      int read = 0;
      for (int pair = 0; pair < OWN_STEPS; pair += 2) {
        #pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          if (pair + odd < OWN_STEPS) {
            oclc_barrier_wait(loaded + stage * 8, phase);
            const ulong from_b = tile_b + stage * (STAGE * 4 / 16);
            float rescale0[BLOCKS], rescale8[BLOCKS];
            uint grown = 0;
            #pragma unroll
            for (int b = 0; b < BLOCKS; ++b) {
              const __local float* restrict from_a = space + stage * STAGE + b * BLOCK;
              const float4 x0 = QUAD(from_a + lane_at);
              const float4 y0 = QUAD(from_a + LATER(lane_at));
              const float4 x8 = QUAD(from_a + BELOW(lane_at));
              const float4 y8 = QUAD(from_a + BELOW(LATER(lane_at)));
              const uint exponent0 = oclc_largest_exponent(x0, y0);
              const uint exponent8 = oclc_largest_exponent(x8, y8);
              const uint hold0 = exponent0 > held0[b] ? exponent0 + HEADROOM : held0[b];
              const uint hold8 = exponent8 > held8[b] ? exponent8 + HEADROOM : held8[b];
              grown |= (hold0 ^ held0[b]) | (hold8 ^ held8[b]);
              rescale0[b] = oclc_rescale(held0[b], hold0);
              rescale8[b] = oclc_rescale(held8[b], hold8);
              held0[b] = hold0;
              held8[b] = hold8;
              const float up0 = oclc_scale_up(hold0), up8 = oclc_scale_up(hold8);
              first[odd][b] = oclc_halves(x0 * up0, x8 * up8);
              second[odd][b] = oclc_halves(y0 * up0, y8 * up8);
            }
            if (pair + odd > 0) {
              #pragma unroll
              for (int b = 0; b < BLOCKS; ++b) MULTIPLIED(out[b]);
              // One work-item speaks for its warp: all of them have read what the next copy overwrites.
              oclc_warp_barrier();
              if (lane == 0) oclc_barrier_arrive(used + read * 8);
              if (oclc_warp_any(grown)) {
                #pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
                  #pragma unroll
                  for (int i = 0; i < BN / 2; ++i) out[b][i] *= i % 4 < 2 ? rescale0[b] : rescale8[b];
              }
            }
            oclc_wgmma_begin();
            #pragma unroll
            for (int b = 0; b < BLOCKS; ++b) {
              MULTIPLY(out[b], first[odd][b], from_b);
              MULTIPLY(out[b], second[odd][b], from_b + 2);
            }
            oclc_wgmma_end();
            read = stage;
            if (++stage == STAGES) stage = 0, phase ^= 1;
          }
        }
      }
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b) MULTIPLIED(out[b]);
      oclc_warp_barrier();
      if (lane == 0) oclc_barrier_arrive(used + read * 8);
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b) {
        const float down0 = oclc_scale_down(held0[b], 0), down8 = oclc_scale_down(held8[b], 0);
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i) out[b][i] *= i % 4 < 2 ? down0 : down8;
      }
#else
#if EARLY
      oclc_barrier_wait(loaded + stage * 8, phase);
      const __local float* restrict from_a = space + stage * STAGE;
      uint exponent0 = EXPONENT0(from_a), exponent8 = EXPONENT8(from_a);
#endif
      for (int step = 0; step < OWN_STEPS; ++step) {
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
            if (step < OWN_STEPS - 1) oclc_barrier_wait(loaded + stage * 8, phase);
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
      #pragma unroll
      for (int b = 0; b < BLOCKS; ++b) {
        #pragma unroll
        for (int c0 = 0; c0 < BN; c0 += 64) {
          oclc_warp_barrier();
          #pragma unroll
          for (int i = 0; i < 32; i += 2)
            *(__local float2*)(rows + (lane / 4 + i / 2 % 2 * 8) * PITCH + i / 4 * 8 + lane % 4 * 2) =
                (float2)(out[b][c0 / 2 + i], out[b][c0 / 2 + i + 1]);
          oclc_warp_barrier();
#if SHARES > 1
          __global float4* to = own + (share * (WARPS * VECTORS) + (b * (BN / 64) + c0 / 64) * 8) * 32;
          #pragma unroll
          for (int i = 0; i < 8; ++i)
            to[i * 32] = *(const __local float4*)(rows + (i * 2 + lane / 16) * PITCH + lane % 16 * 4);
#else
          for (int i = lane; i < 16 * 16; i += 32 * AT_ONCE) {
            float4 results[AT_ONCE];
#if RESULTS > 1
            float4 others[AT_ONCE][RESULTS - 1];
#endif
            #pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
              // Surplus rows and columns repeat the last ones, so that no branch keeps reads apart.
              const int at = i + j * 32;
              const int m = min(m0 + warp_row + b * 64 + at / 16, M - 1);
              const int n = min(n0 + c0 + at % 16 * 4, (N - 1) / 4 * 4);
              float4 v = *(const __local float4*)(rows + at / 16 * PITCH + at % 16 * 4);
#if STEP_SCALES == 0
              v *= *(const __global float4*)(scales + n);
#endif
              //@hole EPILOGUE_VALUE
              v += vload4(0, bias + n);
              //@end
              results[j] = v;
            }
            #pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
              const int at = i + j * 32;
              const int m = m0 + warp_row + b * 64 + at / 16;
              const int n = n0 + c0 + at % 16 * 4;
              if (m < M && n < N) {
                const float4 v = results[j];
                //@hole EPILOGUE
                vstore4(v, 0, c + (size_t)(g * M + m) * N + n);
                //@end
              }
            }
          }
#endif
        }
      }
#if SHARES > 1
      oclc_warp_barrier();
      if (lane == 0) oclc_hand_in(turn, 2 * SHARES - 1);
#endif
    }
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void contraction_halves_sm90a(const __global float* restrict a, const __global float* restrict weights,
                                       const __global float* restrict bias, __global float* restrict c, __global float* parts,
                                       volatile __global uint* turns) {
  __local float space[SPACE] __attribute__((aligned(1024)));
  contraction_halves_sm90a_tile(a, weights, bias, c, parts, turns, (int)get_group_id(0), space);
}
#endif
