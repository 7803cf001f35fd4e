// Contraction on a GPU's matrix units whose operands are 16-bit floats and whose sums are single precision: GEMM, batched GEMM,
// convolution by implicit GEMM, and the gradients of these. Its groups are those of contraction_gpu.cl with the same BM, BN and ITEMS,
// which stands in where the unit is missing. What a lane holds of an operand is the unit's matter: matrix_xmx.cl, matrix_wmma.cl.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g,m,tap,k] * B[g,tap,k,n])
//           x is the sum of PARTS numbers of bfloat16, each what the ones before leave, and a * b the products of parts p and q with
//           p + q < PARTS, small ones first: 3 are as accurate as a chain of fma, 2 have 16 bits. HALF 1: operands are halves in memory, and
//           the only part is itself. Chains of sums are added up, which divides the rounding error of long ones. An infinite operand
//           gives NaN.
// A, B, C   as in contraction_gpu.cl, with the same holes.
// local A   part p of A(m, k): ((ushort*)space)[p * A_PLANE + (m - m0) * PITCH + k], behind all of A part p of B(n, k) alike. At the end
//           tile C: space[(m - m0) * C_PITCH + n - n0]. Behind SPACE: what an emulated unit exchanges.
// local memory 4 * (SPACE + oclc_exchange_floats(ITEMS / LANES)) bytes.
// launch: G * ROW_TILES * COLUMN_TILES groups of ITEMS work-items.
// paper     Henry, Tang, Heinecke: Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations, 2019.
//@kernel ITEMS, SPACE + oclc_exchange_floats(ITEMS / LANES), 16
//@include gemm_sizes
//@param UNIT xmx {name} LANES 16 {8.. step 8}  a matrix unit's name, and the work-items of a sub-group that multiplies
//@param UM 8 {8.. step 8} UN 16 {8.. step 8}  rows and columns of its product, of 16 terms
//@param BM 64 {WM.. step WM} BN 64 {WN.. step WN}  rows and columns of a group's tile
//@param BK 16 {16.. step 16}  summed elements of a step
//@param WM 16 {UM.. step UM} WN 16 {UN.. step UN}  rows and columns of a sub-group
//@param PARTS 3 {1..3}  numbers of bfloat16 that an operand is the sum of
//@param HALF 0 {0, 1}  1: operands are halves in memory
//@param CHAIN 8 {0..}  steps of a chain of sums; 0: one chain, which takes fewer registers
//@param EPILOGUE_UNROLL 4 {1, 4}  copies of the epilogue: 4, or 1 for an expensive one
//@include gpu/group_tiles
//@include gpu/group_steps
//@include gpu/item_loads
#define ITEMS ((BM / WM) * (BN / WN) * LANES)
#define PITCH (BK + 8)
#define A_PLANE (BM * PITCH)
#define B_PLANE (BN * PITCH)
#define B_AT (PARTS * A_PLANE)
#define STAGE (PARTS * (A_PLANE + B_PLANE) / 2)
#define C_PITCH (BN + 8)
#define SPACE (STAGE > BM * C_PITCH ? STAGE : BM * C_PITCH)
#define MI (WM / UM)
#define NJ (WN / UN)
#define OF_UNIT(name) JOIN(JOIN(JOIN(oclc_, UNIT), _), name)
#if HALF
#define MULTIPLY OF_UNIT(f16)
#define TO_PART(v) oclc_to_f16(v)
#define FROM_PART(v) oclc_from_f16(v)
#else
#define MULTIPLY OF_UNIT(bf16)
#define TO_PART(v) oclc_to_bf16(v)
#define FROM_PART(v) oclc_from_bf16(v)
#endif
#if CHAIN > 0
#define SUM out
#else
#define SUM acc
#endif

void contraction_unit_gpu_tile(const __global float* restrict a, const __global float* restrict b,
                              __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  //@include gpu/tile_of_group
  const int n0 = within / swath_rows * BN;
  const int lane = item % LANES;
  const int unit_row = item / LANES / (BN / WN) * WM;
  const int unit_column = item / LANES % (BN / WN) * WN;
  __local float* exchange = space + SPACE + item / LANES * oclc_exchange_floats(1);
  //@include zeros T=float8 X=acc R=MI C=NJ
#if CHAIN > 0
  //@include zeros T=float8 X=out R=MI C=NJ
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
      const __local ushort* restrict from_a = (const __local ushort*)space + unit_row * PITCH;
      const __local ushort* restrict from_b = (const __local ushort*)space + B_AT + unit_column * PITCH;
      #pragma unroll
      for (int k = 0; k < BK; k += 16) {
        OF_UNIT(b) b[NJ][PARTS];
        #pragma unroll
        for (int j = 0; j < NJ; ++j)
          #pragma unroll
          for (int p = 0; p < PARTS; ++p) b[j][p] = OF_UNIT(load_b)(from_b + p * B_PLANE + j * UN * PITCH + k, PITCH, lane);
        #pragma unroll
        for (int i = 0; i < MI; ++i) {
          OF_UNIT(a) a[PARTS];
          #pragma unroll
          for (int p = 0; p < PARTS; ++p) a[p] = OF_UNIT(load_a)(from_a + p * A_PLANE + i * UM * PITCH + k, PITCH, lane);
          // The largest products come last.
          #pragma unroll
          for (int both = PARTS - 1; both >= 0; --both)
            #pragma unroll
            for (int p = both; p >= 0; --p)
              #pragma unroll
              for (int j = 0; j < NJ; ++j) acc[i][j] = MULTIPLY(a[p], b[j][both - p], acc[i][j], lane, exchange);
        }
      }
#if CHAIN > 0
      if (step % CHAIN == 0 || step == STEPS) {
        //@include add_chain X=out Y=acc R=MI C=NJ
      }
#endif
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (step < STEPS) {
      __local ushort* restrict to_a = (__local ushort*)space;
      __local ushort* restrict to_b = to_a + B_AT;
      //@include gpu/store_parts X=A x=a R=M
      //@include gpu/store_parts X=B x=b R=N
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int i = 0; i < MI; ++i)
    #pragma unroll
    for (int j = 0; j < NJ; ++j)
      OF_UNIT(store)(SUM[i][j], space + (unit_row + i * UM) * C_PITCH + unit_column + j * UN, C_PITCH, lane);
  barrier(CLK_LOCAL_MEM_FENCE);
  //@include gpu/group_results
}
