// 16 rows and 64 columns of a warp, from local memory on.
for (int i = lane; i < 16 * 16; i += 32 * AT_ONCE) {
  float4 results[AT_ONCE];
#if RESULTS > 1
  float4 others[AT_ONCE][RESULTS - 1];
#endif
  #pragma unroll
  for (int j = 0; j < AT_ONCE; ++j) {
    // Surplus rows and columns repeat the last ones, so that no branch keeps reads apart.
    const int at = i + j * 32;
    const int m = min(ROW(FIRST_ROW + at / 16), M - 1);
    const int n = min(n0 + c0 + at % 16 * 4, (N - 1) / 4 * 4);
    float4 v = *(const __local float4*)(rows + at / 16 * PITCH + at % 16 * 4);
#if STEP_SCALES == 0
    v *= *(const __global float4*)(scales + n);
#endif
    //@include value_of_four
  }
  #pragma unroll
  for (int j = 0; j < AT_ONCE; ++j) {
    const int at = i + j * 32;
    const int row = FIRST_ROW + at / 16;
    const int m = ROW(row);
    const int n = n0 + c0 + at % 16 * 4;
    if (IS_ROW(row) && m < M && n < N) {
      const float4 v = results[j];
      //@include store_four
    }
  }
}
