// Contraction on NVIDIA's matrix units (sm_90a). At single precision each operand is a TF32 number and the TF32 rest of it, and three of
// the four products of parts are summed; or operands are rounded to TF32. Blocks of KB terms are summed in the matrix unit, whose
// accumulator truncates, and added up in single precision.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
// A, B, C   holes A_ELEMENTS and B_ELEMENTS as in contraction_gpu.cl; EPILOGUE_VALUE makes of v what EPILOGUE then stores.
// local A   stage of rows of 32 k, 128 bytes: element k of row r at r * 32 + ((k / 4) ^ (r % 8)) * 4 + k % 4. ldmatrix reads it.
// local B   the same with columns for rows: the TF32 numbers, then their rests, if operands are split. The matrix unit reads it.
// local memory SPACE floats, from a multiple of 1024 bytes on.
// launch: at most G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items, each of which takes every so manyth tile: its loads go on
// while results are stored.
// paper     Ootomo, Yokota: Recovering single precision accuracy from Tensor Cores, 2022.
//@kernel ITEMS, SPACE, 1024
//@only OCLC_SM90A
//@include gemm_sizes
//@param WARPGROUPS 2 {1, 2}  128 work-items each that compute 64 rows
//@param BN 128 {64, 128}  columns of a group's tile
//@param KB 16 {8, 16, 32}  terms of a sum in the matrix unit
//@param SPLIT 1 {0, 1}  1: single precision by parts; 0: rounded operands
//@param LOADERS 256 {128, 256}  work-items that load, of 512 at most in all: 256 with 2 warpgroups trade registers with them
//@param AHEAD 1 {0, 1}  1: loaders keep the elements of two steps in registers, 0: of one
//@param AT_ONCE 4 {1, 2, 4, 8}  vectors of the epilogue whose operands are read together
//@include sm90a/results
//@param REGAIN 0 {0, 1}  1: what the unit cuts off on average is given back
//@param STAGES 3 {1..}  stages of 32 k in flight
#define BM (WARPGROUPS * 64)
#define BK 32
//@include gpu/group_tiles
//@include gpu/group_steps
//@include gpu/group_loads
//@include join
#define MULTIPLY_FIRST JOIN(JOIN(oclc_wgmma_, BN), _zero)
#define MULTIPLY JOIN(oclc_wgmma_, BN)
#define MULTIPLIED JOIN(JOIN(oclc_wgmma_, BN), _wait)
#define COMPUTERS (WARPGROUPS * 128)
#define ITEMS (COMPUTERS + LOADERS)
#define A_LOADS (BM * BK / AV / LOADERS)
#define B_LOADS (BN * BK / BV / LOADERS)
#define B_AT (BM * BK)
#define STAGE (BM * BK + (1 + SPLIT) * BN * BK)
#define SPACE (STAGES * STAGE + COMPUTERS / 2 * PITCH + STAGES * 4)
#define PITCH (BN + 4)
#define TURNS (AHEAD + 1)
#define STORED(turn) (AHEAD ? 1 - turn : turn)
#define TILES (G * ROW_TILES * COLUMN_TILES)
#define PLACE(row, k) ((row) * BK + (((k) / 4) ^ ((row) & 7)) * 4 + (k) % 4)

