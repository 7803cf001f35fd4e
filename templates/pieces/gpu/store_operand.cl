//@with X x R  what was loaded of operand X, whose rows or columns are R, to to_x, k after k
#pragma unroll
for (int i = 0; i < $X_LOADS; ++i) {
  const int at = item + i * ITEMS;
  if ($X_COUNT % ITEMS != 0 && at >= $X_COUNT) break;
#if $X_ALONG_K
  __local float* to = to_$x + at % (BK / $XV) * $XV * $X_PITCH + at / (BK / $XV);
#if $XV == 4
  to[0] = next_$x[i].x, to[$X_PITCH] = next_$x[i].y, to[2 * $X_PITCH] = next_$x[i].z, to[3 * $X_PITCH] = next_$x[i].w;
#else
  to[0] = next_$x[i];
#endif
#else
  *(__local $X_VECTOR*)(to_$x + at / (B$R / $XV) * $X_PITCH + at % (B$R / $XV) * $XV) = next_$x[i];
#endif
}
