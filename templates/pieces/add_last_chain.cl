// acc stays in registers only if all its indices become constants: a rolled epilogue reads out instead.
#pragma unroll
for (int i = 0; i < MR; ++i)
  #pragma unroll
  for (int j = 0; j < NV; ++j) out[i][j] = HAS_CHAINS ? out[i][j] + acc[i][j] : acc[i][j];
