// Products of floats on the tile units of x86 processors (AMX), each float as the sum of bfloat16 parts; reached by inline assembly.
// Three bodies: with OCLC_AMX instructions; with OCLC_AMX_EMULATED plain C that rounds as the unit does, bit for bit but for
// denormal numbers, which the unit takes for 0; else fused multiply-adds on floats, for other processors.
//
// parts     x = b1 + b2 + b3 by rounding to nearest: exact for |x| in [1e-30, 3.39e38]; infinities and larger values give NaN.
//           6 products b1b1 b1b2 b2b1 b2b2 b1b3 b3b1, 3 products b1b1 b1b2 b2b1, 1 product b1b1, each sum in order of size.
// step      32 neighbours in k. A part of a line: with several parts element 2 * i is k = i and element 2 * i + 1 is k = i + 16,
//           one part has its elements in order.
// A         a step of L lines: [part][L][32]; without a unit [L][32] floats, or one part as above.
// B         a step of 32 columns: [part][2][16 i][16 columns][elements 2 * i and 2 * i + 1 of k].
// sums      [32 lines][32 columns] floats in local memory, at a multiple of 64 bytes.
// launch    none: helper functions
// local     none
// paper     Henry, Tang, Heinecke: Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations, 2019.

//@provides oclc_first_lanes_after
// Lanes n, n + 1, ... of v, then zeros.
#define OCLC_FIRST_LANES_AFTER(T) \
  T##16 __attribute__((overloadable)) oclc_first_lanes_after(T##16 v, int n) { \
    T lanes[32]; \
    oclc_store(v, lanes); \
    oclc_store((T##16)(0), lanes + 16); \
    return vload16(0, lanes + n); \
  }
OCLC_FIRST_LANES_AFTER(float) OCLC_FIRST_LANES_AFTER(ushort)

//@provides oclc_bf16_nearest oclc_bf16_pair OCLC_BF16_TOP
// The nearest bfloat16, halves away from 0, as a float; NaN stays NaN.
#define OCLC_BF16_TOP 0xffff0000u
uint16 oclc_bf16_nearest(float16 x) {
  return select(as_uint16(x) + 0x8000u, as_uint16(x) | 0x400000u, isnotequal(x, x)) & OCLC_BF16_TOP;
}
// Both cut to bfloat16, as one part of line `line`. The address is a multiple of 64: one store, where vstore16 may be several.
void oclc_bf16_pair(uint16 x, uint16 y, __local ushort* part, int line) {
  ((__local uint16*)part)[line] = (x >> 16) | (y & OCLC_BF16_TOP);
}

//@provides oclc_split_1
// Line `line` of a step at `step` from its 32 elements, the first 16 in x: floats, or one part of them as it lies in memory.
void __attribute__((overloadable)) oclc_split_1(ushort16 x, ushort16 y, __local ushort* step, int line, int pitch) {
  __local ushort16* to = (__local ushort16*)step + 2 * line;
  to[0] = x;
  to[1] = y;
}
void __attribute__((overloadable)) oclc_split_1(float16 x, float16 y, __local ushort* step, int line, int pitch) {
#ifdef OCLC_AMX
  uint16 both;
  __asm__("vcvtne2ps2bf16 %2,%1,%0" : "=v"(both) : "v"(y), "v"(x));
  ((__local uint16*)step)[line] = both;
#else
  oclc_split_1(oclc_to_bf16(x), oclc_to_bf16(y), step, line, pitch);
#endif
}

//@provides oclc_parts_1 oclc_parts_3 oclc_parts_6
// Pairs (x[i], y[i]) of 16 neighbours as line `line` of each part that so many products take, which are `pitch` ushorts apart.
void oclc_parts_1(float16 x, float16 y, __local ushort* part, int line, int pitch) {
  ((__local uint16*)part)[line] = convert_uint16(oclc_to_bf16(x)) | convert_uint16(oclc_to_bf16(y)) << 16;
}
void oclc_parts_3(float16 x, float16 y, __local ushort* step, int line, int pitch) {
  const uint16 p = oclc_bf16_nearest(x), q = oclc_bf16_nearest(y);
  oclc_bf16_pair(p, q, step, line);
  x -= as_float16(p), y -= as_float16(q);
  oclc_bf16_pair(as_uint16(x) + 0x8000u, as_uint16(y) + 0x8000u, step + pitch, line);
}
void oclc_parts_6(float16 x, float16 y, __local ushort* step, int line, int pitch) {
  // A NaN that a rounding lost is still there in the last part, which is not rounded: it is exact.
  uint16 p = (as_uint16(x) + 0x8000u) & OCLC_BF16_TOP, q = (as_uint16(y) + 0x8000u) & OCLC_BF16_TOP;
  oclc_bf16_pair(p, q, step, line);
  x -= as_float16(p), y -= as_float16(q);
  p = (as_uint16(x) + 0x8000u) & OCLC_BF16_TOP, q = (as_uint16(y) + 0x8000u) & OCLC_BF16_TOP;
  oclc_bf16_pair(p, q, step + pitch, line);
  x -= as_float16(p), y -= as_float16(q);
  oclc_bf16_pair(as_uint16(x), as_uint16(y), step + 2 * pitch, line);
}

//@provides oclc_split_3 oclc_split_6
// Line `line` of a step at `step` from its 32 elements, the first 16 in x. Parts are `pitch` ushorts apart.
#if defined(OCLC_AMX) || defined(OCLC_AMX_EMULATED)
void oclc_split_3(float16 x, float16 y, __local ushort* step, int line, int pitch) { oclc_parts_3(x, y, step, line, pitch); }
void oclc_split_6(float16 x, float16 y, __local ushort* step, int line, int pitch) { oclc_parts_6(x, y, step, line, pitch); }
#else
void oclc_split_3(float16 x, float16 y, __local ushort* step, int line, int pitch) {
  __local float16* to = (__local float16*)step + 2 * line;
  to[0] = x;
  to[1] = y;
}
void oclc_split_6(float16 x, float16 y, __local ushort* step, int line, int pitch) { oclc_split_3(x, y, step, line, pitch); }
#endif

//@provides oclc_tiles_panel
// A step of B for so many products from `terms` terms at `from`, of 32 floats each, behind which zeros are written up to 32.
void oclc_tiles_panel(int products, __local float* from, int terms, __local ushort* step) {
  for (int t = terms; t < 32; ++t) {
    oclc_store((float16)(0), from + t * 32);
    oclc_store((float16)(0), from + t * 32 + 16);
  }
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 16; ++i) {
      const float16 x = vload16(0, from + (products == 1 ? 2 * i : i) * 32 + h * 16),
                    y = vload16(0, from + (products == 1 ? 2 * i + 1 : i + 16) * 32 + h * 16);
      if (products == 1)
        oclc_parts_1(x, y, step + h * 512, i, 1024);
      else if (products == 3)
        oclc_parts_3(x, y, step + h * 512, i, 1024);
      else
        oclc_parts_6(x, y, step + h * 512, i, 1024);
    }
}

