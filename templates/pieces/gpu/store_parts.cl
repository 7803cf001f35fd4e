//@with X x R  the parts of what was loaded of operand X, whose rows or columns are R, to to_x, row after row
#pragma unroll
for (int i = 0; i < $X_LOADS; ++i) {
  const int at = item + i * ITEMS;
  if ($X_COUNT % ITEMS != 0 && at >= $X_COUNT) break;
  #pragma unroll
  for (int p = 0; p < PARTS; ++p) {
#if $XV == 4
    const ushort4 part = TO_PART(next_$x[i]);
#else
    const ushort part = TO_PART(next_$x[i]);
#endif
    next_$x[i] -= FROM_PART(part);
#if $XV == 4
#if $X_ALONG_K
    vstore4(part, 0, to_$x + p * $X_PLANE + at / (BK / $XV) * PITCH + at % (BK / $XV) * $XV);
#else
    __local ushort* to = to_$x + p * $X_PLANE + at % (B$R / $XV) * ($XV * PITCH) + at / (B$R / $XV);
    to[0] = part.s0, to[PITCH] = part.s1, to[2 * PITCH] = part.s2, to[3 * PITCH] = part.s3;
#endif
#else
    to_$x[p * $X_PLANE + ($X_ALONG_K ? at / BK * PITCH + at % BK : at % B$R * PITCH + at / B$R)] = part;
#endif
  }
}
