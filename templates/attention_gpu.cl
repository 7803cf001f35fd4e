// Attention on a GPU without matrix units: two work-items for each row, which share its scores block of keys by block of keys and
// have half of its columns each.
//
// formula   that of attention_mma_gpu.cl, with products of floats
// Q         hole A_ELEMENTS gives the element v at (m, k). Default: row-major a[(g * ROWS + m) * DEPTH + k].
// K         hole B_ELEMENTS gives the element v at (k, n). Default: b[(g * KEYS + n) * DEPTH + k].
// scores    hole SCORES makes of the four sums v from (m, n) on what softmax sees. Default: v / 8.
// V         hole V_ELEMENTS gives the element v of row k, column n. Default: values[(g * KEYS + k) * COLUMNS + n].
// C         hole EPILOGUE stores four columns v from (m, n) on. Default: c[(g * ROWS + m) * COLUMNS + n].
// local K   space[key * K_PITCH + k]; local V: V_AT + key * V_PITCH + column; scores: S_AT + row * S_PITCH + key.
// local memory 4 * SPACE bytes.
// launch: G * ROW_TILES groups of ITEMS work-items.
// paper     Milakov, Gimelshein: Online normalizer calculation for softmax, 2018.
//@kernel ITEMS, SPACE, 16
//@include attention_sizes
//@param BN 16 {16.. step 8}  keys of a block
// Vectors of four: of a key, and of each half of the columns.
#define KD ((DEPTH + 3) / 4)
#define VD ((COLUMNS + 7) / 8)
#define K_PITCH (KD * 4)
#define V_PITCH (VD * 8)
#define S_PITCH (BN + 4)
#define V_AT (BN * K_PITCH)
#define S_AT (V_AT + BN * V_PITCH)
#define SPACE (S_AT + BM * S_PITCH)

void attention_gpu_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict values,
                        __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int item = get_local_id(0);
  const int g = tile / ROW_TILES;
  const int m0 = tile % ROW_TILES * BM;
  const int half_of_row = item % 2;
  const int m = min(m0 + item / 2, ROWS - 1);
  float4 query[KD];
  for (int i = 0; i < KD; ++i) {
    float lanes[4];
    for (int l = 0; l < 4; ++l) {
      const int k = 4 * i + l;
      float v = 0.0f;
      if (k < DEPTH) {
        //@hole A_ELEMENTS
        v = a[(size_t)(g * ROWS + m) * DEPTH + k];
        //@end
      }
      lanes[l] = v;
    }
    query[i] = vload4(0, lanes);
  }
  float4 sums[VD];
  for (int i = 0; i < VD; ++i) sums[i] = 0.0f;
  float largest = -INFINITY, total = 0.0f;
  for (int n0 = 0; n0 < KEYS; n0 += BN) {
    for (int at = item; at < BN * K_PITCH; at += ITEMS) {
      const int k = at % K_PITCH;
      const int n = min(n0 + at / K_PITCH, KEYS - 1);
      float v = 0.0f;
      if (k < DEPTH) {
        //@hole B_ELEMENTS
        v = b[(size_t)(g * KEYS + n) * DEPTH + k];
        //@end
      }
      space[at] = v;
    }
    for (int at = item; at < BN * V_PITCH; at += ITEMS) {
      const int n = at % V_PITCH;
      const int k = n0 + at / V_PITCH;
      float v = 0.0f;
      if (n < COLUMNS && k < KEYS) {
        //@hole V_ELEMENTS
        v = values[(size_t)(g * KEYS + k) * COLUMNS + n];
        //@end
      }
      space[V_AT + at] = v;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float* restrict scores = space + S_AT + item / 2 * S_PITCH;
    for (int key = half_of_row * (BN / 2); key < half_of_row * (BN / 2) + BN / 2; key += 4) {
      float lanes[4];
      for (int l = 0; l < 4; ++l) {
        float4 sum = 0.0f;
        for (int i = 0; i < KD; ++i) sum = fma(query[i], vload4(i, space + (key + l) * K_PITCH), sum);
        lanes[l] = (sum.x + sum.y) + (sum.z + sum.w);
      }
      const int n = min(n0 + key, (KEYS - 1) / 4 * 4);
      float4 v = vload4(0, lanes);
      //@hole SCORES
      v = v * 0.125f;
      //@end
      vstore4(v, 0, scores + key);
      for (int l = 0; l < 4; ++l)
        if (n0 + key + l >= KEYS) scores[key + l] = -INFINITY;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float top = largest;
    for (int key = 0; key < BN; ++key) top = fmax(top, scores[key]);
    // Where nothing but -inf was found yet, differences would be NaN.
    const float base = top == -INFINITY ? 0.0f : top;
    const float scale = exp(largest - base);
    largest = top;
    for (int i = 0; i < VD; ++i) sums[i] *= scale;
    float sum = 0.0f;
    for (int key = 0; key < BN; ++key) {
      const float p = exp(scores[key] - base);
      sum += p;
      for (int i = 0; i < VD; ++i)
        sums[i] = fma((float4)(p), vload4(half_of_row * VD + i, space + V_AT + key * V_PITCH), sums[i]);
    }
    total = fma(total, scale, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float part = 1.0f / total;
  for (int i = 0; i < VD; ++i) {
    const int n = (half_of_row * VD + i) * 4;
    if (m0 + item / 2 < ROWS && n < COLUMNS) {
      const float4 v = sums[i] * part;
      //@hole EPILOGUE
      vstore4(v, 0, c + (size_t)(g * ROWS + m) * COLUMNS + n);
      //@end
    }
  }
}
