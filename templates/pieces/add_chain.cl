#pragma unroll
for (int i = 0; i < MR; ++i)
  #pragma unroll
  for (int j = 0; j < NV; ++j) out[i][j] += acc[i][j], acc[i][j] = 0.0f;