//@provides oclc_tiles_open oclc_tiles_close oclc_tiles_begin oclc_tiles_end
// Around all use of the unit by a work-item.
void oclc_tiles_open(void);
void oclc_tiles_close(void);
// Around a sum: from 0 if `first`, else on from what the last end left.
void oclc_tiles_begin(__local float* sums, int first);
void oclc_tiles_end(__local float* sums);
#ifdef OCLC_AMX
// Palette 1, eight tiles of 16 rows of 64 bytes.
__constant uchar oclc_tile_shapes[64] __attribute__((aligned(64))) = {
    1,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0,
    0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0};
void oclc_tiles_open(void) { __asm__ volatile("ldtilecfg (%0)" ::"r"(oclc_tile_shapes) : "memory"); }
void oclc_tiles_close(void) { __asm__ volatile("tilerelease" ::: "memory"); }
void oclc_tiles_begin(__local float* sums, int first) {
  if (first)
    __asm__ volatile("tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3" ::: "memory");
  else
    __asm__ volatile(
        "tileloadd (%0,%1,1),%%tmm0\n tileloadd 64(%0,%1,1),%%tmm1\n tileloadd 2048(%0,%1,1),%%tmm2\n"
        "tileloadd 2112(%0,%1,1),%%tmm3" ::"r"(sums), "r"(128L) : "memory");
}
void oclc_tiles_end(__local float* sums) {
  __asm__ volatile(
      "tilestored %%tmm0,(%0,%1,1)\n tilestored %%tmm1,64(%0,%1,1)\n tilestored %%tmm2,2048(%0,%1,1)\n"
      "tilestored %%tmm3,2112(%0,%1,1)" ::"r"(sums), "r"(128L) : "memory");
}
#else
void oclc_tiles_open(void) {}
void oclc_tiles_close(void) {}
void oclc_tiles_begin(__local float* sums, int first) {
  if (first)
    for (int i = 0; i < 64; ++i) ((__local float16*)sums)[i] = 0;
}
void oclc_tiles_end(__local float* sums) {}
#endif

