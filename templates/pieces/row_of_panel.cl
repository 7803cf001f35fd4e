//@with W  the NV vectors x at W, a row of a panel
VEC x[NV];
#pragma unroll
for (int j = 0; j < NV; ++j) x[j] = LOAD($W + j * VW);
