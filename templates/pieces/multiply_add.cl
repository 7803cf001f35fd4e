//@with A C  a tile of MR rows and C vectors: acc += A, of row i, times the vectors x
#pragma unroll
for (int i = 0; i < MR; ++i) {
  const VEC s = $A;
  #pragma unroll
  for (int j = 0; j < $C; ++j) acc[i][j] = fma(s, x[j], acc[i][j]);
}
