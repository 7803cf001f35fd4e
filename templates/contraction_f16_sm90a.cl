// Contraction in TF32's precision with a packed B on NVIDIA's matrix units (sm_90a), which multiply numbers of 16 bits twice as fast.
// Elements of A are multiplied by a power of two, one a tile, and rounded to halves, which have TF32's 11 bits, by the work-items that load
// them; others do nothing but have the unit multiply, and store what it sums up. A tile keeps its power of two until an element is 2^6
// times as large as the largest of those that chose it; sums that are there are then scaled down. What is smaller than 2^-22 of a tile's
// largest element has fewer bits.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
// A         as in contraction_f16x2_sm90a.cl, four neighbours in k; with MASKED by the holes A_ROW and A_STEP, of the row and of the tap.
//           Taps of a line of the window read the same rows of A, each tap's one further on: rows of lines that are WIDTH + LINE - 1 long
//           are then loaded once for all of them, and A_ROW is for m of such lines.
// B         weights[(((g * COLUMN_TILES + n / BN) * STEPS + step) * LINE + tap) * IMAGE], 4-byte words: as it lies in local memory; behind them,
//           from SCALES_AT on, what column n of group g is to be multiplied by: [(g * COLUMN_TILES * BN) + n].
// C         holes EPILOGUE_VALUE and EPILOGUE as in contraction_sm90a.cl.
// local A, B  rows of 32 k, 64 bytes, one a row of A or a column of B: piece k / 8 of row r, 8 halves, at (k / 8) ^ (r / 2 % 4).
// later     with SHARES > 1, hole ASK asks for what a later launch reads: by a warp once it has handed in a share. Default: nothing.
// counters  with SHARES > 1, `turns`: tickets, which groups take for shares, then for slices; from TURNS_AT on, of each tile and warp,
//           how many shares are there and then how many slices are done; with windows, whose rows are of several tiles, behind the first
//           the slices of all. All are zeros again when the launch ends. Only slices wait, for shares, all of which groups that run
//           have taken then.
// local memory SPACE floats, from a multiple of 1024 bytes on.
// launch: at most SHARES * G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items, each of which takes every so manyth tile: its loads
// go on while results are stored.
//@kernel ITEMS, SPACE, 1024
//@only OCLC_SM90A
//@param K 768 {4.. step 4}  a multiple of 32 if there are several TAPS
//@include gemm_sizes
//@param MASKED 0 {0, 1}  1: see A; wants at most 32 TAPS
//@param LINE 1 {1..}  taps of a line, of which steps have all; with more than one MASKED and WIDTH
//@param WIDTH 1 {1.., name}  rows of C that follow one another in a line
//@param MORE_ROWS 0 {0, LINE - 1}  rows that are loaded beside those of a tile, for the later taps of a line; with 0 a tile has so many fewer
//@param WARPGROUPS 2 {1, 2}  of 64 rows: 128 work-items each
//@param BN 128 {64, 128, 192, 256}  columns of a group's tile
//@param STAGES 3 {1..} SLOTS 3 {1..4}  32 k of B in flight, and of A
//@param UNITS 1 {1..}  groups that share a compute unit: with 1, the loaders give registers to the others
//@param SHARES 1 {1..}  groups that share the steps of a tile: each leaves its sums in `parts`, for each share of a tile, each warp and each 64
//                    columns 256 vectors as they lie in local memory; once all are there, groups add up one of so many slices each,
//                    in the order of shares
//@param WINDOW_LINES 1 {1..} WINDOW_WIDTH 1 {1..}  with SHARES > 1 and WIDTH: a slice is of windows of so many rows of so many lines, which do not
//                    overlap, and EPILOGUE stores the largest results of each, at the place of its first row
#define BM (WARPGROUPS * 64)
//@param SWATH 8 {1..}  tiles of rows that are computed side by side, before the next tile of columns: what they share stays in caches
//@include sm90a/results
//@include join
#define MULTIPLY JOIN(oclc_wgmma_made_, BN)
#define MULTIPLIED JOIN(JOIN(oclc_wgmma_, BN), _wait)
#define COMPUTERS (WARPGROUPS * 128)
#define LOADERS 128
#define ITEMS (COMPUTERS + LOADERS)
#define WARPS (COMPUTERS / 32)
#define LOADED_ROWS (BM + MORE_ROWS)
// Rows with those that only fill up lines, of which tiles have the last twice.
#define PADDED (WIDTH + LINE - 1)
#define ROWS_OF_A (LINE > 1 ? M / WIDTH * PADDED : M)
#define TILE_ROWS (LOADED_ROWS - LINE + 1)
#define ROW_TILES ((ROWS_OF_A + TILE_ROWS - 1) / TILE_ROWS)
#define ROW(at) (LINE > 1 ? (at) / PADDED * WIDTH + min((at) % PADDED, WIDTH - 1) : (at))
#define IS_ROW(at) (LINE == 1 || ((at) % PADDED < WIDTH && (at) - m0 < TILE_ROWS))
#define COLUMN_TILES ((N + BN - 1) / BN)
#define TILES (G * ROW_TILES * COLUMN_TILES)
// Powers of two that a tile's later elements may be larger by.
#define HEADROOM (6u << 23)
#define STEPS_OF_TAP ((K + 31) / 32)
#define STEPS (TAPS / LINE * STEPS_OF_TAP)
// The steps of this group.
#if SHARES > 1
#define FIRST_STEP (share * STEPS / SHARES)
#define OWN_STEPS ((share + 1) * STEPS / SHARES - FIRST_STEP)
#else
#define FIRST_STEP 0
#define OWN_STEPS STEPS
#endif
#define TICKETS (TILES * SHARES)
#define TURNS_AT 32
#define TURNS (TURNS_AT + TILES * WARPS)
// Results of a window, and windows of a line and of all.
#define WINDOW (WINDOW_LINES * WINDOW_WIDTH)
#define LINE_WINDOWS (WIDTH / WINDOW_WIDTH)
#define WINDOWS (M / WINDOW)
#define COLUMN_BLOCKS ((N + 63) / 64)
// Vectors of a warp's tile that its work-items each have, and floats of all shares.
#define VECTORS (BN / 8)
#define PARTS_SPACE (TICKETS * BM * BN)
// Vectors of a slice that are added up together, so that their loads overlap.
#define OF_SLICE ((VECTORS + SHARES - 1) / SHARES)
#define SUMS_AT_ONCE (OF_SLICE < AT_ONCE ? OF_SLICE : AT_ONCE)
#define RAGGED (K % 32 != 0)
#define IMAGE (BN * 16)
#define SCALES_AT (G * COLUMN_TILES * STEPS * LINE * IMAGE)
// Slots of A, with rows to spare that only fill up, then stages of B.
#define SLOT ((BM + 8) * 16)
#define STAGES_AT (SLOTS * SLOT)
#define PITCH 68
#define SUMS out
#define FIRST_ROW m0 + warp_row
#define STEP_SCALES 0
// Rows of a loader, 32 apart, of each of which it has eight neighbours in k.
#define OWN_ROWS ((LOADED_ROWS + 31) / 32)
#define HAS_ROW(row, i) (i * 32 + 32 <= LOADED_ROWS || row < LOADED_ROWS)
#define ROWS_AT (STAGES_AT + STAGES * IMAGE)
#define BARRIERS_AT (ROWS_AT + COMPUTERS / 2 * PITCH)
// Behind the barriers the exponent that each slot is scaled by, and the largest of each warp that loads.
#define HELD_AT (BARRIERS_AT + STAGES * 4 + SLOTS * 4)
#define LARGEST_AT (HELD_AT + 4)
#define TICKET_AT (LARGEST_AT + 4)
#define SPACE (TICKET_AT + (SHARES > 1 ? 8 : 0))

