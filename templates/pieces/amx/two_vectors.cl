// 32 columns of a row of results.
#pragma unroll
for (int j = 0; j < 2; ++j) {
  const int n = FIRST_COLUMN + j * 16;
  if (N % 32 != 0 && n >= N) break;
  float16 v = SUMS_AT(i, j);
  //@lines EPILOGUE
  //@hole STORE
  store_columns(v, ROW_OF_C, n);
  //@end
}
