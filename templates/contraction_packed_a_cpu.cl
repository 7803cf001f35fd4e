// Contraction on a CPU, rows of A packed into local memory through an expression, B packed at compile time.
// For A with an elementwise prologue or an index that is not a pointer per row and tap; the packed rows serve NP panels.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * B[g, tap, k, n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, tap, k .. k + PV - 1]. Default, a normalised and rectified row-major A:
//           max(a[((g * M + m) * TAPS + tap) * K + k] * scale[k] + shift[k], 0).
// local A   block[r * A_PITCH + tap * K + k], r = row within the work-item, A_PITCH = TAPS * K + 16: rows a multiple of 4 KiB
//           apart would fall into one cache set. With ROWS_INNERMOST block[(tap * K + k) * (MT * MR) + r], or where PV = MR
//           tile by tile, block[(r / MR * KT + tap * K + k) * MR + r % MR].
// B         b[(((g * PANELS + n / PW) * TAPS + tap) * K + k) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
//           B of run time: B_PANEL, B_STEP, B_GROUP, B_FROM as in contraction_cpu.cl. With COPY_B each panel is copied behind
//           A's block before the row tiles meet it: its rows lie on a page each.
// C         c[C_OFFSET + g * C_GROUP + m * C_STEP + n].      bias: PANELS * PW values for each g (default epilogue).
// parameter legal values (default)
//   G, M, N, K, TAPS, VW, MR, NV, HALF_LAST, K_CHAIN, AHEAD, FIRST_AHEAD, EPILOGUE_UNROLL, C_STEP, C_GROUP, C_OFFSET   as in contraction_cpu.cl
//   PV      1, 4, 8, 16: width of the packing loop, at most K; 1 where neighbours in k are not neighbours in memory (VW)
//   ROWS_INNERMOST  1: A_ELEMENTS gives the values of rows m .. m + PV - 1 at k; MR and PV divide M, PV divides MT * MR. For A
//           transposed. (0)
//   COPY_B  1: panels of B, floats of run time, are copied (0)
//   RT      row tiles that meet all panels before the next RT do: results of few rows are few pages and whole pieces of them,
//           while B comes from the second- or third-level cache again (MT)
//   EPILOGUE_AHEAD  1: hole NEXT_RESULTS asks for the lines that the epilogue reads and writes at row m, columns n to n + 15 (0)
//   MT, NP  row tiles and panels of a work-item; packing costs about MT * MR * TAPS * K / PV against NP * NV times as many
//           multiplications, so NP covers all panels unless cores would idle
// local memory 4 * MT * MR * (TAPS * K + 16) bytes, with ROWS_INNERMOST without the 16: at most half the second-level cache;
// with COPY_B 4 * PW * TAPS * K more: at most three quarters.
// launch: G * ROW_BLOCKS * PANEL_BLOCKS groups of one work-item.
#ifndef G
#define G 1
#endif
#ifndef M
#define M 128
#endif
#ifndef N
#define N 768
#endif
#ifndef K
#define K 768
#endif
#ifndef TAPS
#define TAPS 1
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
#define MT 2
#endif
#ifndef NP
#define NP 24
#endif
#ifndef K_CHAIN
#define K_CHAIN KT
#endif
#ifndef EPILOGUE_AHEAD
#define EPILOGUE_AHEAD 0
#endif
#ifndef EPILOGUE_UNROLL
#define EPILOGUE_UNROLL MR
#endif
#ifndef B_STEP
#define B_STEP PW
#endif
#ifndef B_PANEL
#define B_PANEL (TAPS * K * PW)
#endif
#ifndef B_GROUP
#define B_GROUP ((size_t)PANELS * B_PANEL)
#endif
#ifndef HALF_LAST
#define HALF_LAST 0
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
#ifndef FIRST_AHEAD
#define FIRST_AHEAD AHEAD
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
#ifndef PV
#define PV VW
#endif
#ifndef RT
#define RT MT
#endif
#ifndef ROWS_INNERMOST
#define ROWS_INNERMOST 0
#endif
#ifndef COPY_B
#define COPY_B 0
#endif
#define KT (TAPS * K)
#define A_PITCH (KT + 16)
#define A_ROW (ROWS_INNERMOST ? 1 : A_PITCH)
#define BY_TILES (ROWS_INNERMOST && PV == MR)
#define A_TERM (BY_TILES ? MR : ROWS_INNERMOST ? MT * MR : 1)
#define A_FLOATS (MT * MR * (ROWS_INNERMOST ? KT : A_PITCH))
#define BLOCK_FLOATS (A_FLOATS + COPY_B * KT * PW)
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
#define ROW_TILES ((M + MR - 1) / MR)
#define ROW_BLOCKS ((ROW_TILES + MT - 1) / MT)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#if PV == 1
#define PVEC float
#define PLOAD(p) (*(p))
#define PSTORE(v, p) (*(p) = (v))
#else
#define PVEC JOIN(float, PV)
#define PLOAD(p) JOIN(vload, PV)(0, p)
#define PSTORE(v, p) oclc_store(v, p)
#endif
#ifndef B_FROM
#define B_FROM(v) v
#endif
#define VEC JOIN(float, VW)
// a * b + sum for vector j of a row of the tile.
#if HALF_LAST
#define MULTIPLY_ADD(a, b, sum, j) ((j) == NV - 1 ? oclc_fma_low(a, b, sum) : fma(a, b, sum))
#else
#define MULTIPLY_ADD(a, b, sum, j) fma(a, b, sum)
#endif
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

