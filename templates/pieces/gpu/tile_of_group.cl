// The group's tile: SWATH tiles of rows side by side, before the next tile of columns.
const int g = tile / (ROW_TILES * COLUMN_TILES);
const int place = tile % (ROW_TILES * COLUMN_TILES);
//@lines GROUP
const int swath = place / (SWATH * COLUMN_TILES);
const int swath_rows = min(ROW_TILES - swath * SWATH, SWATH);
const int within = place - swath * (SWATH * COLUMN_TILES);
const int m0 = (swath * SWATH + within % swath_rows) * TILE_ROWS;
