//@hole C_ROW
__global float* c_row = c + (size_t)(g * M + m) * N;
//@end
