// The window of an image that the output rows of a work-item read, as lines of channels, BLOCK_LINES of which are a block of sums.
//@param IMAGES 1 {1.., name} K 48 {16..} N 48 {1..}  images, channels, features
//@include image
//@param PITCH 10 {OW..}  lines of a row of the window
//@param ROWS 4 {1..}  output rows of a work-item
//@param AT_ONCE TAPS {1..TAPS}  taps whose steps of a panel all blocks multiply before they go on: TAPS, or a divisor of it for panels of which
//                    two would not stay in the second-level cache
//@param INDEX int {int, long}  type of indices into C
//@include amx/columns
#define TAPS (KH * KW)
#define STEPS (TAPS * TAP_STEPS)
#define PIECES (TAPS / AT_ONCE)
#define PIECE (AT_ONCE * TAP_STEPS * STEP_ELEMENTS)
#define ROW_BLOCKS ((OH + ROWS - 1) / ROWS)
#define REACH ((KH - 1) * DY / SY * PITCH + (KW - 1) * DX / SX)
#define BLOCKS ((ROWS * PITCH + BLOCK_LINES - 1) / BLOCK_LINES)
#define PHASE_LINES (BLOCKS * BLOCK_LINES + REACH)
#define LINES (SY * SX * PHASE_LINES)
//@include amx/spread
#define SPREAD SPREAD_OF(BLOCKS)
#define SUMS (PIECES > 1 ? BLOCKS : 2)
// Where the sums of the `at`-th block that is multiplied lie. The last rows of an image may be one block.
#define SUMS_OF(at, block, panel) (PIECES == 1 ? (at) & 1 : blocks == 1 ? (panel) & 1 : (block))
// The line of a window that tap (ky, kx) meets for its position 0.
#define TAP_LINE (ky * DY % SY * SX + kx * DX % SX) * PHASE_LINES + ky * DY / SY * PITCH + kx * DX / SX
