//@with X Y R C  the sums Y of a chain are added to X, and begin again: tiles of R rows and C columns
#pragma unroll
for (int i = 0; i < $R; ++i)
  #pragma unroll
  for (int j = 0; j < $C; ++j) $X[i][j] += $Y[i][j], $Y[i][j] = 0.0f;
