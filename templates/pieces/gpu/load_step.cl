//@include gpu/load_operand X=A x=a R=M r=m L=M P="a + (size_t)(g * M + m) * K + k"
//@include gpu/load_operand X=B x=b R=N r=n L=N_LOADED P="b + (size_t)(g * K + k) * N + n"
at_k += BK;
if (!FLAT && at_k >= K) at_k = 0, ++at_tap;
