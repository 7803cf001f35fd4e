// Blocks of rows and panels of columns of a product; a work-item has MT blocks.
//@param MT 1 {1..}
#define STEPS (TAPS * TAP_STEPS)
#define ROW_BLOCKS ((M + MT * BLOCK_ROWS - 1) / (MT * BLOCK_ROWS))
// The first of the blocks of rows of a work-item: they have equal numbers, or the last ones, whose rows may be fewer, one more.
#define FIRST_BLOCK(row_block) ((int)((long)(row_block) * ((M + BLOCK_ROWS - 1) / BLOCK_ROWS) / ROW_BLOCKS))
// Stretches of a block's sums, beside each of which some rows of the block before go through the epilogue: while the unit multiplies,
// vectors are computed and stored.
#define PIECES 16
//@include amx/spread
#define SPREAD SPREAD_OF(MT)
