//@include panels
//@param MT 1 {1..} NP 1 {1..}  row tiles and panels of a work-item
#define ROW_TILES ((M + MR - 1) / MR)
#define ROW_BLOCKS ((ROW_TILES + MT - 1) / MT)
#define PANEL_BLOCKS ((PANELS + NP - 1) / NP)
