// Contraction on a CPU with both operands of run time: a panel of B is packed into local memory and serves MT row tiles.
// For B transposed (the scores Q K^T of attention) or with N not a multiple of a panel.
//
// formula   C[g,m,n] = epilogue(sum over k < K of A[g,m,k] * B[g,k,n])
// A         hole ROW_STATE: row[i] points to A[g, m0 + i, 0], step A_STEP in k (1). Default: a[(g * M + m) * K + k].
// B         hole PACK_B fills panel. Default, B transposed: b[(g * N + n) * K + k], by squares of VW x VW. B[g][k][n]:
//           for k < K, j < NV: STORE(load_columns(b + (g * K + k) * N, n), panel + k * PW + j * VW), n = n0 + j * VW < N.
// local B   panel[k * PW + n - n0], PW = NV * VW.
// C         c[C_OFFSET + g * C_GROUP + m * C_STEP + n].
// parameter legal values (default)
//   G, M, N, VW, MR, NV, K_CHAIN, A_FROM, EPILOGUE_UNROLL, C_STEP, C_GROUP, C_OFFSET   as in contraction_cpu.cl
//   K       a literal (64)
//   MT      row tiles of a work-item; packing costs about 1 / (MT * MR) of the multiplications, so all unless cores would idle
// local memory 4 * K * PW bytes: at most half the second-level cache.
// launch: G * PANELS * ROW_BLOCKS groups of one work-item.
#ifndef G
#define G 12
#endif
#ifndef M
#define M 128
#endif
#ifndef N
#define N 128
#endif
#ifndef K
#define K 64
#endif
#ifndef VW
#define VW 16
#endif
#ifndef MR
#define MR 12
#endif
#ifndef NV
#define NV 2
#endif
#ifndef MT
#define MT 11
#endif
#ifndef K_CHAIN
#define K_CHAIN K
#endif
#ifndef A_STEP
#define A_STEP 1
#endif
#ifndef EPILOGUE_UNROLL
#define EPILOGUE_UNROLL MR
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
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
#define ROW_TILES ((M + MR - 1) / MR)
#define ROW_BLOCKS ((ROW_TILES + MT - 1) / MT)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#ifndef A_FROM
#define A_FROM(v) v
#endif
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)

// The vector at column n of a row of N values; lanes from column N on are 0 and are not read.
VEC load_columns(const __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) return LOAD(row + n);
  float lanes[VW];
  for (int l = 0; l < VW; ++l) lanes[l] = n + l < N ? row[n + l] : 0.0f;
  return LOAD(lanes);
}

void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}

#define STAGES (VW == 16 ? 4 : VW == 8 ? 3 : 2)

// Transposes a square of VW x VW by log2(VW) perfect shuffles of its rows.
void transpose_square(VEC r[VW]) {
  #pragma unroll
  for (int stage = 0; stage < STAGES; ++stage) {
    VEC t[VW];
    #pragma unroll
    for (int i = 0; i < VW / 2; ++i) {
      t[2 * i].even = r[i].lo, t[2 * i].odd = r[i + VW / 2].lo;
      t[2 * i + 1].even = r[i].hi, t[2 * i + 1].odd = r[i + VW / 2].hi;
    }
    #pragma unroll
    for (int i = 0; i < VW; ++i) r[i] = t[i];
  }
}

void contraction_packed_b_tile(const __global float* restrict a, const __global float* restrict b, __global float* restrict c,
                               int tile, __local float* restrict panel) {
  //@hole SIZES
  //@end
  const int g = tile / (PANELS * ROW_BLOCKS);
  const int n0 = tile / ROW_BLOCKS % PANELS * PW;
  const int m_begin = tile % ROW_BLOCKS * (MT * MR);
  const int m_end = min(M, m_begin + MT * MR);
  //@hole PACK_B
  for (int j = 0; j < NV; ++j) {
    // Surplus columns repeat column N - 1 and are not stored; the last square overlaps its neighbour.
    const __global float* column[VW];
    #pragma unroll
    for (int l = 0; l < VW; ++l) column[l] = b + (size_t)(g * N + min(n0 + j * VW + l, N - 1)) * K;
    if (K < VW) {
      for (int k = 0; k < K; ++k)
        for (int l = 0; l < VW; ++l) panel[k * PW + j * VW + l] = column[l][k];
      continue;
    }
    for (int k0 = 0; k0 < K; k0 += VW) {
      const int k = min(k0, K - VW);
      VEC r[VW];
      #pragma unroll
      for (int l = 0; l < VW; ++l) r[l] = LOAD(column[l] + k);
      transpose_square(r);
      #pragma unroll
      for (int l = 0; l < VW; ++l) STORE(r[l], panel + (k + l) * PW + j * VW);
    }
  }
  //@end
  for (int m0 = m_begin; m0 < m_end; m0 += MR) {
    // Surplus rows of the last tile repeat row M - 1 and are not stored.
    //@hole ROW_STATE
    const __global float* row[MR];
    #pragma unroll
    for (int i = 0; i < MR; ++i) row[i] = a + (g * M + min(m0 + i, M - 1)) * K;
    //@end
    VEC acc[MR][NV];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
      #pragma unroll
      for (int j = 0; j < NV; ++j) acc[i][j] = 0.0f;
    VEC out[MR][NV];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
      #pragma unroll
      for (int j = 0; j < NV; ++j) out[i][j] = 0.0f;
    const __local float* w = panel;
    for (int k0 = 0; k0 < K; k0 += K_CHAIN) {
      const int k_end = min(K, k0 + K_CHAIN);
      for (int k = k0; k < k_end; ++k) {
        VEC x[NV];
        #pragma unroll
        for (int j = 0; j < NV; ++j) x[j] = LOAD(w + j * VW);
        #pragma unroll
        for (int i = 0; i < MR; ++i) {
          const VEC s = A_FROM(row[i][k * A_STEP]);
          #pragma unroll
          for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
        }
        w += PW;
      }
      if (K_CHAIN < K) {
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < NV; ++j) out[i][j] += acc[i][j], acc[i][j] = 0.0f;
      }
    }
    // acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
    #pragma unroll
    for (int i = 0; i < MR; ++i)
      #pragma unroll
      for (int j = 0; j < NV; ++j) out[i][j] = K_CHAIN < K ? out[i][j] + acc[i][j] : acc[i][j];
    #pragma unroll EPILOGUE_UNROLL
    for (int i = 0; i < MR; ++i) {
      const int m = m0 + i;
      if (m >= M) break;
      //@hole C_ROW
      __global float* c_row = c + C_OFFSET + (size_t)g * C_GROUP + (size_t)m * C_STEP;
      //@end
      #pragma unroll
      for (int j = 0; j < NV; ++j) {
        const int n = n0 + j * VW;
        if (N % PW != 0 && n >= N) break;
        VEC v = out[i][j];
        //@hole EPILOGUE
        v *= 0.125f;
        //@end
        //@hole STORE
        store_columns(v, c_row, n);
        //@end
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_packed_b(const __global float* restrict a, const __global float* restrict b,
                                   __global float* restrict c) {
  __local float panel[K * PW];
  contraction_packed_b_tile(a, b, c, (int)get_group_id(0), panel);
}
