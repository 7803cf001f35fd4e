// Panels of 32 columns of B, of which a work-item has NP.
//@param NP 1 {1..}
#define PANELS ((N + 31) / 32)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)

// Columns n .. n + 15 of a row of N.
void store_columns(float16 v, __global float* row, int n) {
  float lanes[16];
  vstore16(v, 0, lanes);
  for (int l = 0; l < 16 && n + l < N; ++l) row[n + l] = lanes[l];
}
