// 16 elements of a row from k_first on, zeros behind the last.
if (K % STEP_TERMS == 0 || k_first < K) {
#if PV == 16
  // The last vector overlaps its neighbour instead of reading past the row.
  const int k = K % 16 == 0 ? k_first : min(k_first, K - 16);
  VALUES v;
  //@hole A_ELEMENTS
  v = vload16(0, a + ((size_t)(g * M + m) * TAPS + tap) * K + k);
  //@end
  SIXTEEN = K % 16 == 0 || k == k_first ? v : oclc_first_lanes_after(v, k_first - k);
#else
  float lanes[16];
  for (int l = 0; l < 16; ++l) {
    float v = 0.0f;
    const int k = k_first + l;
    if (K % 16 == 0 || k < K) {
      //@hole A_ELEMENTS
      v = a[((size_t)(g * M + m) * TAPS + tap) * K + k];
      //@end
    }
    lanes[l] = v;
  }
  SIXTEEN = vload16(0, lanes);
#endif
}