//@provides OCLC_TILE_A OCLC_TILE_B OCLC_TILE_DOT OCLC_TILE_BY_SHARE
#ifdef OCLC_AMX
#define OCLC_TILE_A(t, p) "tileloadd (%[" #p "],%[as],1),%%tmm" #t "\n"
#define OCLC_TILE_B(t, at) "tileloadd " #at "(%[b],%[bs],1),%%tmm" #t "\n"
#define OCLC_TILE_DOT(c, a, b) "tdpbf16ps %%tmm" #b ",%%tmm" #a ",%%tmm" #c "\n"
// Asked for beside a KiB of B: so many lines.
#define OCLC_TILE_SOON_0
#define OCLC_TILE_SOON_1 "prefetcht1 (%[soon])\n add $64,%[soon]\n"
#define OCLC_TILE_SOON_2 "prefetcht1 (%[soon])\n prefetcht1 64(%[soon])\n add $128,%[soon]\n"
#define OCLC_TILE_SOON_4 \
  "prefetcht1 (%[soon])\n prefetcht1 64(%[soon])\n prefetcht1 128(%[soon])\n prefetcht1 192(%[soon])\n add $256,%[soon]\n"
#define OCLC_TILE_SOON_8 OCLC_TILE_SOON_4 OCLC_TILE_SOON_4
#define OCLC_TILE_SOON_16 OCLC_TILE_SOON_8 OCLC_TILE_SOON_8
#define OCLC_TILE_BY_SHARE(STEPS) \
  switch (share) { \
    case 0: STEPS(OCLC_TILE_SOON_0); break; \
    case 1: STEPS(OCLC_TILE_SOON_1); break; \
    case 2: STEPS(OCLC_TILE_SOON_2); break; \
    case 4: STEPS(OCLC_TILE_SOON_4); break; \
    case 8: STEPS(OCLC_TILE_SOON_8); break; \
    default: STEPS(OCLC_TILE_SOON_16); \
  }
#endif

//@provides oclc_tiles_share oclc_tiles_soon
// Which of the blocks of lines that a work-item multiplies with a panel of B, one after another, asks for what: the first block of the
// first panel for that panel, 3 KiB ahead; the others, `spread` of them (1, 2, 4, 8 or 16), each for a part of the next panel,
// so that it comes to the second-level cache while this one is multiplied. `block` counts from -1 in the first panel, else from 0.
int oclc_tiles_share(int block, int spread, int last_panel) {
  return block < 0 ? 16 : block < spread && !last_panel ? 16 / spread : 0;
}
// From the panel's step that is multiplied: `panel` ushorts to the same step of the next panel, of which `done` came before in this
// block's sum of `all`.
const __global ushort* oclc_tiles_soon(const __global ushort* b, int block, int spread, size_t panel, int done, int all) {
  return block < 0 ? b + 1536 : b - done + panel + (block * all + done) / spread;
}

