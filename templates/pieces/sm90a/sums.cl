oclc_warp_barrier();
#pragma unroll
for (int i = 0; i < 32; i += 2)
  *(__local float2*)(rows + (lane / 4 + i / 2 % 2 * 8) * PITCH + i / 4 * 8 + lane % 4 * 2) =
      (float2)(SUMS[c0 / 2 + i], SUMS[c0 / 2 + i + 1]);
oclc_warp_barrier();
