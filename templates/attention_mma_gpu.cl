// Attention on the matrix units of an NVIDIA GPU (compute capability 8.0 and later) through mma.sync.m16n8k8 on TF32 operands: the
// softmax of a product's rows times a second matrix, block of keys by block of keys, so that no score is ever in memory. Its groups
// are those of attention_gpu.cl, which stands in where a driver refuses this text.
//
// formula   s[g,m,n] = scores(sum over k < DEPTH of Q[g,m,k] * K[g,k,n]);  p[g,m,n] = e^(s[g,m,n] - max over n of s[g,m,n])
//           C[g,m,c] = epilogue(sum over n < KEYS of p[g,m,n] * V[g,n,c] / sum over n < KEYS of p[g,m,n])
//           What a block adds is relative to the largest score so far; a larger one scales down what was added before.
//           SPLIT 1: x = big + small, both TF32, and a * b = small * big + big * small + big * big, as accurate as a chain of fma.
//           SPLIT 0: operands rounded to TF32.
// Q         hole A_ELEMENTS gives the element v at (m, k). Default: row-major a[(g * ROWS + m) * DEPTH + k].
// K         hole B_ELEMENTS gives KV elements v from (k, n) on, along k or along n. Default: b[(g * KEYS + n) * DEPTH + k].
// scores    hole SCORES makes of the four sums v from (m, n) on what softmax sees. Default: v / 8.
// V         hole V_ELEMENTS gives VV elements v from row k, column n on, along n or along k. Default: values[(g * KEYS + k) * COLUMNS + n].
// C         hole EPILOGUE stores four columns v from (m, n) on. Default: c[(g * ROWS + m) * COLUMNS + n].
// local K   space[key * K_PITCH + k]; local V: V_AT + key * V_PITCH + column. At the end tile C: space[row * C_PITCH + column].
// local memory 4 * SPACE bytes.
// launch: G * ROW_TILES groups of ITEMS work-items.
// paper     Milakov, Gimelshein: Online normalizer calculation for softmax, 2018; Rabe, Staats: Self-attention does not need O(n^2)
//           memory, 2021; Dao et al.: FlashAttention, 2022.
//@kernel ITEMS, SPACE, 16
//@include attention_sizes
//@param BN 64 {32.. step 32}  keys of a block
//@param KV 4 {1, 4} VV 4 {1, 4}  elements of a load
//@param K_ALONG_DEPTH 1 {0, 1} V_ALONG_COLUMNS 1 {0, 1}  1: loads run along k, and along columns; 0: along the keys
//@param SPLIT 1 {0, 1}
//@param EPILOGUE_UNROLL 4 {1, 4}  copies of the epilogue: 4, or 1 for an expensive one
//@include floats
#define K_VECTOR FLOATS(KV)
#define V_VECTOR FLOATS(VV)
#define KD ((DEPTH + 7) / 8)
#define VD ((COLUMNS + 7) / 8)
#define K_PITCH (KD * 8 + 4)
#define V_PITCH (VD * 8 + 2)
#define C_PITCH (VD * 8 + 4)
#define V_AT (BN * K_PITCH)
#define SPACE (V_AT + BN * V_PITCH > BM * C_PITCH ? V_AT + BN * V_PITCH : BM * C_PITCH)
#define K_COUNT (BN * KD * 8 / KV)
#define V_COUNT (BN * VD * 8 / VV)
#define K_LOADS ((K_COUNT + ITEMS - 1) / ITEMS)
#define V_LOADS ((V_COUNT + ITEMS - 1) / ITEMS)
// Sums of a sub-group that take turns at the unit.
#define SIDE 4
#define RAGGED (KEYS % BN != 0)
#if SPLIT
#define ROUNDED(x) (x)
#define EXP(x) exp(x)
#else
#define ROUNDED(x) ((x) + 0x1000u)
#define EXP(x) native_exp(x)
#endif

