// Contraction on a CPU with both operands of run time: a panel of B is packed into local memory and serves MT row tiles.
// For B transposed (the scores Q K^T of attention) or with N not a multiple of a panel.
//
// formula   C[g,m,n] = epilogue(sum over k < K of A[g,m,k] * B[g,k,n])
// A         hole ROW_STATE: row[i] points to A[g, m0 + i, 0], step A_STEP in k (1). Default: a[(g * M + m) * K + k].
// B         hole PACK_B fills panel. Default, B transposed: b[(g * N + n) * K + k], by squares of VW x VW. B[g][k][n]:
//           for k < K, j < NV: STORE(load_columns(b + (g * K + k) * N, n), panel + k * PW + j * VW), n = n0 + j * VW < N.
// local B   panel[k * PW + n - n0], PW = NV * VW.
// C         c[(g * M + m) * N + n].
// MT        packing costs about 1 / (MT * MR) of the multiplications, so all row tiles unless cores would idle
// local memory 4 * K * PW bytes: at most half the second-level cache.
// launch: G * PANELS * ROW_BLOCKS groups of one work-item.
//@kernel 1, K * PW
//@param K 64 {1..} TAPS 1 {1}  K is a literal
//@param HALF_LAST 0 {0} PREFETCH_DISTANCE 0 {0} NEXT 0 {0} B_STEP PW {expr}  a copied panel is near, its rows one after another
//@include fma
#define TERMS K
#define A_AT(i, k) A_FROM(row[i][k * A_STEP])
#define W_STEP PW
#define ENDS_CHAIN K_CHAIN < K
#define HAS_CHAINS K_CHAIN < K
#define N0 n0

// The vector at column n of a row of N values; lanes from column N on are 0 and are not read.
VEC load_columns(const __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) return LOAD(row + n);
  float lanes[VW];
  for (int l = 0; l < VW; ++l) lanes[l] = n + l < N ? row[n + l] : 0.0f;
  return LOAD(lanes);
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
  //@lines SIZES
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
    //@include row_state
    //@include zero_tiles
    const __local float* w = panel;
    //@include fma_terms
    //@include add_last_chain
    //@include store_tile
  }
}
