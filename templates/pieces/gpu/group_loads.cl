// How the work-items of a group load operands.
//@param AV 4 {1, 4} BV 4 {1, 4}  elements of a load
//@param A_ALONG_K 1 {0, 1} B_ALONG_K 0 {0, 1}  1: loads run along k; 0: along m, or along n
//@param N_LOADED N {1.., name, expr}  columns that B has in memory: at least N, a multiple of BV unless B_ALONG_K
//@include floats
#define A_VECTOR FLOATS(AV)
#define B_VECTOR FLOATS(BV)