void attention_mma_gpu_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict values,
                            __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  const int g = tile / ROW_TILES;
  const int m0 = tile % ROW_TILES * BM;
  const int lane_row = item % 32 / 4;
  const int lane_k = item % 4;
  // This work-item has parts of this row of the tile and of the one 8 rows below.
  const int row = item / 32 * 16 + lane_row;
  uint query[KD][4];
  #pragma unroll
  for (int i = 0; i < KD; ++i)
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int m = min(m0 + row + q % 2 * 8, ROWS - 1);
      const int k = 8 * i + 2 * lane_k + q / 2;
      float v = 0.0f;
      if (DEPTH % 8 == 0 || k < DEPTH) {
        //@hole A_ELEMENTS
        v = a[(size_t)(g * ROWS + m) * DEPTH + k];
        //@end
      }
      query[i][q] = ROUNDED(as_uint(v));
    }
  float sums[VD][4];
  #pragma unroll
  for (int j = 0; j < VD; ++j) sums[j][0] = sums[j][1] = sums[j][2] = sums[j][3] = 0.0f;
  float largest[2], total[2];
  largest[0] = largest[1] = -INFINITY;
  total[0] = total[1] = 0.0f;
  // A block's keys are loaded while the products of the block before it with its values are computed, its values while its scores are.
  for (int n0 = -BN; n0 < KEYS; n0 += BN) {
    float scores[BN / 8][4];
    if (n0 >= 0) {
      V_VECTOR next_v[V_LOADS];
      #pragma unroll
      for (int i = 0; i < V_LOADS; ++i) {
        const int at = item + i * ITEMS;
#if V_ALONG_COLUMNS
        const int n = at % (VD * 8 / VV) * VV;
        const int k = n0 + at / (VD * 8 / VV);
#else
        const int n = at / (BN / VV);
        const int k = n0 + at % (BN / VV) * VV;
#endif
        V_VECTOR v = 0.0f;
        if ((V_COUNT % ITEMS == 0 || at < V_COUNT) && (!RAGGED || k < KEYS) && (COLUMNS % 8 == 0 || n < COLUMNS)) {
          //@hole V_ELEMENTS
          v = vload4(0, values + (size_t)(g * KEYS + k) * COLUMNS + n);
          //@end
        }
        next_v[i] = v;
      }
      #pragma unroll
      for (int j = 0; j < BN / 8; ++j) scores[j][0] = scores[j][1] = scores[j][2] = scores[j][3] = 0.0f;
      // Column c of the unit's product j is key j / 2 * 16 + 2 * c + j % 2: a work-item then has four neighbours of a row.
      const __local float* restrict keys = space + 2 * lane_row * K_PITCH + 2 * lane_k;
      #pragma unroll
      for (int i = 0; i < KD; ++i) {
#if SPLIT
        uint big_a[4], small_a[4];
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          big_a[q] = (query[i][q] + 0x1000u) & 0xffffe000u;
          small_a[q] = as_uint(as_float(query[i][q]) - as_float(big_a[q]));
        }
#endif
        #pragma unroll
        for (int j0 = 0; j0 < BN / 8; j0 += SIDE) {
          uint2 part[SIDE];
          #pragma unroll
          for (int j = 0; j < SIDE; ++j)
            part[j] = as_uint2(*(const __local float2*)(keys + ((j0 + j) / 2 * 16 + j % 2) * K_PITCH + 8 * i));
#if SPLIT
          //@include gpu/multiply_parts A=big_a S=small_a I=j
          #pragma unroll
          for (int j = 0; j < SIDE; ++j)
            #pragma unroll
            for (int q = 0; q < 4; ++q) scores[j0 + j][q] += d[j][q];
#else
          #pragma unroll
          for (int j = 0; j < SIDE; ++j) oclc_mma(scores[j0 + j], query[i], part[j].x, part[j].y);
#endif
        }
      }
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        float top = largest[h];
        #pragma unroll
        for (int j = 0; j < BN / 8; j += 2) {
          const int first = n0 + 8 * j + 4 * lane_k;
          const int m = min(m0 + row + 8 * h, ROWS - 1);
          const int n = RAGGED ? min(first, (KEYS - 1) / 4 * 4) : first;
          float4 v = (float4)(scores[j][2 * h], scores[j + 1][2 * h], scores[j][2 * h + 1], scores[j + 1][2 * h + 1]);
          //@hole SCORES
          v = v * 0.125f;
          //@end
          if (RAGGED) {
            if (first >= KEYS) v.x = -INFINITY;
            if (first + 1 >= KEYS) v.y = -INFINITY;
            if (first + 2 >= KEYS) v.z = -INFINITY;
            if (first + 3 >= KEYS) v.w = -INFINITY;
          }
          scores[j][2 * h] = v.x, scores[j + 1][2 * h] = v.y, scores[j][2 * h + 1] = v.z, scores[j + 1][2 * h + 1] = v.w;
          top = fmax(top, fmax(fmax(v.x, v.y), fmax(v.z, v.w)));
        }
        float other;
        oclc_swap_lanes(other, top, 1);
        top = fmax(top, other);
        oclc_swap_lanes(other, top, 2);
        top = fmax(top, other);
        // Where nothing but -inf was found yet, differences would be NaN.
        const float base = top == -INFINITY ? 0.0f : top;
        const float scale = EXP(largest[h] - base);
        largest[h] = top;
        float sum = 0.0f;
        #pragma unroll
        for (int j = 0; j < BN / 8; ++j)
          #pragma unroll
          for (int q = 2 * h; q < 2 * h + 2; ++q) scores[j][q] = EXP(scores[j][q] - base), sum += scores[j][q];
        total[h] = fma(total[h], scale, sum);
        #pragma unroll
        for (int j = 0; j < VD; ++j) sums[j][2 * h] *= scale, sums[j][2 * h + 1] *= scale;
      }
      #pragma unroll
      for (int i = 0; i < V_LOADS; ++i) {
        const int at = item + i * ITEMS;
        if (V_COUNT % ITEMS != 0 && at >= V_COUNT) break;
#if V_ALONG_COLUMNS
        __local float* restrict to = space + V_AT + at / (VD * 8 / VV) * V_PITCH + at % (VD * 8 / VV) * VV;
#else
        __local float* restrict to = space + V_AT + at % (BN / VV) * VV * V_PITCH + at / (BN / VV);
#endif
#if VV == 4
        const float4 v = as_float4(ROUNDED(as_uint4(next_v[i])));
#if V_ALONG_COLUMNS
        *(__local float2*)to = v.xy;
        *(__local float2*)(to + 2) = v.zw;
#else
        to[0] = v.x, to[V_PITCH] = v.y, to[2 * V_PITCH] = v.z, to[3 * V_PITCH] = v.w;
#endif
#else
        to[0] = as_float(ROUNDED(as_uint(next_v[i])));
#endif
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    K_VECTOR next_k[K_LOADS];
    if (n0 + BN < KEYS) {
      #pragma unroll
      for (int i = 0; i < K_LOADS; ++i) {
        const int at = item + i * ITEMS;
#if K_ALONG_DEPTH
        const int k = at % (KD * 8 / KV) * KV;
        const int n = min(n0 + BN + at / (KD * 8 / KV), KEYS - 1);
#else
        const int k = at / (BN / KV);
        const int n = min(n0 + BN + at % (BN / KV) * KV, KEYS - KV);
#endif
        K_VECTOR v = 0.0f;
        if ((K_COUNT % ITEMS == 0 || at < K_COUNT) && (DEPTH % 8 == 0 || k < DEPTH)) {
          //@hole B_ELEMENTS
          v = vload4(0, b + (size_t)(g * KEYS + n) * DEPTH + k);
          //@end
        }
        next_k[i] = v;
      }
    }
    if (n0 >= 0) {
      const __local uint* restrict from = (const __local uint*)space + V_AT + 4 * lane_k * V_PITCH + lane_row;
      #pragma unroll
      for (int j = 0; j < BN / 8; ++j) {
        uint p[4];
        p[0] = as_uint(scores[j][0]), p[1] = as_uint(scores[j][2]), p[2] = as_uint(scores[j][1]), p[3] = as_uint(scores[j][3]);
#if SPLIT
        uint small_p[4];
        //@include gpu/tf32_parts X=p S=small_p C=4
#else
        #pragma unroll
        for (int q = 0; q < 4; ++q) p[q] += 0x1000u;
#endif
        #pragma unroll
        for (int i0 = 0; i0 < VD; i0 += SIDE) {
          uint2 part[SIDE];
          #pragma unroll
          for (int i = 0; i < SIDE; ++i) {
            const __local uint* restrict at = from + (j / 2 * 16 + j % 2) * V_PITCH + 8 * min(i0 + i, VD - 1);
            part[i] = (uint2)(at[0], at[2 * V_PITCH]);
          }
#if SPLIT
          //@include gpu/multiply_parts A=p S=small_p I=i
          #pragma unroll
          for (int i = 0; i < SIDE; ++i)
            #pragma unroll
            for (int q = 0; q < 4; ++q)
              if (i0 + i < VD) sums[i0 + i][q] += d[i][q];
#else
          #pragma unroll
          for (int i = 0; i < SIDE; ++i)
            if (i0 + i < VD) oclc_mma(sums[i0 + i], p, part[i].x, part[i].y);
#endif
        }
      }
    }
    if (n0 + BN < KEYS) {
      #pragma unroll
      for (int i = 0; i < K_LOADS; ++i) {
        const int at = item + i * ITEMS;
        if (K_COUNT % ITEMS != 0 && at >= K_COUNT) break;
#if K_ALONG_DEPTH
        __local float* restrict to = space + at / (KD * 8 / KV) * K_PITCH + at % (KD * 8 / KV) * KV;
#else
        __local float* restrict to = space + at % (BN / KV) * KV * K_PITCH + at / (BN / KV);
#endif
#if KV == 4
        const float4 v = as_float4(ROUNDED(as_uint4(next_k[i])));
#if K_ALONG_DEPTH
        *(__local float4*)to = v;
#else
        to[0] = v.x, to[K_PITCH] = v.y, to[2 * K_PITCH] = v.z, to[3 * K_PITCH] = v.w;
#endif
#else
        to[0] = as_float(ROUNDED(as_uint(next_k[i])));
#endif
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    float other, sum = total[h];
    oclc_swap_lanes(other, sum, 1);
    sum += other;
    oclc_swap_lanes(other, sum, 2);
    sum += other;
    const float part = 1.0f / sum;
    #pragma unroll
    for (int j = 0; j < VD; ++j)
      *(__local float2*)(space + (row + 8 * h) * C_PITCH + 8 * j + 2 * lane_k) =
          (float2)(sums[j][2 * h] * part, sums[j][2 * h + 1] * part);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  #pragma unroll EPILOGUE_UNROLL
  for (int at = item; at < BM * VD * 2; at += ITEMS) {
    const int m = m0 + at / (VD * 2);
    const int n = at % (VD * 2) * 4;
    if (m < ROWS && (COLUMNS % 8 == 0 || n < COLUMNS)) {
      const float4 v = *(const __local float4*)(space + at / (VD * 2) * C_PITCH + n);
      //@hole EPILOGUE
      vstore4(v, 0, c + (size_t)(g * ROWS + m) * COLUMNS + n);
      //@end
    }
  }
}
