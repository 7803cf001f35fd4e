// The results. Surplus rows of the last tile repeat its last row and are not stored.
#pragma unroll EPILOGUE_UNROLL
for (int i = 0; i < MR; ++i) {
  const int m = m0 + i;
  if (m >= M) break;
  //@include row_of_c
  #pragma unroll
  for (int j = 0; j < NV; ++j) {
    const int n = N0 + j * VW;
    if (N % PW != 0 && n >= N) break;
    VEC v = out[i][j];
    //@include epilogue
  }
}
