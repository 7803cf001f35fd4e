// Contraction on the matrix units of an NVIDIA GPU (compute capability 8.0 and later) through mma.sync.m16n8k8 on TF32 operands.
// GEMM, batched GEMM, convolution by implicit GEMM, and the gradients of these. Its groups are those of contraction_gpu.cl with the
// same BM, BN and ITEMS, which stands in where a driver refuses this text.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
//           SPLIT 1: x = big + small, both TF32, and a * b = small * big + big * small + big * big, as accurate as a chain of fma.
//           The unit's sums truncate: those of 8 k are added up in single precision, and chains of such sums are added up in
//           turn, which divides the rounding error of long ones. An infinite operand gives NaN.
//           SPLIT 0: operands rounded to TF32.
// A, B, C   as in contraction_gpu.cl, with the same holes.
// local A   A_ALONG_K: space[(m - m0) * A_PITCH + k], else space[k * A_PITCH + m - m0]; local B alike, from B_AT on; twice: one pair
//           is filled while the other is used. At the end tile C: space[(m - m0) * C_PITCH + n - n0].
// local memory 4 * SPACE bytes, which may be more than what the device tells.
// launch: G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items.
// paper     Ootomo, Yokota: Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
//           performance, 2022.
//@kernel ITEMS, SPACE, 16
//@include gemm_sizes
//@param BM 64 {WM.. step WM} BN 64 {WN.. step WN}  rows and columns of a group's tile
//@param BK 32 {8.. step 8}  summed elements of a step
//@param K_UNROLL 1 {1..}  copies of the code for 8 terms: more need more registers
//@param WM 32 {16.. step 16} WN 32 {16.. step 16}  rows and columns of a sub-group of 32 work-items
//@param SPLIT 1 {0, 1}
//@param CHAINED 1 {0, 1} CHAIN 4 {0..}  1: with SPLIT, a chain of sums ends after CHAIN steps; 0: one chain, which takes fewer registers
//@param EPILOGUE_UNROLL 4 {1, 4}  copies of the epilogue: 4, or 1 for an expensive one
//@include gpu/group_tiles
//@include gpu/group_steps
//@include gpu/item_loads
#if CHAINED && SPLIT
#define SUM out
#else
#define SUM acc
#endif
#define ITEMS ((BM / WM) * (BN / WN) * 32)
#define A_PITCH (A_ALONG_K ? BK + 4 : BM + 8)
#define B_PITCH (B_ALONG_K ? BK + 4 : BN + 8)
// Elements that are neighbours in local memory.
#define A_RUN (A_ALONG_K ? BK : BM)
#define B_RUN (B_ALONG_K ? BK : BN)
#define A_M (A_ALONG_K ? A_PITCH : 1)
#define A_K (A_ALONG_K ? 1 : A_PITCH)
#define B_N (B_ALONG_K ? B_PITCH : 1)
#define B_K (B_ALONG_K ? 1 : B_PITCH)
#define B_AT (A_ALONG_K ? BM * A_PITCH : BK * A_PITCH)
#define STAGE (B_AT + (B_ALONG_K ? BN * B_PITCH : BK * B_PITCH))
#define C_PITCH (BN + 8)
#define SPACE (2 * STAGE > BM * C_PITCH ? 2 * STAGE : BM * C_PITCH)
#define MI (WM / 16)
#define NJ (WN / 8)

