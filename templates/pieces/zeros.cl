//@with T X R C  X, a tile of R rows and C columns of type T
$T $X[$R][$C];
#pragma unroll
for (int i = 0; i < $R; ++i)
  #pragma unroll
  for (int j = 0; j < $C; ++j) $X[i][j] = 0.0f;
