VEC acc[MR][NV];
#pragma unroll
for (int i = 0; i < MR; ++i)
  #pragma unroll
  for (int j = 0; j < NV; ++j) acc[i][j] = 0.0f;
