//@include vector_types

// Columns n .. n + VW - 1 of a row of N.
void store_columns(VEC v, __global float* row, int n) {
  if (N % VW == 0 || n + VW <= N) {
    STORE(v, row + n);
  } else {
    float lanes[VW];
    STORE(v, lanes);
    for (int l = 0; n + l < N; ++l) row[n + l] = lanes[l];
  }
}
