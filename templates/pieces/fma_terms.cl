// The terms of the register tile, chain by chain.
for (int k0 = 0; k0 < TERMS; k0 += K_CHAIN) {
  const int k_end = min(TERMS, k0 + K_CHAIN);
#if PLAIN_OPERANDS
  oclc_terms(acc, MR, NV, A_AT(i, k0), A_AT(i, (k0 + 1)), w, W_STEP, k_end - k0);
  if (!oclc_optimized) w += (k_end - k0) * (W_STEP);
  if (oclc_optimized)
#endif
  for (int k = k0; k < k_end; ++k) {
    VEC x[NV];
    #pragma unroll
    for (int j = 0; j < NV; ++j) x[j] = B_FROM(LOAD(w + j * VW));
#if PREFETCH_DISTANCE > 0
    #pragma unroll
    for (int j = 0; j < NV; j += 16 / VW) oclc_prefetch(w + rows_ahead * PW + j * VW);
#endif
#if NEXT > 0
    #pragma unroll
    for (int j = 0; j < NEXT; j += 16) oclc_prefetch_l2(w + ahead + j);
    ahead -= PW - NEXT;
#endif
    #pragma unroll
    for (int i = 0; i < MR; ++i) {
      const VEC s = A_AT(i, k);
      #pragma unroll
      for (int j = 0; j < NV; ++j) acc[i][j] = MULTIPLY_ADD(s, x[j], acc[i][j], j);
    }
    w += W_STEP;
  }
  if (ENDS_CHAIN) {
    //@include add_chain X=out Y=acc R=MR C=NV
  }
}
