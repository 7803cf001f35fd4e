// Attention on a CPU's tile units, by bfloat16 parts of floats, see tiles_amx.cl. A work-item has the keys and values of a group as
// parts in local memory, and goes over blocks of 32 rows: while the unit multiplies a block of queries with all keys, and the shares
// of the block before the last with the values, vectors make shares of the scores in between.
//
// formula   C[g,m,n] = epilogue(sum over k < KEYS of e^(s[k] - max of s) V[g,k,n] / sum of these powers), s[k] = scores(Q[g,m] K[g,k])
// Q         hole A_ELEMENTS: as `v` the 16 values at (m, k .. k + 15). Default: row-major a[(g * ROWS + m) * DEPTH + k].
// K         hole PACK_KEYS fills to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] for all panels of 32 keys, k0 <= k < k_end and
//           j < PW with element k of key min(panel * PW + j, KEYS - 1). Default: b[(g * KEYS + key) * DEPTH + k].
// scores    hole SCORES makes of the 16 sums v from (m, n) on what softmax sees. Default: v / 8.
// V         hole PACK_VALUES fills the same with columns of values. Default: values[(g * KEYS + k) * COLUMNS + n].
// C         hole EPILOGUE stores 16 columns v from (m, n) on. Default: c[(g * ROWS + m) * COLUMNS + n].
// local memory 4 * SPACE bytes: scores and shares of two blocks, parts of keys and of values.
// launch: G * ROW_ITEMS groups of one work-item.
// paper     Rabe, Staats: Self-attention does not need O(n^2) memory, 2021.
//@kernel 1, SPACE
//@param G 1 {1.., name} ROWS 70 {1.., name} KEYS 70 {1..}  groups, rows of each, keys
//@param DEPTH 64 {16..} COLUMNS 64 {1..}  of a query and of a key; of a value
//@param MT 2 {1..}  blocks of rows of a work-item
//@include amx/parts
#define PW 32
#define ROW_ITEMS ((ROWS + MT * 32 - 1) / (MT * 32))
#define DEPTH_STEPS ((DEPTH + 31) / 32)
#define KEY_PANELS ((KEYS + 31) / 32)
#define COLUMN_PANELS ((COLUMNS + 31) / 32)
#define SCORE_CALLS (KEY_PANELS * DEPTH_STEPS)
#define CALLS (SCORE_CALLS + COLUMN_PANELS * KEY_PANELS)
#define B_PANEL (32 * PW + 16)
#define COPIED_PANELS (KEY_PANELS > COLUMN_PANELS ? KEY_PANELS : COLUMN_PANELS)
// Floats of sums, and steps of parts.
#define SUMS (2 * KEY_PANELS * 1024 + 1024 + 64)
#define STEPS (DEPTH_STEPS + 2 * KEY_PANELS + CALLS)
#define SPACE (16 + SUMS + STEPS * STEP / 2 + COPIED_PANELS * B_PANEL)
#define VW 16
#define VEC float16
#define STORE(v, p) oclc_store(v, p)

