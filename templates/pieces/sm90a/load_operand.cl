//@with X x R r L P  as gpu/load_operand, by the loaders, whose stores to local memory do not meet in a bank
#pragma unroll
for (int i = 0; i < $X_LOADS; ++i) {
  const int at = loader + i * LOADERS;
#if $X_ALONG_K
  const int in_k = at % (BK / $XV) * $XV;
  const int $r = min($r0 + at / (BK / $XV), $R - 1);
#else
  const int in_k = at / 32 % 4 * 8 + at % 8;
  const int $r = min($r0 + (at / 128 * 4 + at / 8 % 4) * $XV, $L - $XV);
#endif
  $X_VECTOR v = 0.0f;
  if (!RAGGED || at_k + in_k < DEPTH) {
    //@include gpu/term_of_step
    //@hole $X_ELEMENTS
    v = vload4(0, $P);
    //@end
  }
  next_$x[turn][i] = v;
}
