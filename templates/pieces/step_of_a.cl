const __global float* base;
int step_at = 0;
int4 step_edges = 0;
//@hole A_STEP
base = a;
step_at = k;
//@end
