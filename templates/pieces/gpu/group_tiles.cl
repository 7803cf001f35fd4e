// Tiles of BM rows and BN columns, one a group.
//@param SWATH 8 {1..}  tiles of rows that are computed side by side, before the next tile of columns: what they share stays in caches
#define TILE_ROWS BM
#define ROW_TILES ((M + BM - 1) / BM)
#define COLUMN_TILES ((N + BN - 1) / BN)
