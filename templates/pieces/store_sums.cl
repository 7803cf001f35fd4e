//@with V Q P  the tile V of register sums to Q, rows of P floats
#pragma unroll
for (int i = 0; i < MR; ++i)
  #pragma unroll
  for (int j = 0; j < NV; ++j) STORE($V, $Q + i * $P + j * VW);
