//@param G 1 {1.., name} ROWS 128 {1.., name} KEYS 128 {1.., name}  groups, rows and keys: literals, or names that the hole SIZES declares
//@param DEPTH 64 {1..128} COLUMNS 64 {1..128}  extents of k and c: literals
//@param WARPS 4 {1..}  sub-groups of 32 work-items and 16 rows each
#define ITEMS (WARPS * 32)
#define BM (WARPS * 16)
#define ROW_TILES ((ROWS + BM - 1) / BM)
