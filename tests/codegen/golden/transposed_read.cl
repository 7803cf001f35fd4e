// k_exp_transpose: transpose exp slice
// nodes     exp, every second, backwards
// x0        x
// y0        y
// axes      i0<N i1<20 i2<3
// cost      600*N flops, 480*N bytes
// launch    (6*N + 3124) / 3125 groups of 1; 31250 rows x 1 a tile
void k_exp_transpose_tile(__global const float* x0, __global float* y0, const long dim_N, const long tile) {
  const long row_end = min((tile) * 31250 + 31250, (long)(60*dim_N));
  for (long row = (tile) * 31250; row < row_end; ++row) {
    const long i0 = row / (60);
    const long i1 = row / (3) % (20);
    const long i2 = row % (3);
    {
      const float v0 = x0[120*i0 - 2*i1 + 40*i2 + 39];
      y0[60*i0 + 3*i1 + i2] = exp(v0);
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void k_exp_transpose(__global const float* x0, const long x0_at, __global float* y0, const long y0_at, const long dim_N) {
  k_exp_transpose_tile(x0 + x0_at, y0 + y0_at, dim_N, get_group_id(0));
}
