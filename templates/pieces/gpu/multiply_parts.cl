//@with A S I  d[I] = A, whose rest is S, times part[I]
uint2 small[SIDE];
#pragma unroll
for (int $I = 0; $I < SIDE; ++$I) {
  const float2 number = as_float2(part[$I]);
  part[$I] = (part[$I] + 0x1000u) & 0xffffe000u;
  small[$I] = as_uint2(number - as_float2(part[$I]));
}
// Sums that do not wait for one another stand side by side; the largest products come last.
float d[SIDE][4];
#pragma unroll
for (int $I = 0; $I < SIDE; ++$I) oclc_mma_first(d[$I], $S, part[$I].x, part[$I].y);
#pragma unroll
for (int $I = 0; $I < SIDE; ++$I) oclc_mma(d[$I], $A, small[$I].x, small[$I].y);
#pragma unroll
for (int $I = 0; $I < SIDE; ++$I) oclc_mma(d[$I], $A, part[$I].x, part[$I].y);
