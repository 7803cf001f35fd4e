// The exponent that the sums of rows lane / 4 and lane / 4 + 8 are scaled by, elements of the next step, and the halves of two: the
// matrix unit reads those of one while those of the next are made, and has the next before it is done.
uint held[2] = {0, 0};
float up[2] = {0.0f, 0.0f};
float4 ahead[4];
uint4 first[2], second[2];
int before = 0;
for (int pair = -1; pair < STEPS; pair += 2) {
  #pragma unroll
  for (int odd = 0; odd < 2; ++odd) {
    const int step = pair + odd, now = stage, is_there = step >= 0 && step < STEPS;
    if (is_there) {
      if (step == 0 || oclc_warp_any(oclc_exceeds(oclc_largest_bits(ahead[0], ahead[1]), held[0]) ||
                                     oclc_exceeds(oclc_largest_bits(ahead[2], ahead[3]), held[1]))) {
        float rescale[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint exponent = oclc_largest_exponent(ahead[2 * i], ahead[2 * i + 1]);
          const uint hold = exponent > held[i] ? exponent + HEADROOM : held[i];
          rescale[i] = oclc_rescale(held[i], hold);
          held[i] = hold;
          up[i] = oclc_scale_up(hold);
        }
        if (step > 0) {
          MULTIPLIED(out[0]);
          #pragma unroll
          for (int i = 0; i < BN / 2; ++i) out[0][i] *= rescale[i / 2 % 2];
        }
      }
      first[odd] = oclc_halves(ahead[0] * up[0], ahead[2] * up[1]);
      second[odd] = oclc_halves(ahead[1] * up[0], ahead[3] * up[1]);
      if (++stage == STAGES) stage = 0, phase ^= 1;
    }
    if (step + 1 < STEPS) {
      oclc_barrier_wait(loaded + stage * 8, phase);
      const __local float* restrict from_a = space + stage * STAGE;
      ahead[0] = QUAD(from_a + lane_at);
      ahead[1] = QUAD(from_a + LATER(lane_at));
      ahead[2] = QUAD(from_a + BELOW(lane_at));
      ahead[3] = QUAD(from_a + BELOW(LATER(lane_at)));
    }
    if (is_there) {
      const ulong from_b = tile_b + now * (STAGE * 4 / 16);
      oclc_wgmma_begin();
      MULTIPLY(out[0], first[odd], from_b);
      MULTIPLY(out[0], second[odd], from_b + 2);
      oclc_wgmma_end();
      if (step > 0) {
        oclc_wgmma_wait_but_last();
        // One work-item speaks for its warp: all of them have read what the next copy overwrites.
        oclc_warp_barrier();
        if (lane == 0) oclc_barrier_arrive(used + before * 8);
      }
      before = now;
    }
  }
}
MULTIPLIED(out[0]);
oclc_warp_barrier();
if (lane == 0) oclc_barrier_arrive(used + before * 8);
const float down0 = oclc_scale_down(held[0], 0), down8 = oclc_scale_down(held[1], 0);
#pragma unroll
for (int i = 0; i < BN / 2; ++i) out[0][i] *= i % 4 < 2 ? down0 : down8;
