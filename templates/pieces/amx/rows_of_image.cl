const int image = tile / (ROW_BLOCKS * PANEL_BLOCKS);
const int row_block = tile % (ROW_BLOCKS * PANEL_BLOCKS) / PANEL_BLOCKS;
const int panel_block = tile % PANEL_BLOCKS;
const int panel_begin = panel_block * NP, panel_end = min(PANELS, panel_begin + NP);
