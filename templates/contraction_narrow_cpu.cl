// Contraction of few rows on a CPU, rows of A read in place, B packed at compile time in 8 or 4 bits a number: what memory bounds
// takes a quarter or an eighth of the time.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g, row m, tap, k] * B[g, tap, k, n])
// A         as in contraction_cpu.cl, floats: ROW_STATE, A_POINTER, A_STEP.
// B         an element is (q + offset) * scale, q an integer of BITS bits, scale and offset those of its column in a block of BLOCK
//           terms. [g][panel][tap][block] of PW floats, the scales; of PW floats, the offsets, if OFFSETS; then of PW bytes for each
//           8 / BITS terms, the lower bits the first of them. A term past K is 0. In bytes: B_PANEL, B_GROUP.
// C         as in contraction_cpu.cl.
// local memory 0. launch: G * PANEL_BLOCKS groups of one work-item.
//@param M 1 {1..16}  rows, all in one register tile: a literal
//@include gemm_sizes
//@include vectors
//@param BITS 8 {4, 8}
//@param OFFSETS 0 {0, 1}
//@param NV 4 {1..8}  vectors of a panel
//@param SIDE 1 {1..}  panels that are streamed at once: M * SIDE * NV + NV + 4 <= vector registers. Two streams reach more of the
//                    memory's rate than one
//@param NP SIDE {SIDE.. step SIDE}  panels of a work-item
//@param PREFETCH_DISTANCE 2560 {0..}  bytes by which B is prefetched before its use
//@param BLOCK 256 {2.. step 2}  terms of a scale, the longest chain of fma
//@param A_STEP 1 {expr}  from a term of A to the next
#define MR M
#define OF_BYTE (8 / BITS)
#define PW (NV * VW)
#define HEAD_BYTES (4 * PW * (1 + OFFSETS))
#define B_PANEL (TAPS * (HEAD_BYTES * ((K + BLOCK - 1) / BLOCK) + PW * ((K + OF_BYTE - 1) / OF_BYTE)))
#define B_GROUP ((size_t)PANELS * B_PANEL)
#define LINES ((PW + 63) / 64)
#define PANELS ((N + PW - 1) / PW)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define INTS JOIN(int, VW)
#define TO_FLOATS JOIN(convert_float, VW)
#define TO_INTS JOIN(convert_int, VW)
#define INTEGER(q, t) (BITS == 8 ? (q) : (t) == 0 ? (q) << 28 >> 28 : (q) >> 4)

void contraction_tile(const __global float* restrict a, const __global char* restrict b,
                      const __global float* restrict zero, __global float* restrict c, int tile) {
  //@hole SIZES
  //@end
  const int g = tile / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m0 = 0;
  for (int first = panel_block * NP; first < panel_end; first += SIDE) {
    //@hole ROW_STATE
    const __global float* row[MR];
    #pragma unroll
    for (int i = 0; i < MR; ++i) row[i] = a + (g * M + min(m0 + i, M - 1)) * K;
    //@end
    VEC acc[MR][SIDE * NV];
    VEC out[MR][SIDE * NV];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
      #pragma unroll
      for (int j = 0; j < SIDE * NV; ++j) acc[i][j] = out[i][j] = 0.0f;
    const __global char* at[SIDE];
    #pragma unroll
    for (int s = 0; s < SIDE; ++s) {
      const int panel = min(first + s, PANELS - 1);
      //@hole B_POINTER
      const __global char* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
      //@end
      at[s] = w;
    }
    for (int tap = 0; tap < TAPS; ++tap) {
      const __global float* p[MR];
      //@hole A_POINTER
      #pragma unroll
      for (int i = 0; i < MR; ++i) p[i] = row[i];
      //@end
      for (int k0 = 0; k0 < K; k0 += BLOCK) {
        const int k_end = min(K, k0 + BLOCK);
        const __global float* scale[SIDE];
        #pragma unroll
        for (int s = 0; s < SIDE; ++s) scale[s] = (const __global float*)at[s], at[s] += HEAD_BYTES;
        int k = k0;
        #pragma unroll 4
        for (; k + OF_BYTE <= k_end; k += OF_BYTE) {
          #pragma unroll
          for (int s = 0; s < SIDE; ++s) {
            #pragma unroll
            for (int l = 0; l < LINES; ++l) oclc_prefetch(at[s] + PREFETCH_DISTANCE + l * 64);
            #pragma unroll
            for (int j = 0; j < NV; ++j) {
              const INTS q = TO_INTS(LOAD(at[s] + j * VW));
              #pragma unroll
              for (int t = 0; t < OF_BYTE; ++t) {
                VEC x = TO_FLOATS(INTEGER(q, t));
                if (OFFSETS) x += LOAD(scale[s] + PW + j * VW);
                #pragma unroll
                for (int i = 0; i < MR; ++i)
                  acc[i][s * NV + j] = fma((VEC)(p[i][(k + t) * A_STEP]), x, acc[i][s * NV + j]);
              }
            }
            at[s] += PW;
          }
        }
        if (K % OF_BYTE != 0 && k < k_end) {
          #pragma unroll
          for (int s = 0; s < SIDE; ++s) {
            #pragma unroll
            for (int j = 0; j < NV; ++j) {
              VEC x = TO_FLOATS(INTEGER(TO_INTS(LOAD(at[s] + j * VW)), 0));
              if (OFFSETS) x += LOAD(scale[s] + PW + j * VW);
              #pragma unroll
              for (int i = 0; i < MR; ++i) acc[i][s * NV + j] = fma((VEC)(p[i][k * A_STEP]), x, acc[i][s * NV + j]);
            }
            at[s] += PW;
          }
        }
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < SIDE * NV; ++j)
            out[i][j] = fma(acc[i][j], LOAD(scale[j / NV] + j % NV * VW), out[i][j]), acc[i][j] = 0.0f;
      }
    }
    #pragma unroll
    for (int i = 0; i < MR; ++i) {
      const int m = m0 + i;
      //@hole C_ROW
      __global float* c_row = c + (size_t)(g * M + m) * N;
      //@end
      #pragma unroll
      for (int j = 0; j < SIDE * NV; ++j) {
        const int n = first * PW + j * VW;
        if (N % (SIDE * PW) != 0 && n >= N) break;
        VEC v = out[i][j];
        //@hole EPILOGUE
        //@end
        //@hole STORE
        store_columns(v, c_row, n);
        //@end
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction(const __global float* restrict a, const __global char* restrict b,
                          const __global float* restrict zero, __global float* restrict c) {
  contraction_tile(a, b, zero, c, (int)get_group_id(0));
}
