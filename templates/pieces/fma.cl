// One loop nest of fused multiply-adds, with A and B where they lie or copied into local memory. What a template has no use for it
// narrows to the default.
//@include gemm_sizes
//@include vectors
//@include tiles
//@param ROWS_FASTEST 1 {0, 1}  1: neighbouring work-items share panels of B (large B); 0: they share rows of A (large A)
//@param K_CHAIN TERMS {1..} TAP_CHAIN TAPS {1..}  longest chain of fma: so many terms, or so many whole taps with K_CHAIN = K
//@param CHAINED ((K_CHAIN < K) | (TAP_CHAIN < TAPS)) {0, 1}  1: chains are added up, which divides the rounding error of long sums
//@param A_TYPE float {float, ushort} A_FROM(v) v {expr} A_STEP 1 {expr}  A's elements in memory, what makes floats of them, their step in k
//@param B_FROM(v) v {expr} B_STEP PW {expr}  what makes floats of B's elements, and the step from a row of a panel to the next
//@param PLAIN_OPERANDS 1 {0, 1}  1: A and B are floats in memory
//@param HALF_LAST 0 {0, 1}  1, for VW = 16: one panel, whose last vector has no more than 8 columns, with which half a vector multiplies
//@param PREFETCH_DISTANCE 0 {0..}  rows of a packed panel by which B is prefetched before its use; 0: never
//@param FIRST_PREFETCH_DISTANCE PREFETCH_DISTANCE {PREFETCH_DISTANCE..}  the same in the row tile that meets a panel first, which nobody has prefetched
//@param NEXT 0 {0..}  floats of a packed panel by which each row of the one before asks for it; 0: not
#define B_PANEL (TAPS * K * PW)
#define B_GROUP ((size_t)PANELS * B_PANEL)
// a * b + sum for vector j of a row of the tile.
#if HALF_LAST
#define MULTIPLY_ADD(a, b, sum, j) ((j) == NV - 1 ? oclc_fma_low(a, b, sum) : fma(a, b, sum))
#else
#define MULTIPLY_ADD(a, b, sum, j) fma(a, b, sum)
#endif