void contraction_sm90a_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c, int first_tile,
                            __local float* restrict space) {
  //@lines SIZES
  //@include sm90a/stages L=LOADERS
  if (item >= COMPUTERS) {
#if ITEMS == 512
    oclc_fewer_registers();
#endif
    const int loader = item - COMPUTERS;
    int stage = 0;
    uint phase = 1;
    A_VECTOR next_a[TURNS][A_LOADS];
    B_VECTOR next_b[TURNS][B_LOADS];
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
      //@include gpu/tile_of_group
      const int n0 = within / swath_rows * BN;
      int at_tap = 0, at_k = 0;
      // With AHEAD, the elements of a step are asked for before those of the step before it are stored.
      for (int pair = 0; pair < STEPS + AHEAD; pair += TURNS) {
        #pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
          const int step = pair + turn;
          if (step < STEPS) {
            //@include sm90a/load_operand X=A x=a R=M r=m L=M P="a + (size_t)(g * M + m) * K + k"
            //@include sm90a/load_operand X=B x=b R=N r=n L=N_LOADED P="b + (size_t)(g * K + k) * N + n"
            at_k += BK;
            if (!FLAT && at_k >= K) at_k = 0, ++at_tap;
          }
          if (AHEAD ? step > 0 && step <= STEPS : step < STEPS) {
            oclc_barrier_wait(used + stage * 8, phase);
            __local float* restrict to_a = space + stage * STAGE;
            __local float* restrict to_b = to_a + B_AT;
            #pragma unroll
            for (int i = 0; i < A_LOADS; ++i) {
              const int at = loader + i * LOADERS;
#if A_ALONG_K
              const int in_k = at % (BK / AV) * AV;
              *(__local A_VECTOR*)(to_a + PLACE(at / (BK / AV), in_k)) = next_a[STORED(turn)][i];
#else
              const int in_k = at / 32 % 4 * 8 + at % 8;
              const int row = (at / 128 * 4 + at / 8 % 4) * AV;
#if AV == 4
              to_a[PLACE(row, in_k)] = next_a[STORED(turn)][i].x;
              to_a[PLACE(row + 1, in_k)] = next_a[STORED(turn)][i].y;
              to_a[PLACE(row + 2, in_k)] = next_a[STORED(turn)][i].z;
              to_a[PLACE(row + 3, in_k)] = next_a[STORED(turn)][i].w;
#else
              to_a[PLACE(row, in_k)] = next_a[STORED(turn)][i];
#endif
#endif
            }
            #pragma unroll
            for (int i = 0; i < B_LOADS; ++i) {
              const int at = loader + i * LOADERS;
              const B_VECTOR number = oclc_tf32(next_b[STORED(turn)][i]);
#if SPLIT
              const B_VECTOR rest = oclc_tf32(next_b[STORED(turn)][i] - number);
#endif
#if B_ALONG_K
              const int place_b = PLACE(at / (BK / BV), at % (BK / BV) * BV);
              *(__local B_VECTOR*)(to_b + place_b) = number;
#if SPLIT
              *(__local B_VECTOR*)(to_b + BN * BK + place_b) = rest;
#endif
#else
              const int in_k = at / 32 % 4 * 8 + at % 8;
              const int column = (at / 128 * 4 + at / 8 % 4) * BV;
#if BV == 4
              to_b[PLACE(column, in_k)] = number.x;
              to_b[PLACE(column + 1, in_k)] = number.y;
              to_b[PLACE(column + 2, in_k)] = number.z;
              to_b[PLACE(column + 3, in_k)] = number.w;
#if SPLIT
              to_b[BN * BK + PLACE(column, in_k)] = rest.x;
              to_b[BN * BK + PLACE(column + 1, in_k)] = rest.y;
              to_b[BN * BK + PLACE(column + 2, in_k)] = rest.z;
              to_b[BN * BK + PLACE(column + 3, in_k)] = rest.w;
#endif
#else
              to_b[PLACE(column, in_k)] = number;
#if SPLIT
              to_b[BN * BK + PLACE(column, in_k)] = rest;
#endif
#endif
#endif
            }
            oclc_publish();
            oclc_barrier_arrive(loaded + stage * 8);
            if (++stage == STAGES) stage = 0, phase ^= 1;
          }
        }
      }
    }
  } else {
#if ITEMS == 512
    oclc_more_registers();
#endif
    const int warp = item / 32;
    const int lane = item % 32;
    // Lanes give ldmatrix the rows of their warp, the upper half those of the next four k.
    const uint row_at = stages + (warp * 16 + lane % 16) * 128;
    const uint piece = (lane / 16) ^ (lane % 8);
    const ulong tile_b = oclc_wgmma_tile(stages + B_AT * 4);
    int stage = 0;
    uint phase = 0;
    for (int tile = first_tile; tile < TILES; tile += (int)get_num_groups(0)) {
      //@include gpu/tile_of_group
      const int n0 = within / swath_rows * BN;
      float out[BN / 2];
      #pragma unroll
      for (int i = 0; i < BN / 2; ++i) out[i] = 0.0f;
      for (int step = 0; step < STEPS; ++step) {
        oclc_barrier_wait(loaded + stage * 8, phase);
        const uint from_a = row_at + stage * (STAGE * 4);
        const ulong from_b = tile_b + stage * (STAGE * 4 / 16);
        #pragma unroll
        for (int k0 = 0; k0 < BK / 8; k0 += KB / 8) {
          uint4 numbers[KB / 8];
#if SPLIT
          uint4 rests[KB / 8];
#endif
          #pragma unroll
          for (int k = 0; k < KB / 8; ++k) {
            const uint4 x = oclc_matrix_load(from_a + ((piece ^ (2 * (k0 + k))) << 4));
            const float4 number = oclc_tf32(as_float4(x));
            numbers[k] = as_uint4(number);
#if SPLIT
            rests[k] = as_uint4(as_float4(x) - number);
#endif
          }
          float sum[BN / 2];
          oclc_wgmma_begin();
#if SPLIT
          // The small products come first: what the unit cuts off an accumulator is relative to what it holds.
          #pragma unroll
          for (int k = 0; k < KB / 8; ++k) {
            const ulong at = from_b + 2 * (k0 + k);
            if (k == 0)
              MULTIPLY_FIRST(sum, rests[k], at);
            else
              MULTIPLY(sum, rests[k], at);
            MULTIPLY(sum, numbers[k], at + BN * BK * 4 / 16);
          }
#endif
          #pragma unroll
          for (int k = 0; k < KB / 8; ++k) {
            if (!SPLIT && k == 0)
              MULTIPLY_FIRST(sum, numbers[k], from_b + 2 * (k0 + k));
            else
              MULTIPLY(sum, numbers[k], from_b + 2 * (k0 + k));
          }
          oclc_wgmma_end();
          MULTIPLIED(sum);
          #pragma unroll
          for (int i = 0; i < BN / 2; ++i)
            out[i] = fma(sum[i], oclc_regain(REGAIN * (step * (BK / KB) + k0 / (KB / 8) + lane / 4)), out[i]);
        }
        if (lane == 0) oclc_barrier_arrive(used + stage * 8);
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
      // Through local memory, so that neighbours in memory are stored together.
      __local float* restrict rows = space + STAGES * STAGE + warp * (16 * PITCH);
      oclc_warp_barrier();
      #pragma unroll
      for (int i = 0; i < BN / 2; i += 2)
        *(__local float2*)(rows + (lane / 4 + i / 2 % 2 * 8) * PITCH + i / 4 * 8 + lane % 4 * 2) = (float2)(out[i], out[i + 1]);
      oclc_warp_barrier();
      for (int i = lane; i < 16 * BN / 4; i += 32 * AT_ONCE) {
        float4 results[AT_ONCE];
#if RESULTS > 1
        float4 others[AT_ONCE][RESULTS - 1];
#endif
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
          // Surplus rows and columns repeat the last ones, so that no branch keeps reads apart.
          const int at = i + j * 32;
          const int m = min(m0 + warp * 16 + at / (BN / 4), M - 1);
          const int n = min(n0 + at % (BN / 4) * 4, (N - 1) / 4 * 4);
          float4 v = *(const __local float4*)(rows + at / (BN / 4) * PITCH + at % (BN / 4) * 4);
          //@include value_of_four
        }
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
          const int at = i + j * 32;
          const int m = m0 + warp * 16 + at / (BN / 4);
          const int n = n0 + at % (BN / 4) * 4;
          if (m < M && n < N) {
            const float4 v = results[j];
            //@include store_four
          }
        }
      }
    }
  }
}
