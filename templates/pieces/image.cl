// Taps, strides and dilations of a window, and the rows and columns of the padded image that are not padding.
//@param KH 3 {1..} KW 3 {1..} SY 1 {1..} SX 1 {1..} DY 1 {1..} DX 1 {1..}
//@param Y_FIRST 1 {0..} Y_LAST 9 {Y_FIRST..} X_FIRST 1 {0..} X_LAST 9 {X_FIRST..}
//@param OH 9 {1..} OW 9 {1..}  rows and columns of results
