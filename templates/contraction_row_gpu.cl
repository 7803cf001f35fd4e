// One row times a matrix of constants in 12 bits on a GPU. Memory sends each of them once a run and is the bound; the row lies in a
// cache.
//
// formula   C[n] = epilogue(sum over k < K of row[k] * W[n,k])
// row       hole X sets v to elements k .. k + 3, k a multiple of 4. Default: a[k].
// W         weights, words [n * PITCH]: of 256 k after one another 96 words each, a third of what a work-item of eight has together:
//           [k / 256 * 96 + piece * 32 + item * 4]. Its 12 words hold numbers of 12 bits, the first in the lowest bits: number i is of
//           k % 256 = i / 4 * 32 + item * 4 + i % 4. Behind these, of each such work-item 16 bits, [CHUNKS * 96 * 2 + k / 256 * 8 +
//           item]: of each eight numbers four, one less than what they are to be multiplied by. Behind all rows a float for each
//           by which all of it are.
// C         hole EPILOGUE stores the sum v of n. Default: c[n].
// local     parts[item]: a work-item's sum.
// launch: N / ROWS groups, rounded up, of ROWS * SHARERS work-items.
//@kernel ROWS * SHARERS, SPACE
//@param N 4096 {1..} K 4096 {256.. step 256}  results, and terms
//@param SHARERS 64 {32.. step 32}  work-items that share a result
//@param ROWS 2 {1..}  results of a group
#define CHUNKS (K / 256)
#define PITCH ((CHUNKS * 100 + 31) / 32 * 32)
#define SCALES_AT (N * PITCH)
#define AT_ONCE (SHARERS / 8)
#define SPACE (ROWS * SHARERS)

void contraction_row_gpu_tile(const __global float* restrict a, const __global uint* restrict weights, __global float* restrict c,
                              const int tile, __local float* restrict parts) {
  //@lines SIZES
  const int item = get_local_id(0);
  const int sharer = item % SHARERS;
  const int of_chunk = sharer % 8;
  const int wanted = tile * ROWS + item / SHARERS;
  const int n = min(wanted, N - 1);
  const __global uint* numbers = weights + (size_t)n * PITCH + of_chunk * 4;
  const __global ushort* scales = (const __global ushort*)(weights + (size_t)n * PITCH + CHUNKS * 96) + of_chunk;
  float sum = 0.0f;
  // What the next round wants is on its way.
  uint4 ahead[3];
  uint scale_ahead = scales[sharer / 8 * 8];
  #pragma unroll
  for (int i = 0; i < 3; ++i) ahead[i] = oclc_load_once((const __global uint4*)(numbers + sharer / 8 * 96 + i * 32));
  for (int chunk = sharer / 8; chunk < CHUNKS; chunk += AT_ONCE) {
    const uint4 p = ahead[0], q = ahead[1], r = ahead[2];
    const uint scale = scale_ahead;
    if (chunk + AT_ONCE < CHUNKS) {
      scale_ahead = scales[(chunk + AT_ONCE) * 8];
      #pragma unroll
      for (int i = 0; i < 3; ++i) ahead[i] = oclc_load_once((const __global uint4*)(numbers + (chunk + AT_ONCE) * 96 + i * 32));
    }
    float4 row[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int k = chunk * 256 + i * 32 + of_chunk * 4;
      float4 v;
      //@hole X
      v = *(const __global float4*)(a + k);
      //@end
      row[i] = v;
    }
    sum = fma(oclc_dot_twelve(p.x, p.y, p.z, row[0], row[1]), (float)((scale & 15u) + 1u), sum);
    sum = fma(oclc_dot_twelve(p.w, q.x, q.y, row[2], row[3]), (float)((scale >> 4 & 15u) + 1u), sum);
    sum = fma(oclc_dot_twelve(q.z, q.w, r.x, row[4], row[5]), (float)((scale >> 8 & 15u) + 1u), sum);
    sum = fma(oclc_dot_twelve(r.y, r.z, r.w, row[6], row[7]), (float)((scale >> 12) + 1u), sum);
  }
  parts[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (sharer < 32) {
    for (int i = 32; i < SHARERS; i += 32) sum += parts[item + i];
    parts[item] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 16; step >= 4; step /= 2) {
    if (sharer < step) parts[item] += parts[item + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (sharer == 0 && wanted == n) {
    const float v = ((parts[item] + parts[item + 1]) + (parts[item + 2] + parts[item + 3])) * as_float(weights[SCALES_AT + n]);
    //@hole EPILOGUE
    c[n] = v;
    //@end
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
