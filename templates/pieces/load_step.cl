#pragma unroll
for (int i = 0; i < A_LOADS; ++i) {
  const int at = item + i * ITEMS;
#if A_ALONG_K
  const int in_k = at % (BK / AV) * AV;
  const int m = min(m0 + at / (BK / AV), M - 1);
#else
  const int in_k = at / (BM / AV);
  const int m = min(m0 + at % (BM / AV) * AV, M - AV);
#endif
  A_VECTOR v = 0.0f;
  if ((A_COUNT % ITEMS == 0 || at < A_COUNT) && (!RAGGED || at_k + in_k < DEPTH)) {
    //@include term_of_step
    //@hole A_ELEMENTS
    v = vload4(0, a + (size_t)(g * M + m) * K + k);
    //@end
  }
  next_a[i] = v;
}
#pragma unroll
for (int i = 0; i < B_LOADS; ++i) {
  const int at = item + i * ITEMS;
#if B_ALONG_K
  const int in_k = at % (BK / BV) * BV;
  const int n = min(n0 + at / (BK / BV), N - 1);
#else
  const int in_k = at / (BN / BV);
  const int n = min(n0 + at % (BN / BV) * BV, N_LOADED - BV);
#endif
  B_VECTOR v = 0.0f;
  if ((B_COUNT % ITEMS == 0 || at < B_COUNT) && (!RAGGED || at_k + in_k < DEPTH)) {
    //@include term_of_step
    //@hole B_ELEMENTS
    v = vload4(0, b + (size_t)(g * K + k) * N + n);
    //@end
  }
  next_b[i] = v;
}
at_k += BK;
if (!FLAT && at_k >= K) at_k = 0, ++at_tap;
