oclc_tiles_open();
// Panels, or the steps of some taps of one, that all blocks of positions multiply. Beside each tap some rows of the block before
// go through the epilogue: while the unit multiplies, vectors are computed and stored.
const int blocks = (y_count * PITCH + BLOCK_LINES - 1) / BLOCK_LINES, first_piece = panel_begin * PIECES,
          all = (panel_end - panel_begin) * PIECES * blocks;
for (int at = 0; at <= all; ++at) {
  const int piece = first_piece + at / blocks, panel = piece / PIECES, block = at % blocks, p0 = block * BLOCK_LINES;
  const int tap_begin = piece % PIECES * AT_ONCE, tap_end = at == all ? tap_begin + 1 : tap_begin + AT_ONCE;
  const __global WEIGHT* w;
#if HAS_UNITS
  const __global float* column_units;
#endif
  //@hole B_POINTER
  w = b + (size_t)panel * (STEPS * STEP_ELEMENTS);
#if HAS_UNITS
  column_units = units;
#endif
  //@end
  w += tap_begin * (TAP_STEPS * STEP_ELEMENTS);
  for (int tap = tap_begin; tap < tap_end; ++tap, w += TAP_STEPS * STEP_ELEMENTS) {
    if (at < all) {
      __local SUM_TYPE* to = sums + SUMS_OF(at, block, panel) * SUM;
      const int part = block - (piece == first_piece),
                share = oclc_tiles_share(part, SPREAD, piece + 1 == panel_end * PIECES);
      const int ky = tap / KW, kx = tap % KW;
      if (tap == tap_begin) BEGIN(to, tap == 0);
      MULTIPLY_TAP;
      if (tap + 1 == tap_end) END(to);
    }
    const int before = at - 1, stored_piece = first_piece + before / blocks, stored = before % blocks;
    if (before < 0 || stored_piece % PIECES < PIECES - 1) continue;
    const int stored_panel = stored_piece / PIECES, i_begin = BLOCK_LINES * (tap - tap_begin) / (tap_end - tap_begin),
              i_end = BLOCK_LINES * (tap - tap_begin + 1) / (tap_end - tap_begin);
    const __local SUM_TYPE* from = sums + SUMS_OF(before, stored, stored_panel) * SUM;
    int y = (stored * BLOCK_LINES + i_begin) / PITCH, x = (stored * BLOCK_LINES + i_begin) % PITCH;
    for (int i = i_begin; i < i_end && y < y_count; ++i) {
      if (x < OW) {
        const INDEX m = ((INDEX)image * OH + y_begin + y) * OW + x;
        //@include amx/two_vectors
      }
      if (++x == PITCH) x = 0, ++y;
    }
  }
}
oclc_tiles_close();