void contraction_mma_gpu_tile(const __global float* restrict a, const __global float* restrict b,
                              __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  //@include gpu/tile_of_group
  const int n0 = within / swath_rows * BN;
  const int lane_row = item % 32 / 4;
  const int lane_k = item % 4;
  const int warp_row = item / 32 / (BN / WN) * WM;
  const int warp_column = item / 32 % (BN / WN) * WN;
  float acc[MI][NJ][4];
  #pragma unroll
  for (int i = 0; i < MI; ++i)
    #pragma unroll
    for (int j = 0; j < NJ; ++j) acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.0f;
#if CHAINED && SPLIT
  float out[MI][NJ][4];
  #pragma unroll
  for (int i = 0; i < MI; ++i)
    #pragma unroll
    for (int j = 0; j < NJ; ++j) out[i][j][0] = out[i][j][1] = out[i][j][2] = out[i][j][3] = 0.0f;
#endif
  A_VECTOR next_a[A_LOADS];
  B_VECTOR next_b[B_LOADS];
  int at_tap = 0, at_k = 0;
  // Step s computes with what step s - 1 loaded.
  for (int step = 0; step <= STEPS; ++step) {
    if (step < STEPS) {
      //@include gpu/load_step
    }
    if (step > 0) {
      const __local uint* restrict from_a =
          (const __local uint*)space + (step - 1) % 2 * STAGE + (warp_row + lane_row) * A_M + lane_k * A_K;
      const __local uint* restrict from_b =
          (const __local uint*)space + (step - 1) % 2 * STAGE + B_AT + (warp_column + lane_row) * B_N + lane_k * B_K;
      #pragma unroll K_UNROLL
      for (int k = 0; k < BK; k += 8) {
        uint a[MI][4];
        uint b[NJ][2];
        #pragma unroll
        for (int i = 0; i < MI; ++i)
          #pragma unroll
          for (int q = 0; q < 4; ++q) a[i][q] = from_a[(16 * i + q % 2 * 8) * A_M + (k + q / 2 * 4) * A_K];
        #pragma unroll
        for (int j = 0; j < NJ; ++j)
          #pragma unroll
          for (int q = 0; q < 2; ++q) b[j][q] = from_b[8 * j * B_N + (k + q * 4) * B_K];
#if SPLIT
        uint small_a[MI][4];
        #pragma unroll
        for (int i = 0; i < MI; ++i)
          //@include gpu/tf32_parts X=a[i] S=small_a[i] C=4
        #pragma unroll
        for (int j0 = 0; j0 < NJ; j0 += 2) {
          uint small_b[2][2];
          #pragma unroll
          for (int j = 0; j < 2; ++j)
            //@include gpu/tf32_parts X="b[j0 + j]" S=small_b[j] C=2
          // The largest products come last: what the unit drops from a sum is a part of the sum so far.
          float d[MI][2][4];
          #pragma unroll
          for (int j = 0; j < 2; ++j)
            #pragma unroll
            for (int i = 0; i < MI; ++i) oclc_mma_first(d[i][j], small_a[i], b[j0 + j][0], b[j0 + j][1]);
          #pragma unroll
          for (int j = 0; j < 2; ++j)
            #pragma unroll
            for (int i = 0; i < MI; ++i) oclc_mma(d[i][j], a[i], small_b[j][0], small_b[j][1]);
          #pragma unroll
          for (int j = 0; j < 2; ++j)
            #pragma unroll
            for (int i = 0; i < MI; ++i) oclc_mma(d[i][j], a[i], b[j0 + j][0], b[j0 + j][1]);
          #pragma unroll
          for (int j = 0; j < 2; ++j)
            #pragma unroll
            for (int i = 0; i < MI; ++i)
              #pragma unroll
              for (int q = 0; q < 4; ++q) acc[i][j0 + j][q] += d[i][j][q];
        }
#else
        #pragma unroll
        for (int i = 0; i < MI; ++i)
          #pragma unroll
          for (int q = 0; q < 4; ++q) a[i][q] += 0x1000u;
        #pragma unroll
        for (int j = 0; j < NJ; ++j) b[j][0] += 0x1000u, b[j][1] += 0x1000u;
        #pragma unroll
        for (int j = 0; j < NJ; ++j)
          #pragma unroll
          for (int i = 0; i < MI; ++i) oclc_mma(acc[i][j], a[i], b[j][0], b[j][1]);
#endif
      }
#if CHAINED && SPLIT
      if (step % CHAIN == 0 || step == STEPS) {
        #pragma unroll
        for (int i = 0; i < MI; ++i)
          #pragma unroll
          for (int j = 0; j < NJ; ++j)
            #pragma unroll
            for (int q = 0; q < 4; ++q) out[i][j][q] += acc[i][j][q], acc[i][j][q] = 0.0f;
      }
#endif
    }
    if (step < STEPS) {
      __local float* restrict to_a = space + step % 2 * STAGE;
      __local float* restrict to_b = to_a + B_AT;
      #pragma unroll
      for (int i = 0; i < A_LOADS; ++i) {
        const int at = item + i * ITEMS;
        if (A_COUNT % ITEMS != 0 && at >= A_COUNT) break;
        *(__local A_VECTOR*)(to_a + at / (A_RUN / AV) * A_PITCH + at % (A_RUN / AV) * AV) = next_a[i];
      }
      #pragma unroll
      for (int i = 0; i < B_LOADS; ++i) {
        const int at = item + i * ITEMS;
        if (B_COUNT % ITEMS != 0 && at >= B_COUNT) break;
        *(__local B_VECTOR*)(to_b + at / (B_RUN / BV) * B_PITCH + at % (B_RUN / BV) * BV) = next_b[i];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i = 0; i < MI; ++i)
    #pragma unroll
    for (int j = 0; j < NJ; ++j)
      #pragma unroll
      for (int h = 0; h < 2; ++h)
        *(__local float2*)(space + (warp_row + 16 * i + 8 * h + lane_row) * C_PITCH + warp_column + 8 * j + 2 * lane_k) =
            (float2)(SUM[i][j][2 * h], SUM[i][j][2 * h + 1]);
  barrier(CLK_LOCAL_MEM_FENCE);
  //@include gpu/group_results
}