void contraction_packed_a_tile(const __global float* restrict a, const __global float* restrict b,
                               const __global float* restrict scale, const __global float* restrict shift,
                               const __global float* restrict bias, __global float* restrict c, int tile,
                               __local float* restrict block) {
  //@hole SIZES
  //@end
  const int g = tile / (ROW_BLOCKS * PANEL_BLOCKS);
  const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
  const int panel_block = tile % PANEL_BLOCKS;
  const int panel_end = min(PANELS, (panel_block + 1) * NP);
  const int m_begin = row_block * (MT * MR);
  const int m_end = min(M, m_begin + MT * MR);
  const int packed_rows = (m_end - m_begin + MR - 1) / MR * MR;
  // Vectors of a row, of which the last overlaps its neighbour instead of reading past the row; or of rows, at one term.
  for (int outer = 0; outer < (ROWS_INNERMOST ? KT : packed_rows * TAPS); ++outer) {
    const int tap = ROWS_INNERMOST ? outer / K : outer % TAPS;
    for (int at = 0; at < (ROWS_INNERMOST ? packed_rows : K); at += PV) {
      const int m = ROWS_INNERMOST ? m_begin + at : min(m_begin + outer / TAPS, M - 1);
      const int k = ROWS_INNERMOST ? outer % K : min(at, K - PV);
      __local float* restrict to =
          block + (BY_TILES         ? at * KT + outer * MR
                   : ROWS_INNERMOST ? outer * (MT * MR) + at
                                    : outer / TAPS * A_PITCH + tap * K + k);
      PVEC v;
      //@hole A_ELEMENTS
      v = PLOAD(a + (size_t)(g * M + m) * KT + tap * K + k);
      v = fmax(fma(v, PLOAD(scale + k), PLOAD(shift + k)), 0.0f);
      //@end
      PSTORE(v, to);
    }
  }
  for (int near_begin = m_begin; near_begin < m_end; near_begin += RT * MR) {
    const int near_end = min(m_end, near_begin + RT * MR);
    for (int panel = panel_block * NP; panel < panel_end; ++panel) {
#if COPY_B
      __local float* restrict copy = block + A_FLOATS;
      //@hole B_POINTER
      const __global float* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
      //@end
      const int n0 = panel * PW;
      for (int k = 0; k < KT; ++k) {
        if (N % PW == 0 || n0 + PW <= N) {
          #pragma unroll
          for (int j = 0; j < NV; ++j) STORE(LOAD(w + j * VW), copy + k * PW + j * VW);
        } else {
          for (int j = 0; j < PW; ++j) copy[k * PW + j] = w[min(n0 + j, N - 1) - n0];
        }
        w += B_STEP;
      }
#endif
      for (int m0 = near_begin; m0 < near_end; m0 += MR) {
        // Surplus rows of the last tile repeat row M - 1 and are not stored.
#if EPILOGUE_AHEAD
        // What the results of the next panel, behind the last one those of the next near rows, are computed with, and where they
        // go: the lines of a tile's rows.
        const int ends = panel + 1 == panel_end;
        #pragma unroll
        for (int i = 0; i < MR; ++i)
          #pragma unroll
          for (int j = 0; j < PW; j += 16) {
            const int m = m0 + i + ends * (RT * MR), n = j + (ends ? panel_block * (NP * PW) : (panel + 1) * PW);
            //@hole NEXT_RESULTS
            oclc_prefetch_l2(c + C_OFFSET + (size_t)g * C_GROUP + (size_t)m * C_STEP + n);
            //@end
          }
#endif
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
#if COPY_B
        const __local float* w = copy;
#else
        //@hole B_POINTER
        const __global float* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
        //@end
#endif
#if AHEAD > 0
        const int rows_ahead = m0 == m_begin ? FIRST_AHEAD : AHEAD;
#endif
        const __local float* p = block + (m0 - m_begin) * (BY_TILES ? KT : A_ROW);
        for (int k0 = 0; k0 < KT; k0 += K_CHAIN) {
          const int k_end = min(KT, k0 + K_CHAIN);
          for (int k = k0; k < k_end; ++k) {
            VEC x[NV];
            #pragma unroll
            for (int j = 0; j < NV; ++j) x[j] = B_FROM(LOAD(w + j * VW));
#if AHEAD > 0
            #pragma unroll
            for (int j = 0; j < NV; j += 16 / VW) oclc_prefetch(w + rows_ahead * PW + j * VW);
#endif
            #pragma unroll
            for (int i = 0; i < MR; ++i) {
              const VEC s = p[i * A_ROW + k * A_TERM];
              #pragma unroll
              for (int j = 0; j < NV; ++j) acc[i][j] = MULTIPLY_ADD(s, x[j], acc[i][j], j);
            }
            w += COPY_B ? PW : B_STEP;
          }
          if (K_CHAIN < KT) {
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
          for (int j = 0; j < NV; ++j) out[i][j] = K_CHAIN < KT ? out[i][j] + acc[i][j] : acc[i][j];
        #pragma unroll EPILOGUE_UNROLL
        for (int i = 0; i < MR; ++i) {
          const int m = m0 + i;
          if (m >= M) break;
          //@hole C_ROW
          __global float* c_row = c + C_OFFSET + (size_t)g * C_GROUP + (size_t)m * C_STEP;
          //@end
          #pragma unroll
          for (int j = 0; j < NV; ++j) {
            const int n = panel * PW + j * VW;
            if (N % PW != 0 && n >= N) break;
            VEC v = out[i][j];
            //@hole EPILOGUE
            v += LOAD(bias + g * (PANELS * PW) + n);
            //@end
            //@hole STORE
            store_columns(v, c_row, n);
            //@end
          }
        }
      }
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_packed_a(const __global float* restrict a, const __global float* restrict b,
                                   const __global float* restrict scale, const __global float* restrict shift,
                                   const __global float* restrict bias, __global float* restrict c) {
  __local float block[BLOCK_FLOATS];
  contraction_packed_a_tile(a, b, scale, shift, bias, c, (int)get_group_id(0), block);
}
