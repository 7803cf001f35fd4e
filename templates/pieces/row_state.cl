//@hole ROW_STATE
const __global float* row[MR];
#pragma unroll
for (int i = 0; i < MR; ++i) row[i] = a + (g * M + min(m0 + i, M - 1)) * K;
//@end
