//@hole A_POINTER
#pragma unroll
for (int i = 0; i < MR; ++i) p[i] = row[i];
//@end
