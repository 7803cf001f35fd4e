// Contraction on a CPU of few rows with a right operand of run time whose columns are neighbours: each row of B is read once,
// where it lies, in long pieces. Sums of a strip of columns lie in local memory meanwhile.
//
// formula   C[g,m,n] = epilogue(sum over k < K of f(A)[g,m,k] * B[g,k,n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, k .. k + PV - 1]. Default: row-major a[(g * M + m) * K + k].
// B         hole B_POINTER: w points to B[g, 0, 0], B_STEP (N) from term to term. Default: b[(g * K + k) * N + n].
// local A   tile by tile, block[r / MR * MR * KC + (k - k0) * MR + r % MR].
// sums      block[A_FLOATS + ((n - n_begin) / TW * ROWS + r) * TW + n % TW]: of a chain; SUM_FLOATS behind, of the chains before.
// C         c[C_OFFSET + g * C_GROUP + m * C_STEP + n].
// parameter legal values (default)
//   G, M, N, K, VW, MR, NV, C_STEP, C_GROUP, C_OFFSET   as in contraction_cpu.cl; G and K may be variables
//   STRIP   columns of a work-item: a multiple of TW = NV * VW, where N is none of it NV is 1
//   KC      terms of A's copy, the longest chain of fma: sums of longer ones are added up
//   KT      rows of B that are read side by side: the next ones are asked for meanwhile
//   PV      1 or VW: width of A's copying loop (1)
// local memory 4 * BLOCK_FLOATS bytes.
// launch: G * STRIPS groups of one work-item.
#ifndef G
#define G 1
#endif
#ifndef M
#define M 8
#endif
#ifndef N
#define N 1024
#endif
#ifndef K
#define K 512
#endif
#ifndef VW
#define VW 8
#endif
#ifndef MR
#define MR 4
#endif
#ifndef NV
#define NV 2
#endif
#ifndef STRIP
#define STRIP 256
#endif
#ifndef KC
#define KC 64
#endif
#ifndef KT
#define KT 8
#endif
#ifndef PV
#define PV 1
#endif
#ifndef B_STEP
#define B_STEP N
#endif
#ifndef C_STEP
#define C_STEP N
#endif
#ifndef C_GROUP
#define C_GROUP ((size_t)M * C_STEP)
#endif
#ifndef C_OFFSET
#define C_OFFSET 0
#endif
#define TW (NV * VW)
#define ROWS ((M + MR - 1) / MR * MR)
#define STRIPS ((N + STRIP - 1) / STRIP)
#define A_FLOATS (ROWS * KC)
#define SUM_FLOATS (ROWS * STRIP)
#define BLOCK_FLOATS (A_FLOATS + 2 * SUM_FLOATS)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#if PV == 1
#define PVEC float
#define PLOAD(p) (*(p))
#else
#define PVEC JOIN(float, PV)
#define PLOAD(p) JOIN(vload, PV)(0, p)
#endif
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)

void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}

void contraction_rows_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                           int tile, __local float* restrict block) {
  //@hole SIZES
  //@end
  const int g = tile / STRIPS;
  //@hole GROUP
  //@end
  const int n_begin = tile % STRIPS * STRIP;
  const int n_end = min(N, n_begin + STRIP);
  __local float* restrict sums = block + A_FLOATS;
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
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = p[i];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
            }
            p += MR;
            row += B_STEP;
          }
          if (t_end < k_end) {
            #pragma unroll
            for (int i = 0; i < MR; ++i)
              #pragma unroll
              for (int j = 0; j < NV; ++j) STORE(acc[i][j], sums + at + i * TW + j * VW);
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
    //@hole C_ROW
    __global float* c_row = c + C_OFFSET + (size_t)g * C_GROUP + (size_t)m * C_STEP;
    //@end
    for (int n = n_begin; n < n_end; n += VW) {
      VEC v = LOAD(before + ((n - n_begin) / TW * ROWS + m) * TW + (n - n_begin) % TW);
      //@hole EPILOGUE
      //@end
      //@hole STORE
      store_columns(v, c_row, n);
      //@end
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_rows(const __global float* restrict a, const __global float* restrict b, __global float* restrict c) {
  __local float block[BLOCK_FLOATS];
  contraction_rows_tile(a, b, c, (int)get_group_id(0), block);
}
