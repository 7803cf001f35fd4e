//@with X x R r L P  operand X, its rows or columns r of R, of which L lie in memory; its elements, by default at P
#pragma unroll
for (int i = 0; i < $X_LOADS; ++i) {
  const int at = item + i * ITEMS;
#if $X_ALONG_K
  const int in_k = at % (BK / $XV) * $XV;
  const int $r = min($r0 + at / (BK / $XV), $R - 1);
#else
  const int in_k = at / (B$R / $XV);
  const int $r = min($r0 + at % (B$R / $XV) * $XV, $L - $XV);
#endif
  $X_VECTOR v = 0.0f;
  if (($X_COUNT % ITEMS == 0 || at < $X_COUNT) && (!RAGGED || at_k + in_k < DEPTH)) {
    //@include gpu/term_of_step
    //@hole $X_ELEMENTS
    v = vload4(0, $P);
    //@end
  }
  next_$x[i] = v;
}
