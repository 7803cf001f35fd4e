const int g = tile / STRIPS;
//@lines GROUP
const int n_begin = tile % STRIPS * STRIP;
const int n_end = min(N, n_begin + STRIP);
__local float* restrict sums = block + A_FLOATS;