//@provides oclc_tiles_times
// sums += A * B over n steps by `products` products; A's lines `first` + i * `lines`, i < 32, of steps of `pitch` ushorts a part
// that stand `next` ushorts apart; steps of B one after another. What oclc_tiles_multiply_* do without a unit. With it they ask for
// memory at `soon`, `share` lines of 64 bytes (0, 1, 2, 4, 8 or 16) for each KiB of B.
#ifdef OCLC_AMX_EMULATED
void oclc_tiles_dot(__local float* sums, const __local ushort* a, int lines, const __global ushort* b) {
  for (int i = 0; i < 32; ++i)
    for (int h = 0; h < 2; ++h) {
      float16 even = 0, odd = 0;
      for (int k = 0; k < 16; ++k) {
        const uint16 pair = vload16(k, (const __global uint*)(b + h * 512));
        even = fma((float16)(as_float((uint)a[i * lines * 32 + 2 * k] << 16)), as_float16(pair << 16), even);
        odd = fma((float16)(as_float((uint)a[i * lines * 32 + 2 * k + 1] << 16)), as_float16(pair & OCLC_BF16_TOP), odd);
      }
      vstore16(vload16(2 * i + h, sums) + (even + odd), 2 * i + h, sums);
    }
}
void oclc_tiles_times(int products, __local float* sums, const __local ushort* a, int first, int lines, int pitch, int next,
                      const __global ushort* b, int n) {
  const int parts = products == 6 ? 3 : products == 3 ? 2 : 1;
  a += first * 32;
  for (; n > 0; --n, a += next, b += parts * 1024) {
    if (parts == 3) {
      oclc_tiles_dot(sums, a, lines, b + 2048);
      oclc_tiles_dot(sums, a, lines, b + 1024);
      oclc_tiles_dot(sums, a + pitch, lines, b + 1024);
      oclc_tiles_dot(sums, a + pitch, lines, b);
      oclc_tiles_dot(sums, a + 2 * pitch, lines, b);
    }
    if (parts == 2) {
      oclc_tiles_dot(sums, a, lines, b + 1024);
      oclc_tiles_dot(sums, a + pitch, lines, b);
    }
    oclc_tiles_dot(sums, a, lines, b);
  }
}
#elif !defined(OCLC_AMX)
#define OCLC_TILE_LINES 8
void oclc_tiles_times(int products, __local float* sums, const __local ushort* a, int first, int lines, int pitch, int next,
                      const __global ushort* b, int n) {
  const int parts = products == 6 ? 3 : products == 3 ? 2 : 1;
  // Vectors in place of vload16 and vstore16, which may be several loads and stores: the addresses are multiples of 64.
  float16 panel[64];
  __local float16* to = (__local float16*)sums;
  for (; n > 0; --n, a += next, b += parts * 1024) {
    for (int h = 0; h < 2; ++h)
      for (int k = 0; k < 16; ++k) {
        float16 low = 0, high = 0;
        for (int p = parts - 1; p >= 0; --p) {
          const uint16 pair = ((const __global uint16*)(b + p * 1024 + h * 512))[k];
          low += as_float16(pair << 16), high += as_float16(pair & OCLC_BF16_TOP);
        }
        panel[2 * (parts == 1 ? 2 * k : k) + h] = low;
        panel[2 * (parts == 1 ? 2 * k + 1 : k + 16) + h] = high;
      }
    for (int i0 = 0; i0 < 32; i0 += OCLC_TILE_LINES) {
      float16 sum[OCLC_TILE_LINES][2];
      #pragma unroll
      for (int i = 0; i < OCLC_TILE_LINES; ++i)
        sum[i][0] = 0, sum[i][1] = 0;
      for (int k = 0; k < 32; ++k) {
        const float16 x = panel[2 * k], y = panel[2 * k + 1];
        #pragma unroll
        for (int i = 0; i < OCLC_TILE_LINES; ++i) {
          const int at = (first + (i0 + i) * lines) * 32;
          const float16 s = parts == 1 ? as_float((uint)a[at + k] << 16) : ((const __local float*)a)[at + k];
          sum[i][0] = fma(s, x, sum[i][0]), sum[i][1] = fma(s, y, sum[i][1]);
        }
      }
      #pragma unroll
      for (int i = 0; i < OCLC_TILE_LINES; ++i) {
        to[2 * (i0 + i)] += sum[i][0];
        to[2 * (i0 + i) + 1] += sum[i][1];
      }
    }
  }
}
#endif

// What the loops change is marked as written before all else is read (&): an operand of equal value may else share its register.

//@provides oclc_tiles_multiply_6
#ifdef OCLC_AMX
#define OCLC_TILES_STEPS_6(NEXT) \
  __asm__ volatile( \
      "1:\n" \
      OCLC_TILE_A(4, x0) OCLC_TILE_B(6, 4096) OCLC_TILE_A(5, x1) OCLC_TILE_B(7, 5120) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_B(6, 2048) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_B(7, 3072) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_A(4, y0) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_A(5, y1) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_B(6, 0) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_B(7, 1024) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_A(4, z0) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_A(5, z1) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_A(4, x0) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_A(5, x1) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      "add %[ac],%[x0]\n add %[ac],%[x1]\n add %[ac],%[y0]\n add %[ac],%[y1]\n add %[ac],%[z0]\n add %[ac],%[z1]\n" \
      "add $6144,%[b]\n dec %[n]\n jnz 1b\n" \
      : [x0] "+&r"(x0), [x1] "+&r"(x1), [y0] "+&r"(y0), [y1] "+&r"(y1), [z0] "+&r"(z0), [z1] "+&r"(z1), [b] "+&r"(b), \
        [n] "+&r"(left), [soon] "+&r"(soon) \
      : [as] "r"(64L * lines), [ac] "r"(2L * next), [bs] "r"(64L) : "memory", "cc")
