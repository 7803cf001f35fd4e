#pragma unroll
for (int i = 0; i < MR; ++i)
  acc[i][s * NV + j] = fma((VEC)(p[i][(k + t) * A_STEP]), x, acc[i][s * NV + j]);
