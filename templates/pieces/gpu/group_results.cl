// The tile of results in local memory, four columns at a time.
#pragma unroll EPILOGUE_UNROLL
for (int at = item; at < BM * BN / 4; at += ITEMS) {
  const int m = m0 + at / (BN / 4);
  const int n = n0 + at % (BN / 4) * 4;
  if (m < M && n < N) {
    const float4 v = *(const __local float4*)(space + at / (BN / 4) * C_PITCH + at % (BN / 4) * 4);
    //@include store_four
  }
}
