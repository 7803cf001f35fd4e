// Contraction of few rows on a CPU, rows of A read in place, B packed at compile time in so many bits a number: what memory bounds takes
// an eighth of the time with 4 bits, a quarter with 8, five eighths with 20, three quarters with 24.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of A[g, row m, tap, k] * B[g, tap, k, n])
// A         as in contraction_cpu.cl, floats: ROW_STATE, A_POINTER, A_STEP.
// B         with 4 and 8 BITS an element is (q + offset) * scale, q an integer of BITS bits, scale and offset those of its column in a block
//           of BLOCK terms. [g][panel][tap][block] of PW floats, the scales; of PW floats, the offsets, if OFFSETS; then of PW bytes for
//           each 8 / BITS terms, the lower bits the first of them. A term past K is 0. In bytes: B_PANEL, B_GROUP.
//           With 20 and 24 it is an integer of BITS bits, its largest size 2^(BITS - 1) - 1, times such a scale. [g][panel][tap][block] of
//           PW scales, then for each STEP = 32 / LOWER terms, LOWER = BITS - 16, STEP rows of PW shorts, the upper 16 bits, and PW words
//           of the lower ones, bits LOWER * i .. LOWER * i + LOWER - 1 of a word for term i. Terms past K are 0. In floats: B_PANEL,
//           B_GROUP.
// C         as in contraction_cpu.cl.
// local memory 0. launch: G * PANEL_BLOCKS groups of one work-item.
//@kernel 1
//@param M 1 {1..16}  rows, all in one register tile: a literal
//@include gemm_sizes
//@include vectors
//@param BITS 20 {4, 8, 20, 24}  with 24 all elements are exact as floats
//@param OFFSETS 0 {0, 1}  1: elements of 4 or 8 bits have offsets
//@param NV 4 {1..8}  vectors of a panel
//@param SIDE 1 {1..}  panels that are streamed at once: M * SIDE * NV + NV + 4 <= vector registers. Two streams reach more of the
//                    memory's rate than one
//@param NP SIDE {SIDE.. step SIDE}  panels of a work-item
//@param PREFETCH_DISTANCE 640 {0..}  of B, in its bytes or floats, before its use: as few bytes a cycle as this reads are not noticed by
//                    processors that guess what is read next
//@param BLOCK 256 {STEP.. step STEP}  terms of a scale, the longest chain of fma
//@param A_STEP 1 {expr}  from a term of A to the next
#define MR M
#define PW (NV * VW)
#if BITS <= 8
#define WEIGHT char
#define STEP (8 / BITS)
#define HEAD (4 * PW * (1 + OFFSETS))
#define SCALES (const __global float*)at[s]
#define B_PANEL (TAPS * (HEAD * ((K + BLOCK - 1) / BLOCK) + PW * ((K + STEP - 1) / STEP)))
#define LINES ((PW + 63) / 64)
#define INTEGER(q, t) (BITS == 8 ? (q) : (t) == 0 ? (q) << 28 >> 28 : (q) >> 4)
#else
#define WEIGHT float
#define LOWER (BITS - 16)
#define STEP (32 / LOWER)
#define MASK ((1u << LOWER) - 1)
#define STEP_WORDS (STEP / 2 + 1)
#define STEP_FLOATS (STEP_WORDS * PW)
#define HEAD PW
#define SCALES at[s]
#define B_PANEL (TAPS * PW * ((K + BLOCK - 1) / BLOCK + STEP_WORDS * ((K + STEP - 1) / STEP)))
#define LINES ((STEP_FLOATS + 15) / 16)
#define UINTS JOIN(uint, VW)
#define AS_INTS JOIN(as_int, VW)
#endif
#define B_GROUP ((size_t)PANELS * B_PANEL)
#define PANELS ((N + PW - 1) / PW)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define INTS JOIN(int, VW)
#define TO_FLOATS JOIN(convert_float, VW)
#define TO_INTS JOIN(convert_int, VW)