void contraction_rounded_sm90a_tile(const __global float* restrict a, const __global float* restrict weights, __global float* restrict c,
                                    __global float* parts, volatile __global uint* turns, int first_tile, __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  const uint slots = oclc_shared(space), stages = slots + STAGES_AT * 4;
  // Of each stage and slot: what it holds has been loaded, and has been used.
  const uint loaded = slots + BARRIERS_AT * 4, used = loaded + STAGES * 8;
  const uint filled = used + STAGES * 8, emptied = filled + SLOTS * 8;
  __local uint* held_by = (__local uint*)(space + HELD_AT);
#if SHARES > 1
  // A ticket has been written, and read by all warps.
  const uint told = slots + TICKET_AT * 4, taken = told + 8;
  volatile __local int* ticket_at = (volatile __local int*)(space + TICKET_AT + 4);
#endif
  if (item == 0) {
    for (int s = 0; s < STAGES; ++s) {
      oclc_barrier_init(loaded + s * 8, 1);
      oclc_barrier_init(used + s * 8, WARPS);
    }
    for (int s = 0; s < SLOTS; ++s) {
      oclc_barrier_init(filled + s * 8, LOADERS);
      oclc_barrier_init(emptied + s * 8, WARPS);
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
    oclc_registers_120();
#endif
    const int loader = item - COMPUTERS;
    const int in_k = loader % 4 * 8;
    int stage = 0, slot = 0;
    uint phase = 1, slot_phase = 1;
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
      //@include gpu/tile_of_group
      const __global float* image = weights + (size_t)(g * COLUMN_TILES + within / swath_rows) * (STEPS * LINE * IMAGE) + FIRST_STEP * (LINE * IMAGE);
      // Of each row its place, and a bit for each line of taps whose elements are there.
#if MASKED
      int places[OWN_ROWS];
      uint masks[OWN_ROWS];
      {
        // Four neighbours find those of a row each.
        const int row = loader / 4 + loader % 4 % OWN_ROWS * 32;
        const int m = min(m0 + row, ROWS_OF_A - 1);
        //@include row_of_a
        uint mask = 0;
        for (int tap = 0; tap < TAPS; tap += LINE) {
          const int k = 0;
          //@include step_of_a
          const int4 edge = row_edges + step_edges;
          mask |= HAS_ROW(row, OWN_ROWS - 1) && (edge.x | edge.y | edge.z | edge.w) >= 0 ? 1u << tap / LINE : 0;
        }
        #pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i) {
          places[i] = (int)oclc_from_lane((uint)row_at, loader % 32 / 4 * 4 + i);
          masks[i] = oclc_from_lane(mask, loader % 32 / 4 * 4 + i);
        }
      }
#endif
      uint held = 0;
      float up = 0.0f;
      // What the next two steps want of A is on its way.
      float4 ahead[2][OWN_ROWS][2];
      int tap = FIRST_STEP / STEPS_OF_TAP * LINE, k = FIRST_STEP % STEPS_OF_TAP * 32 + in_k;
      for (int pair = -2; pair < OWN_STEPS; pair += 2) {
        #pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const int step = pair + odd;
          if (step >= 0 && step < OWN_STEPS) {
            if (loader == 0) {
              for (int i = 0; i < LINE; ++i) {
                oclc_barrier_wait(used + stage * 8, phase);
                oclc_barrier_expect(loaded + stage * 8, IMAGE * 4);
                oclc_copy_bulk(stages + stage * (IMAGE * 4), image, IMAGE * 4, loaded + stage * 8);
                image += IMAGE;
                if (++stage == STAGES) stage = 0, phase ^= 1;
              }
            }
            uint largest = 0;
            #pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) largest = max(largest, oclc_largest_bits(ahead[odd][i][0], ahead[odd][i][1]));
            if (oclc_loaders_any(oclc_exceeds(largest, held)) || step == 0) {
              // What is infinite stays so by any scale. At least 2^-111, so that both scales are finite.
              uint finite = 16u << 23;
              #pragma unroll
              for (int i = 0; i < OWN_ROWS; ++i) finite = max(finite, oclc_finite_bits(ahead[odd][i][0], ahead[odd][i][1]));
              const uint bits = oclc_warp_largest(finite);
              if (loader % 32 == 0) ((__local uint*)(space + LARGEST_AT))[loader / 32] = bits;
              oclc_loaders_any(0);
              const uint4 all = *(const __local uint4*)(space + LARGEST_AT);
              const uint exponent = max(max(all.x, all.y), max(all.z, all.w)) & 0x7f800000u;
              held = exponent > held ? exponent + HEADROOM : held;
              up = oclc_scale_up(held);
            }
            oclc_barrier_wait(emptied + slot * 8, slot_phase);
            #pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) {
              const int row = loader / 4 + i * 32;
              const float4 x = ahead[odd][i][0] * up, y = ahead[odd][i][1] * up;
              if (HAS_ROW(row, i))
                *(__local uint4*)(space + slot * SLOT + row * 16 + (in_k / 8 ^ row / 2 % 4) * 4) =
                    (uint4)(oclc_half_pair(x.x, x.y), oclc_half_pair(x.z, x.w), oclc_half_pair(y.x, y.y), oclc_half_pair(y.z, y.w));
            }
            if (loader == 0) held_by[slot] = held;
            oclc_publish();
            oclc_barrier_arrive(filled + slot * 8);
            if (++slot == SLOTS) slot = 0, slot_phase ^= 1;
          }
          if (step + 2 < OWN_STEPS) {
#if MASKED
            //@include step_of_a
#endif
            #pragma unroll
            for (int i = 0; i < OWN_ROWS; ++i) {
#if MASKED
              const __global float* from = base + places[i] + step_at;
              const int inside = masks[i] >> tap / LINE & 1;
#else
              const int m = min(m0 + loader / 4 + i * 32, M - 1);
              const __global float* from = weights;
              int inside = 1;
              //@hole A_PLACE
              from = a + (size_t)(g * M + m) * K + k;
              //@end
#endif
              ahead[odd][i][0] = inside && !(RAGGED && k >= K) ? *(const __global float4*)from : (float4)(0.0f);
              ahead[odd][i][1] = inside && !(RAGGED && k + 4 >= K) ? *(const __global float4*)(from + 4) : (float4)(0.0f);
            }
            k += 32;
            if (k - in_k >= K) k = in_k, tap += LINE;
          }
        }
      }
    }
  } else {
#if UNITS == 1 && WARPGROUPS == 2
    oclc_registers_192();
#endif
    const int warp = item / 32;
    const int lane = item % 32;
    const int warp_row = warp * 16;
    const ulong tile_a = oclc_wgmma_half_tile(slots + warp / 4 * (64 * 64)), tile_b = oclc_wgmma_half_tile(stages);
    int stage = 0, slot = 0;
    uint phase = 0, slot_phase = 0;
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
      //@include gpu/tile_of_group
      const int n0 = within / swath_rows * BN;
      const __global float* scales = weights + SCALES_AT + (size_t)g * (COLUMN_TILES * BN);
#if WINDOW > 1
      //@include sm90a/windows
#endif
#if SHARES > 1
      volatile __global uint* turn = turns + TURNS_AT + tile * WARPS + warp;
      __global float4* own = (__global float4*)parts + (size_t)(tile * SHARES * WARPS + warp) * (VECTORS * 32) + lane;
#if WINDOW == 1
      //@include sm90a/slices
#endif
#endif
      float out[BN / 2];
      #pragma unroll
      for (int i = 0; i < BN / 2; ++i) out[i] = 0.0f;
      uint held = 0;
      int before = 0, slot_before = 0;
      for (int step = 0; step < OWN_STEPS; ++step) {
        oclc_barrier_wait(filled + slot * 8, slot_phase);
        const uint hold = held_by[slot];
        if (step > 0 && hold != held) {
          MULTIPLIED(out);
          const float rescale = oclc_rescale(held, hold);
          #pragma unroll
          for (int i = 0; i < BN / 2; ++i) out[i] *= rescale;
        }
        held = hold;
        #pragma unroll
        for (int tap = 0; tap < LINE; ++tap) {
          // Rows of a tap lie one behind those of the tap before.
          const ulong from_a = tile_a + (slot * (SLOT * 4 / 16) + tap * 4), from_b = tile_b + stage * (IMAGE * 4 / 16);
          oclc_barrier_wait(loaded + stage * 8, phase);
          oclc_wgmma_begin();
          MULTIPLY(out, from_a, from_b);
          MULTIPLY(out, from_a + 2, from_b + 2);
          oclc_wgmma_end();
          if (step > 0 || tap > 0) {
            oclc_wgmma_wait_but_last();
            // One work-item speaks for its warp: all of them have read what the next copy overwrites.
            oclc_warp_barrier();
            if (lane == 0) {
              oclc_barrier_arrive(used + before * 8);
              if (tap == 0) oclc_barrier_arrive(emptied + slot_before * 8);
            }
          }
          before = stage;
          if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        slot_before = slot;
        if (++slot == SLOTS) slot = 0, slot_phase ^= 1;
      }
      MULTIPLIED(out);
      oclc_warp_barrier();
      if (lane == 0) {
        oclc_barrier_arrive(used + before * 8);
        oclc_barrier_arrive(emptied + slot_before * 8);
      }
      const float down = oclc_scale_down(held, 0);
      #pragma unroll
      for (int i = 0; i < BN / 2; ++i) out[i] *= down;
      // Through local memory, 64 columns at a time, so that neighbours in memory are stored together.
      __local float* restrict rows = space + ROWS_AT + warp * (16 * PITCH);
      #pragma unroll
      for (int c0 = 0; c0 < BN; c0 += 64) {
        //@include sm90a/sums
#if SHARES > 1
        __global float4* to = own + (share * (WARPS * VECTORS) + c0 / 64 * 8) * 32;
        #pragma unroll
        for (int i = 0; i < 8; ++i)
          to[i * 32] = *(const __local float4*)(rows + (i * 2 + lane / 16) * PITCH + lane % 16 * 4);
#else
        //@include sm90a/warp_results
#endif
      }
#if SHARES > 1
      oclc_warp_barrier();
      if (lane == 0) oclc_hand_in(turn, 2 * SHARES - 1);
      if (warp == 0) {
        //@lines ASK
      }
#endif
    }
  }
}
