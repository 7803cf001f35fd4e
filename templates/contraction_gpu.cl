// Contraction on a GPU: the work-items of a group share tiles of A and B in local memory and keep tiles of C in registers.
// GEMM, batched GEMM, convolution by implicit GEMM, and the gradients of these.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
// A         hole A_ELEMENTS gives AV elements v from (m, k) on, along k or along m. Default: row-major a[(g * M + m) * K + k].
// B         hole B_ELEMENTS gives BV elements v from (k, n) on, along n or along k. Default: row-major b[(g * K + k) * N + n].
// C         hole EPILOGUE stores four columns v from (m, n) on. Default: c[(g * M + m) * N + n].
// local A   space[k * A_PITCH + m - m0], local B: B_AT + k * B_PITCH + n - n0, twice: one pair is filled while the other is used.
// local memory 8 * (BK * A_PITCH + BK * B_PITCH) bytes.
// launch: G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items.
// paper     Volkov, Demmel: Benchmarking GPUs to tune dense linear algebra, 2008; Chetlur et al.: cuDNN, 2014 (implicit GEMM).
//@kernel ITEMS, 2 * STAGE, 16
//@include gemm_sizes
//@param BM 64 {4.. step 4} BN 64 {4.. step 4}  rows and columns of a group's tile
//@param BK 16 {4.. step 4}  summed elements of a step
//@param TM 4 {4, 8} TN 4 {4, 8}  rows and columns of a work-item; ITEMS = (BM / TM) * (BN / TN) work-items a group
//@param CHAINED 1 {0, 1} CHAIN 4 {0..}  1: a chain of fma ends after CHAIN steps, and chains are added up, which divides the rounding error of
//                    long sums
//@param SURPLUS 0 {0, 1}  1: groups have more than ITEMS work-items, which repeat the last one's work and store nothing
//@include gpu/group_tiles
//@include gpu/group_steps
//@include gpu/item_loads
#if CHAINED
#define SUM out
#else
#define SUM acc
#endif
#define ITEMS ((BM / TM) * (BN / TN))
#define ITEM_ROWS (BM / TM)
#define ITEM_COLUMNS (BN / TN)
#define A_PITCH (BM + 4)
#define B_PITCH (BN + B_ALONG_K * 4)
#define B_AT (BK * A_PITCH)
#define STAGE (BK * A_PITCH + BK * B_PITCH)

void contraction_gpu_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c, int tile,
                          __local float* restrict space) {
  //@lines SIZES
#if SURPLUS
  const int item = min((int)get_local_id(0), ITEMS - 1);
#else
  const int item = get_local_id(0);
#endif
  //@include gpu/tile_of_group
  const int n0 = within / swath_rows * BN;
  const int item_row = item / ITEM_COLUMNS * 4;
  const int item_column = item % ITEM_COLUMNS * 4;
  //@include zeros T=float X=acc R=TM C=TN
#if CHAINED
  //@include zeros T=float X=out R=TM C=TN
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
      const __local float* restrict from_a = space + (step - 1) % 2 * STAGE + item_row;
      const __local float* restrict from_b = space + (step - 1) % 2 * STAGE + B_AT + item_column;
      #pragma unroll
      for (int k = 0; k < BK; ++k) {
        float x[TM], y[TN];
        #pragma unroll
        for (int i = 0; i < TM / 4; ++i) {
          const float4 v = *(const __local float4*)(from_a + k * A_PITCH + i * (ITEM_ROWS * 4));
          x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
        }
        #pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
          const float4 v = *(const __local float4*)(from_b + k * B_PITCH + j * (ITEM_COLUMNS * 4));
          y[4 * j] = v.x, y[4 * j + 1] = v.y, y[4 * j + 2] = v.z, y[4 * j + 3] = v.w;
        }
        #pragma unroll
        for (int i = 0; i < TM; ++i)
          #pragma unroll
          for (int j = 0; j < TN; ++j) acc[i][j] = fma(x[i], y[j], acc[i][j]);
      }
#if CHAINED
      if (step % CHAIN == 0 || step == STEPS) {
        //@include add_chain X=out Y=acc R=TM C=TN
      }
#endif
    }
    if (step < STEPS) {
      __local float* restrict to_a = space + step % 2 * STAGE;
      __local float* restrict to_b = to_a + B_AT;
      //@include gpu/store_operand X=A x=a R=M
      //@include gpu/store_operand X=B x=b R=N
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + i / 4 * (ITEM_ROWS * 4) + item_row + i % 4;
    if (m < M && (!SURPLUS || get_local_id(0) == item)) {
      #pragma unroll
      for (int j = 0; j < TN; j += 4) {
        const int n = n0 + j * ITEM_COLUMNS + item_column;
        if (n < N) {
          const float4 v = (float4)(SUM[i][j], SUM[i][j + 1], SUM[i][j + 2], SUM[i][j + 3]);
          //@include store_four
        }
      }
    }
  }
}
