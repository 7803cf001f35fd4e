//@with X S C  C numbers X become TF32, what rounding takes from them S
#pragma unroll
for (int q = 0; q < $C; ++q) {
  const uint big = ($X[q] + 0x1000u) & 0xffffe000u;
  $S[q] = as_uint(as_float($X[q]) - as_float(big)), $X[q] = big;
}
