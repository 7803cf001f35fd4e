// Contraction on a CPU of few rows with a right operand of run time whose columns are neighbours: each row of B is read once,
// where it lies, in long pieces. Sums of a strip of columns lie in local memory meanwhile.
//
// formula   C[g,m,n] = epilogue(sum over k < K of f(A)[g,m,k] * B[g,k,n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, k .. k + PV - 1]. Default: row-major a[(g * M + m) * K + k].
// B         hole B_POINTER: w points to B[g, 0, 0], B_STEP from term to term. Default: b[(g * K + k) * N + n].
// local A   tile by tile, block[r / MR * MR * KC + (k - k0) * MR + r % MR].
// sums      block[A_FLOATS + ((n - n_begin) / TW * ROWS + r) * TW + n % TW]: of a chain; SUM_FLOATS behind, of the chains before.
// C         c[(g * M + m) * N + n].
// local memory 4 * BLOCK_FLOATS bytes.
// launch: G * STRIPS groups of one work-item.
//@kernel 1, BLOCK_FLOATS
//@param M 8 {1..} TAPS 1 {1}  rows: a literal
//@include strips
//@param MR 4 {1..16} NV 2 {1..8}  rows and vectors of the register tile
//@param STRIP 256 {1..}  columns of a work-item: a multiple of TW; where N is none of it NV is 1
//@param KC 64 {1..}  terms of A's copy, the longest chain of fma: sums of longer ones are added up
//@param KT 8 {1..}  rows of B that are loaded together, while the next ones are prefetched
//@param B_STEP N {expr}  from a row of B to the next
#define TW (NV * VW)
#define SUM_FLOATS (ROWS * STRIP)
#define BLOCK_FLOATS (A_FLOATS + 2 * SUM_FLOATS)

void contraction_rows_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                           int tile, __local float* restrict block) {
  //@lines SIZES
  //@include strip_of_tile
  __local float* restrict before = sums + SUM_FLOATS;
  //@hole B_POINTER
  const __global float* w = b + (size_t)g * K * N;
  //@end
  for (int i = 0; i < SUM_FLOATS; i += VW) STORE((VEC)0.0f, before + i);
  for (int k0 = 0; k0 < K; k0 += KC) {
    const int k_end = min(K, k0 + KC);
    for (int r = 0; r < ROWS; ++r) {
      // Surplus rows of the last tile repeat row M - 1 and are not stored.
      const int m = min(r, M - 1);
      for (int k = k0; k < k_end; k += PV) {
        PVEC v;
        //@hole A_ELEMENTS
        v = PLOAD(a + ((size_t)g * M + m) * K + k);
        //@end
        __local float* restrict to = block + r / MR * (MR * KC) + (k - k0) * MR + r % MR;
        #pragma unroll
        for (int l = 0; l < PV; ++l) to[l * MR] = ((float*)&v)[l];
      }
    }
    for (int t0 = k0; t0 < k_end; t0 += KT) {
      const int t_end = min(k_end, t0 + KT);
      for (int n = n_begin; n < n_end; n += TW) {
        #pragma unroll
        for (int j = 0; j < TW; j += 16)
          #pragma unroll
          for (int t = 0; t < KT; ++t) oclc_prefetch(w + (size_t)(t0 + KT + t) * B_STEP + n + j);
        #pragma unroll
        for (int r0 = 0; r0 < ROWS; r0 += MR) {
          const int at = ((n - n_begin) / TW * ROWS + r0) * TW;
          const __local float* p = block + r0 * KC + (t0 - k0) * MR;
          const __global float* row = w + (size_t)t0 * B_STEP + n;
          VEC acc[MR][NV];
          #pragma unroll
          for (int i = 0; i < MR; ++i)
            #pragma unroll
            for (int j = 0; j < NV; ++j) acc[i][j] = t0 == k0 ? (VEC)0.0f : LOAD(sums + at + i * TW + j * VW);
          for (int t = t0; t < t_end; ++t) {
            VEC x[NV];
            if (N % VW == 0 || n + VW <= N) {
              #pragma unroll
              for (int j = 0; j < NV; ++j) x[j] = LOAD(row + j * VW);
            } else {
              float lanes[VW];
              for (int l = 0; l < VW; ++l) lanes[l] = row[min(l, N - 1 - n)];
              x[0] = LOAD(lanes);
            }
            //@include multiply_add A=p[i] C=NV
            p += MR;
            row += B_STEP;
          }
          if (t_end < k_end) {
            //@include store_sums V=acc[i][j] Q="sums + at" P=TW
          } else {
            #pragma unroll
            for (int i = 0; i < MR; ++i)
              #pragma unroll
              for (int j = 0; j < NV; ++j) {
                __local float* sum = before + at + i * TW + j * VW;
                STORE(LOAD(sum) + acc[i][j], sum);
              }
          }
        }
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    //@include row_of_c
    for (int n = n_begin; n < n_end; n += VW) {
      VEC v = LOAD(before + ((n - n_begin) / TW * ROWS + m) * TW + (n - n_begin) % TW);
      //@include epilogue
    }
  }
}