#endif
void oclc_tiles_multiply_6(__local float* sums, const __local ushort* a, int first, int lines, int pitch, int next,
                           const __global ushort* b, int n, int share, const __global ushort* soon) {
#ifdef OCLC_AMX
  const __local ushort *x0 = a + first * 32, *x1 = x0 + 512 * lines, *y0 = x0 + pitch, *y1 = x1 + pitch, *z0 = y0 + pitch,
                       *z1 = y1 + pitch;
  long left = n;
  OCLC_TILE_BY_SHARE(OCLC_TILES_STEPS_6)
#else
  oclc_tiles_times(6, sums, a, first, lines, pitch, next, b, n);
#endif
}

//@provides oclc_tiles_multiply_3
#ifdef OCLC_AMX
#define OCLC_TILES_STEPS_3(NEXT) \
  __asm__ volatile( \
      "1:\n" \
      OCLC_TILE_A(4, x0) OCLC_TILE_B(6, 2048) OCLC_TILE_A(5, x1) OCLC_TILE_B(7, 3072) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      NEXT \
      OCLC_TILE_A(4, y0) OCLC_TILE_B(6, 0) OCLC_TILE_A(5, y1) OCLC_TILE_B(7, 1024) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_A(4, x0) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      OCLC_TILE_A(5, x1) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      "add %[ac],%[x0]\n add %[ac],%[x1]\n add %[ac],%[y0]\n add %[ac],%[y1]\n add $4096,%[b]\n dec %[n]\n jnz 1b\n" \
      : [x0] "+&r"(x0), [x1] "+&r"(x1), [y0] "+&r"(y0), [y1] "+&r"(y1), [b] "+&r"(b), [n] "+&r"(left), [soon] "+&r"(soon) \
      : [as] "r"(64L * lines), [ac] "r"(2L * next), [bs] "r"(64L) : "memory", "cc")
#endif
void oclc_tiles_multiply_3(__local float* sums, const __local ushort* a, int first, int lines, int pitch, int next,
                           const __global ushort* b, int n, int share, const __global ushort* soon) {
#ifdef OCLC_AMX
  const __local ushort *x0 = a + first * 32, *x1 = x0 + 512 * lines, *y0 = x0 + pitch, *y1 = x1 + pitch;
  long left = n;
  OCLC_TILE_BY_SHARE(OCLC_TILES_STEPS_3)
#else
  oclc_tiles_times(3, sums, a, first, lines, pitch, next, b, n);
#endif
}

//@provides oclc_tiles_multiply_1
#ifdef OCLC_AMX
#define OCLC_TILES_STEPS_1(NEXT) \
  __asm__ volatile( \
      "1:\n" \
      OCLC_TILE_A(4, x0) OCLC_TILE_B(6, 0) OCLC_TILE_A(5, x1) OCLC_TILE_B(7, 1024) \
      OCLC_TILE_DOT(0, 4, 6) OCLC_TILE_DOT(1, 4, 7) OCLC_TILE_DOT(2, 5, 6) OCLC_TILE_DOT(3, 5, 7) \
      NEXT \
      NEXT \
      "add %[ac],%[x0]\n add %[ac],%[x1]\n add $2048,%[b]\n dec %[n]\n jnz 1b\n" \
      : [x0] "+&r"(x0), [x1] "+&r"(x1), [b] "+&r"(b), [n] "+&r"(left), [soon] "+&r"(soon) \
      : [as] "r"(64L * lines), [ac] "r"(2L * next), [bs] "r"(64L) : "memory", "cc")
#endif
void oclc_tiles_multiply_1(__local float* sums, const __local ushort* a, int first, int lines, int pitch, int next,
                           const __global ushort* b, int n, int share, const __global ushort* soon) {
#ifdef OCLC_AMX
  const __local ushort *x0 = a + first * 32, *x1 = x0 + 512 * lines;
  long left = n;
  OCLC_TILE_BY_SHARE(OCLC_TILES_STEPS_1)
#else
  oclc_tiles_times(1, sums, a, first, lines, pitch, next, b, n);
#endif
}
