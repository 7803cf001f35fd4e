if (ticket >= TICKETS) {
  if (lane == 0) oclc_wait_for(turn, SHARES);
  oclc_warp_barrier();
  for (int first = share; first < VECTORS; first += SHARES * SUMS_AT_ONCE) {
    float4 results[SUMS_AT_ONCE];
#if RESULTS > 1
    float4 others[SUMS_AT_ONCE][RESULTS - 1];
#endif
    #pragma unroll
    for (int j = 0; j < SUMS_AT_ONCE; ++j) {
      const int i = min(first + j * SHARES, VECTORS - 1);
      float4 v = own[i * 32];
      #pragma unroll
      for (int other = 1; other < SHARES; ++other) v += own[other * (WARPS * VECTORS * 32) + i * 32];
      const int at = i % 8 * 32 + lane;
      const int m = min(ROW(m0 + warp_row + at / 16), M - 1);
      const int n = min(n0 + i / 8 * 64 + at % 16 * 4, (N - 1) / 4 * 4);
      v *= *(const __global float4*)(scales + n);
      //@include value_of_four
    }
    #pragma unroll
    for (int j = 0; j < SUMS_AT_ONCE; ++j) {
      const int i = first + j * SHARES;
      const int at = i % 8 * 32 + lane;
      const int row = m0 + warp_row + at / 16;
      const int m = ROW(row);
      const int n = n0 + i / 8 * 64 + at % 16 * 4;
      if (i < VECTORS && IS_ROW(row) && m < M && n < N) {
        const float4 v = results[j];
        //@include store_four
      }
    }
  }
  oclc_warp_barrier();
  if (lane == 0) oclc_next_of(turn, 2 * SHARES - 1);
  continue;
}
