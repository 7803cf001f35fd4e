//@hole PACK_B
for (int k = k0; k < k_end; ++k) {
  const __global float* from = b + ((size_t)(g * TAPS + tap) * K + k) * N;
  for (int panel = panel_begin; panel < panel_end; ++panel)
    for (int j = 0; j < PW; ++j)
      to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] = from[min(panel * PW + j, N - 1)];
}
//@end