void contraction_tile(const __global float* restrict a, const __global WEIGHT* restrict b,
                      const __global float* restrict zero, __global float* restrict c, int tile) {
  //@lines SIZES
  const int g = tile / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m0 = 0;
  for (int first = panel_block * NP; first < panel_end; first += SIDE) {
    //@include row_state
    VEC acc[MR][SIDE * NV];
    VEC out[MR][SIDE * NV];
    #pragma unroll
    for (int i = 0; i < MR; ++i)
      #pragma unroll
      for (int j = 0; j < SIDE * NV; ++j) acc[i][j] = out[i][j] = 0.0f;
    const __global WEIGHT* at[SIDE];
    #pragma unroll
    for (int s = 0; s < SIDE; ++s) {
      const int panel = min(first + s, PANELS - 1);
      //@hole B_POINTER
      const __global WEIGHT* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
      //@end
      at[s] = w;
    }
    for (int tap = 0; tap < TAPS; ++tap) {
      const __global float* p[MR];
      //@include a_pointer
      for (int k0 = 0; k0 < K; k0 += BLOCK) {
        const int k_end = min(K, k0 + BLOCK);
        const __global float* scale[SIDE];
        #pragma unroll
        for (int s = 0; s < SIDE; ++s) scale[s] = SCALES, at[s] += HEAD;
        int k = k0;
#if BITS <= 8
        #pragma unroll 4
        for (; k + STEP <= k_end; k += STEP) {
          #pragma unroll
          for (int s = 0; s < SIDE; ++s) {
            #pragma unroll
            for (int l = 0; l < LINES; ++l) oclc_prefetch(at[s] + PREFETCH_DISTANCE + l * 64);
            #pragma unroll
            for (int j = 0; j < NV; ++j) {
              const INTS q = TO_INTS(LOAD(at[s] + j * VW));
              #pragma unroll
              for (int t = 0; t < STEP; ++t) {
                VEC x = TO_FLOATS(INTEGER(q, t));
                if (OFFSETS) x += LOAD(scale[s] + PW + j * VW);
                //@include quantized_terms
              }
            }
            at[s] += PW;
          }
        }
        if (K % STEP != 0 && k < k_end) {
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
#else
        for (; k + STEP <= k_end; k += STEP) {
          #pragma unroll
          for (int s = 0; s < SIDE; ++s) {
            const __global float* w = at[s];
            const __global short* upper = (const __global short*)w;
            UINTS lower[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) lower[j] = LOAD((const __global uint*)w + STEP * PW / 2 + j * VW);
            #pragma unroll
            for (int t = 0; t < STEP; ++t) {
              #pragma unroll
              for (int l = LINES * t / STEP; l < LINES * (t + 1) / STEP; ++l) oclc_prefetch(w + PREFETCH_DISTANCE + l * 16);
              #pragma unroll
              for (int j = 0; j < NV; ++j) {
                const INTS q = TO_INTS(LOAD(upper + t * PW + j * VW)) << LOWER | AS_INTS(lower[j] >> LOWER * t & MASK);
                const VEC x = TO_FLOATS(q);
                //@include quantized_terms
              }
            }
            at[s] += STEP_FLOATS;
          }
        }
        if (K % STEP != 0 && k < k_end) {
          #pragma unroll
          for (int s = 0; s < SIDE; ++s) {
            const __global float* w = at[s];
            for (int t = 0; t < K % STEP; ++t) {
              #pragma unroll
              for (int j = 0; j < NV; ++j) {
                const UINTS lower = LOAD((const __global uint*)w + STEP * PW / 2 + j * VW) >> (uint)(LOWER * t) & MASK;
                const INTS q = TO_INTS(LOAD((const __global short*)w + t * PW + j * VW)) << LOWER | AS_INTS(lower);
                const VEC x = TO_FLOATS(q);
                //@include quantized_terms
              }
            }
            at[s] += STEP_FLOATS;
          }
        }
#endif
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
      //@include row_of_c
      #pragma unroll
      for (int j = 0; j < SIDE * NV; ++j) {
        const int n = first * PW + j * VW;
        if (N % (SIDE * PW) != 0 && n >= N) break;
        VEC v = out[i][j];
        //@include epilogue
      }
    }
  }
}