void attention_amx_tile(const __global float* restrict a, const __global float* restrict b, const __global float* restrict values,
                        __global float* restrict c, int tile, __local float* restrict space) {
  //@lines SIZES
  const int g = tile / ROW_ITEMS;
  const int m_begin = tile % ROW_ITEMS * (MT * 32), m_end = min(ROWS, m_begin + MT * 32), blocks = (m_end - m_begin + 31) / 32;
  __local float* scores = space + (64 - ((size_t)space & 63)) / 4;
  __local float* sums = scores + 2 * KEY_PANELS * 1024;
  __local float* totals = sums + 1024;
  __local ushort* queries = (__local ushort*)(totals + 64);
  __local ushort* shares = queries + DEPTH_STEPS * STEP;
  __local ushort* keys = shares + 2 * KEY_PANELS * STEP;
  __local ushort* columns = keys + SCORE_CALLS * STEP;
  __local float* copy = (__local float*)(columns + COLUMN_PANELS * KEY_PANELS * STEP);
  for (int s = 0; s < DEPTH_STEPS; ++s) {
    const int k0 = s * 32, k_end = min(DEPTH, k0 + 32), panel_begin = 0, panel_end = KEY_PANELS;
    {
      __local float* restrict to = copy;
      //@hole PACK_KEYS
      for (int k = k0; k < k_end; ++k)
        for (int panel = panel_begin; panel < panel_end; ++panel)
          for (int j = 0; j < PW; ++j)
            to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] = b[(size_t)(g * KEYS + min(panel * PW + j, KEYS - 1)) * DEPTH + k];
      //@end
    }
    for (int p = 0; p < KEY_PANELS; ++p)
      oclc_tiles_panel(PRODUCTS, copy + p * B_PANEL, k_end - k0, keys + (p * DEPTH_STEPS + s) * STEP);
  }
  for (int s = 0; s < KEY_PANELS; ++s) {
    const int k0 = s * 32, k_end = min(KEYS, k0 + 32), panel_begin = 0, panel_end = COLUMN_PANELS;
    {
      __local float* restrict to = copy;
      //@hole PACK_VALUES
      for (int k = k0; k < k_end; ++k)
        for (int panel = panel_begin; panel < panel_end; ++panel)
          for (int j = 0; j < PW; ++j)
            to[(panel - panel_begin) * B_PANEL + (k - k0) * PW + j] =
                values[(size_t)(g * KEYS + k) * COLUMNS + min(panel * PW + j, COLUMNS - 1)];
      //@end
    }
    for (int p = 0; p < COLUMN_PANELS; ++p)
      oclc_tiles_panel(PRODUCTS, copy + p * B_PANEL, k_end - k0, columns + (p * KEY_PANELS + s) * STEP);
  }
  oclc_tiles_open();
  for (int block = 0; block < blocks + 2; ++block) {
    const bool has_queries = block < blocks, has_scores = block > 0 && block <= blocks, has_shares = block > 1;
    for (int r = 0; has_queries && r < 32; ++r) {
      // Surplus rows of the last block repeat row ROWS - 1 and are not stored.
      const int m = min(m_begin + block * 32 + r, ROWS - 1);
      for (int s = 0; s < DEPTH_STEPS; ++s) {
        float16 half_line[2];
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int k_first = s * 32 + h * 16;
          half_line[h] = 0;
          if (DEPTH % 32 == 0 || k_first < DEPTH) {
            // The last vector overlaps its neighbour instead of reading past the row.
            const int k = DEPTH % 16 == 0 ? k_first : min(k_first, DEPTH - 16);
            float16 v;
            //@hole A_ELEMENTS
            v = vload16(0, a + (size_t)(g * ROWS + m) * DEPTH + k);
            //@end
            half_line[h] = DEPTH % 16 == 0 || k == k_first ? v : oclc_first_lanes_after(v, k_first - k);
          }
        }
        SPLIT(half_line[0], half_line[1], queries + s * STEP, r, 1024);
      }
    }
    int row = has_scores ? 0 : 32;
    for (int call = 0; call < CALLS; ++call) {
      // A CPU has one space of addresses.
      if (call < SCORE_CALLS && has_queries) {
        const int panel = call / DEPTH_STEPS, s = call % DEPTH_STEPS;
        const __global ushort* w = (const __global ushort*)(size_t)(keys + call * STEP);
        __local float* to = scores + ((block & 1) * KEY_PANELS + panel) * 1024;
        if (s == 0) oclc_tiles_begin(to, 1);
        MULTIPLY(to, queries + s * STEP, 0, 1, 1024, STEP, w, 1, 0, w);
        if (s + 1 == DEPTH_STEPS) oclc_tiles_end(to);
      }
      if (call >= SCORE_CALLS && has_shares) {
        const int at = call - SCORE_CALLS, panel = at / KEY_PANELS, s = at % KEY_PANELS;
        const __global ushort* w = (const __global ushort*)(size_t)(columns + at * STEP);
        if (s == 0) oclc_tiles_begin(sums, 1);
        MULTIPLY(sums, shares + ((block & 1) * KEY_PANELS + s) * STEP, 0, 1, 1024, STEP, w, 1, 0, w);
        if (s + 1 == KEY_PANELS) {
          oclc_tiles_end(sums);
          const int m0 = m_begin + (block - 2) * 32, i_end = min(32, m_end - m0);
          for (int i = 0; i < i_end; ++i) {
            const int m = m0 + i;
            #pragma unroll
            for (int j = 0; j < 2; ++j) {
              const int n = panel * PW + j * 16;
              if (COLUMNS % 32 != 0 && n >= COLUMNS) break;
              float16 v = vload16(i * 2 + j, sums) * totals[(block & 1) * 32 + i];
              //@hole EPILOGUE
              float lanes[16];
              vstore16(v, 0, lanes);
              for (int l = 0; l < 16 && n + l < COLUMNS; ++l) c[(size_t)(g * ROWS + m) * COLUMNS + n + l] = lanes[l];
              //@end
            }
          }
        }
      }
      for (const int row_end = 32 * (call + 1) / CALLS; row < row_end; ++row) {
        const int m = min(m_begin + (block - 1) * 32 + row, ROWS - 1), other = block - 1 & 1;
        __local float* of_row = scores + other * KEY_PANELS * 1024 + row * PW;
        // What is not a number is left out here: it is in the sum of the row.
        float16 most[2] = {(float16)(-INFINITY), (float16)(-INFINITY)};
        for (int panel = 0; panel < KEY_PANELS; ++panel)
          #pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int n = panel * PW + j * 16;
            float16 v = (float16)(-INFINITY);
            if (KEYS % 32 == 0 || n < KEYS) {
              v = vload16(0, of_row + panel * 1024 + j * 16);
              //@hole SCORES
              v = v * 0.125f;
              //@end
              if (KEYS % 16 != 0 && n + 16 > KEYS)
                v = select((float16)(-INFINITY), v, (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < KEYS - n);
            }
            oclc_store(v, of_row + panel * 1024 + j * 16);
            most[j] = v > most[j] ? v : most[j];
          }
        const float16 more = most[1] > most[0] ? most[1] : most[0];
        const float top = oclc_lanes_larger(more.hi > more.lo ? more.hi : more.lo);
        // Where all is -inf, differences would be NaN before there is a sum.
        const float16 base = (float16)(top == -INFINITY ? 0.0f : top);
        float16 total = 0;
        for (int panel = 0; panel < KEY_PANELS; ++panel) {
          const float16 x = oclc_exp(vload16(0, of_row + panel * 1024) - base),
                        y = oclc_exp(vload16(0, of_row + panel * 1024 + 16) - base);
          total += x + y;
          SPLIT(x, y, shares + (other * KEY_PANELS + panel) * STEP, row, 1024);
        }
        totals[other * 32 + row] = 1.0f / oclc_lanes_sum(total);
      }
    }
  }
  oclc_tiles_close();
}
