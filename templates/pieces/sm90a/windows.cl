// Two windows at a time, 64 columns of each; lanes find the rows of one each that has to be there.
if (ticket >= TICKETS) {
  for (int unit = (ticket - TICKETS) * WARPS + warp; unit < (WINDOWS + 1) / 2 * COLUMN_BLOCKS; unit += TICKETS * WARPS) {
    const int window = min(unit / COLUMN_BLOCKS * 2 + lane / 16, WINDOWS - 1);
    const int column = unit % COLUMN_BLOCKS * 64 + lane % 16 * 4;
    const int line = window / LINE_WINDOWS * WINDOW_LINES, position = window % LINE_WINDOWS * WINDOW_WIDTH;
    const int n = min(column, (N - 1) / 4 * 4);
    const __global float4* from[WINDOW];
    volatile __global uint* wanted = turns;
    #pragma unroll
    for (int i = 0; i < WINDOW; ++i) {
      const int row = (line + i / WINDOW_WIDTH) * (LINE > 1 ? PADDED : WIDTH) + position + i % WINDOW_WIDTH;
      const int row_tile = row / TILE_ROWS;
      const int rows_of_swath = min(ROW_TILES - row_tile / SWATH * SWATH, SWATH);
      const int its = row_tile / SWATH * (SWATH * COLUMN_TILES) + n / BN * rows_of_swath + row_tile % SWATH;
      const int in_tile = row % TILE_ROWS;
      if (lane % 16 == i) wanted = turns + TURNS_AT + its * WARPS + in_tile / 16;
      from[i] = (const __global float4*)parts + (size_t)(its * SHARES * WARPS + in_tile / 16) * (VECTORS * 32) +
                n % BN / 64 * 256 + in_tile % 16 * 16 + n % 64 / 4;
    }
    if (lane % 16 < WINDOW) oclc_wait_for(wanted, SHARES);
    oclc_warp_barrier();
    float4 sums[WINDOW];
    #pragma unroll
    for (int i = 0; i < WINDOW; ++i) {
      sums[i] = *from[i];
      #pragma unroll
      for (int j = 1; j < SHARES; ++j) sums[i] += from[i][j * (WARPS * VECTORS * 32)];
    }
    const float4 scale = *(const __global float4*)(weights + SCALES_AT + n);
    float4 largest = -INFINITY;
    #pragma unroll
    for (int i = 0; i < WINDOW; ++i) {
      const int m = (line + i / WINDOW_WIDTH) * WIDTH + position + i % WINDOW_WIDTH;
      float4 v = sums[i] * scale;
      //@hole EPILOGUE_VALUE
      v *= 2.0f;
      //@end
      largest = oclc_max(largest, v);
    }
    if (column < N && unit / COLUMN_BLOCKS * 2 + lane / 16 < WINDOWS) {
      const int m = line * WIDTH + position;
      const float4 v = largest;
      //@hole EPILOGUE
      vstore4(v, 0, c + (size_t)(line / WINDOW_LINES * LINE_WINDOWS + position / WINDOW_WIDTH) * N + n);
      //@end
    }
  }
  oclc_warp_barrier();
  int is_last = 0;
  if (lane == 0) is_last = oclc_next_of(turns + TURNS_AT / 2, TICKETS * WARPS - 1) == TICKETS * WARPS - 1;
  if (oclc_from_lane((uint)is_last, 0))
    for (int i = lane; i < TILES * WARPS; i += 32) turns[TURNS_AT + i] = 0;
  continue;
}
