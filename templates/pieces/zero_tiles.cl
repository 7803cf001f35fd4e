// Sums of a chain, and of the chains before it.
//@include zero_tile
VEC out[MR][NV];
#pragma unroll
for (int i = 0; i < MR; ++i)
  #pragma unroll
  for (int j = 0; j < NV; ++j) out[i][j] = 0.0f;
