// Few rows and a strip of STRIP columns of a work-item, which copies KC terms of A.
//@include gemm_sizes
//@include vectors
//@include copy_vectors
#define ROWS ((M + MR - 1) / MR * MR)
#define STRIPS ((N + STRIP - 1) / STRIP)
#define A_FLOATS (ROWS * KC)
