// Contraction on a CPU, rows of A packed into local memory through an expression, B packed at compile time.
// For A with an elementwise prologue or an index that is not a pointer per row and tap; the packed rows serve NP panels.
//
// formula   C[g,m,n] = epilogue(sum over tap < TAPS, k < K of f(A)[g, row m, tap, k] * B[g, tap, k, n])
// A         hole A_ELEMENTS: the PV values f(A)[g, m, tap, k .. k + PV - 1]. Default, a normalised and rectified row-major A:
//           max(a[((g * M + m) * TAPS + tap) * K + k] * scale[k] + shift[k], 0).
// local A   block[r * A_PITCH + tap * K + k], r = row within the work-item, A_PITCH = TAPS * K + 16: rows a multiple of 4 KiB
//           apart would fall into one cache set.
// B         b[(((g * PANELS + n / PW) * TAPS + tap) * K + k) * PW + n % PW], PW = NV * VW, columns N .. PANELS * PW - 1 zero.
//           B of run time: B_PANEL, B_STEP, B_GROUP, B_FROM as in contraction_cpu.cl.
// C         c[C_OFFSET + g * C_GROUP + m * C_STEP + n].      bias: PANELS * PW values for each g (default epilogue).
// parameter legal values (default)
//   G, M, N, K, TAPS, VW, MR, NV, K_CHAIN, AHEAD, EPILOGUE_UNROLL, C_STEP, C_GROUP, C_OFFSET   as in contraction_cpu.cl
//   PV      1, 4, 8, 16: width of the packing loop, at most K; 1 where neighbours in k are not neighbours in memory (VW)
//   MT, NP  row tiles and panels of a work-item; packing costs about MT * MR * TAPS * K / PV against NP * NV times as many
//           multiplications, so NP covers all panels unless cores would idle
// local memory 4 * MT * MR * (TAPS * K + 16) bytes: at most half the second-level cache.
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
#ifndef AHEAD
#define AHEAD 0
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
#define KT (TAPS * K)
#define A_PITCH (KT + 16)
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
  for (int r = 0; r < packed_rows; ++r) {
    const int m = min(m_begin + r, M - 1);
    for (int tap = 0; tap < TAPS; ++tap) {
      __local float* restrict dst = block + r * A_PITCH + tap * K;
      for (int k0 = 0; k0 < K; k0 += PV) {
        // The last vector overlaps its neighbour instead of reading past the row.
        const int k = min(k0, K - PV);
        PVEC v;
        //@hole A_ELEMENTS
        v = PLOAD(a + (size_t)(g * M + m) * KT + tap * K + k);
        v = fmax(fma(v, PLOAD(scale + k), PLOAD(shift + k)), 0.0f);
        //@end
        PSTORE(v, dst + k);
      }
    }
  }
  for (int panel = panel_block * NP; panel < panel_end; ++panel) {
    for (int m0 = m_begin; m0 < m_end; m0 += MR) {
      // Surplus rows of the last tile repeat row M - 1 and are not stored.
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
      //@hole B_POINTER
      const __global float* w = b + (size_t)g * B_GROUP + (size_t)panel * B_PANEL;
      //@end
      const __local float* p = block + (m0 - m_begin) * A_PITCH;
      for (int k0 = 0; k0 < KT; k0 += K_CHAIN) {
        const int k_end = min(KT, k0 + K_CHAIN);
        for (int k = k0; k < k_end; ++k) {
          VEC x[NV];
          #pragma unroll
          for (int j = 0; j < NV; ++j) x[j] = B_FROM(LOAD(w + j * VW));
#if AHEAD > 0
          #pragma unroll
          for (int j = 0; j < NV; ++j) oclc_prefetch(w + AHEAD * PW + j * VW);
#endif
          #pragma unroll
          for (int i = 0; i < MR; ++i) {
            const VEC s = p[i * A_PITCH + k];
            #pragma unroll
            for (int j = 0; j < NV; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
          }
          w += B_STEP;
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
        for (int j = 0; j < NV; ++j) out[i][j] += acc[i][j];
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

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void contraction_packed_a(const __global float* restrict a, const __global float* restrict b,
                                   const __global float* restrict scale, const __global float* restrict shift,
                                   const __global float* restrict bias, __global float* restrict c) {
  __local float block[MT * MR * A_PITCH];
  contraction_packed_a_tile(a, b, scale, shift, bias, c, (int)get_group_id(0), block);
}
