// Contraction on a CPU of few rows with a right operand of run time whose terms are neighbours, as x W^T of a linear layer: each
// column of B is read once, where it lies, in vectors of its terms. Sums of each lane lie in local memory meanwhile.
//
// formula   C[g,m,n] = epilogue(sum over k < K of f(A)[g,m,k] * B[g,k,n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, k .. k + PV - 1]. Default: row-major a[(g * M + m) * K + k].
// B         hole B_POINTER: w points to B[g, 0, 0], B_STEP from column to column. Default: b[(g * N + n) * K + k].
// local A   block[r * KC + k - k0].
// sums      block[A_FLOATS + ((n - n_begin) * ROWS + r) * VW + lane].
// C         c[(g * M + m) * N + n].
// local memory 4 * BLOCK_FLOATS bytes.
// launch: G * STRIPS groups of one work-item.
//@kernel 1, BLOCK_FLOATS
//@param M 8 {1..} K 512 {VW.. step VW} TAPS 1 {1}  rows and terms: literals
//@include strips
//@param MR 4 {1..16} CT 2 {1..8}  rows and columns of the register tile
//@param STRIP 64 {VW.. step VW}  columns of a work-item, a multiple of CT as well
//@param KC 512 {VW.. step VW}  terms of A's copy
//@param CHAIN KC {VW.. step VW}  terms after which sums begin anew: chains of fma have CHAIN / VW
//@param B_STEP K {expr}  from a column of B to the next
#define SUM_FLOATS (ROWS * STRIP * VW)
#define BLOCK_FLOATS (A_FLOATS + SUM_FLOATS)

void contraction_dots_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                           int tile, __local float* restrict block) {
  //@lines SIZES
  //@include strip_of_tile
  //@hole B_POINTER
  const __global float* w = b + (size_t)g * N * K;
  //@end
  for (int i = 0; i < SUM_FLOATS; i += VW) STORE((VEC)0.0f, sums + i);
  for (int k0 = 0; k0 < K; k0 += KC) {
    const int terms = min(K - k0, KC);
    for (int r = 0; r < ROWS; ++r) {
      // Surplus rows of the last tile repeat row M - 1 and are not stored.
      const int m = min(r, M - 1);
      for (int k = k0; k < k0 + terms; k += PV) {
        PVEC v;
        //@hole A_ELEMENTS
        v = PLOAD(a + ((size_t)g * M + m) * K + k);
        //@end
        PSTORE(v, block + r * KC + k - k0);
      }
    }
    for (int n = n_begin; n < n_end; n += CT) {
      // Surplus columns repeat column N - 1 and are not stored.
      const __global float* column[CT];
      #pragma unroll
      for (int j = 0; j < CT; ++j) column[j] = w + (size_t)min(n + j, N - 1) * B_STEP + k0;
      #pragma unroll
      for (int r0 = 0; r0 < ROWS; r0 += MR) {
        const __local float* p = block + r0 * KC;
        for (int begin = 0; begin < terms; begin += CHAIN) {
          const int end = min(terms, begin + CHAIN);
          //@include zeros T=VEC X=acc R=MR C=CT
          for (int t = begin; t < end; t += VW) {
            VEC x[CT];
            #pragma unroll
            for (int j = 0; j < CT; ++j) {
              x[j] = LOAD(column[j] + t);
              if (r0 == 0) oclc_prefetch(column[j] + (size_t)CT * B_STEP + t);
            }
            //@include multiply_add A="LOAD(p + i * KC + t)" C=CT
          }
          #pragma unroll
          for (int j = 0; j < CT; ++j)
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              __local float* sum = sums + ((n - n_begin + j) * ROWS + r0 + i) * VW;
              STORE(LOAD(sum) + acc[i][j], sum);
            }
        }
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    //@include row_of_c
    for (int n = n_begin; n < n_end; n += VW) {
      float total[VW];
      #pragma unroll
      for (int l = 0; l < VW; ++l) {
        const VEC s = LOAD(sums + ((n - n_begin + l) * ROWS + m) * VW);
#if VW == 16
        const float8 e = s.lo + s.hi;
#else
        const VEC e = s;
#endif
#if VW == 4
        const float4 q = e;
#else
        const float4 q = e.lo + e.hi;
#endif
        total[l] = (q.x + q.z) + (q.y + q.w);
      }
      VEC v = LOAD(total);
      //@include epilogue
    }
  }
}
