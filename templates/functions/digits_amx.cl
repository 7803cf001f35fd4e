// Products of rows of floats on the tile units of x86 processors (AMX) as integers of three signed bytes, reached by inline
// assembly. Three bodies as in tiles_amx.cl: the unit's instructions; plain C with the same integers; fused multiply-adds on floats.
//
// digits    x = (d1 * 65536 + d2 * 256 + d3) * unit, -128 <= d <= 127, where the largest of a row of A, or column of B, has 22 bits or
//           nearly 23: an error of half a unit, none where all are multiples of it. A row of zeros has a unit as well; NaN or an
//           infinity makes it NaN.
//           6 products d1d1; d1d2 + d2d1; d1d3 + d2d2 + d3d1, sums of 32 bits that do not round, up to 43,000 terms.
// step      64 neighbours in k: byte 4 * i + j of a line is k = i + 16 * j.
// A         a step of L lines: [digit][L][64], digits `pitch` bytes apart; without a unit [L][64] floats, multiples of the unit.
// B         a step of 32 columns: [digit][2][16 i][16 columns][4 j].
// sums      [product sum][2][16 lines][16 columns] of int in local memory, at a multiple of 64 bytes; without a unit [2][16][16] floats.
// launch    none: helper functions
// local     none
// paper     Ootomo, Ozaki, Yokota: DGEMM on integer matrix multiplication unit, 2024.

//@provides oclc_digits_bits oclc_digits_scale oclc_digits_unit
// The largest of the bits of magnitudes: where one is no number, those of an infinity or NaN.
int oclc_digits_bits(int16 bits) {
  const int8 by8 = max(bits.lo, bits.hi);
  const int4 by4 = max(by8.lo, by8.hi);
  const int2 by2 = max(by4.lo, by4.hi);
  return max(by2.x, by2.y);
}
// The exponent that leaves room for the highest digit's carry.
int oclc_digits_exponent(int bits) { return max((bits + 0x10200) >> 23, 23); }
// 1 / unit and unit, powers of two.
float oclc_digits_scale(int bits) { return as_float((276 - oclc_digits_exponent(bits)) << 23); }
float oclc_digits_unit(int bits) {
  return bits >= 0x7f800000 ? as_float(0x7fc00000) : as_float((oclc_digits_exponent(bits) - 22) << 23);
}

//@provides oclc_digits_line OCLC_DIGITS_LINE OCLC_DIGITS_PITCH
// Line `line` of a step from its 64 elements, times `scale`. A line takes OCLC_DIGITS_LINE bytes; the next is OCLC_DIGITS_PITCH behind.
#if defined(OCLC_AMX) || defined(OCLC_AMX_EMULATED)
#define OCLC_DIGITS_LINE 192
#define OCLC_DIGITS_PITCH 64
// The nearest integers, with 128 added to each digit: bytes 0 to 255.
uint16 oclc_digits_raised(float16 x) {
#ifdef OCLC_AMX
  int16 q;
  __asm__("vcvtps2dq %1,%0" : "=v"(q) : "v"(x));
  return as_uint16(q + 0x808080);
#else
  return as_uint16(convert_int16_rte(x) + 0x808080);
#endif
}
void oclc_digits_line(float16 x, float16 y, float16 z, float16 w, float scale, __local uchar* step, int line, int pitch) {
  const uint16 p = oclc_digits_raised(x * scale), q = oclc_digits_raised(y * scale), r = oclc_digits_raised(z * scale),
               s = oclc_digits_raised(w * scale);
  __local uint16* to = (__local uint16*)step + line;
  to[0] = ((p >> 16) | (q >> 8 & 0xff00u) | (r & 0xff0000u) | (s << 8 & 0xff000000u)) ^ 0x80808080u;
  to[pitch / 64] = ((p >> 8 & 0xffu) | (q & 0xff00u) | (r << 8 & 0xff0000u) | (s << 16 & 0xff000000u)) ^ 0x80808080u;
  to[pitch / 32] = ((p & 0xffu) | (q << 8 & 0xff00u) | (r << 16 & 0xff0000u) | (s << 24)) ^ 0x80808080u;
}
#else
#define OCLC_DIGITS_LINE 256
#define OCLC_DIGITS_PITCH 256
void oclc_digits_line(float16 x, float16 y, float16 z, float16 w, float scale, __local uchar* step, int line, int pitch) {
  __local float16* to = (__local float16*)step + 4 * line;
  to[0] = rint(x * scale);
  to[1] = rint(y * scale);
  to[2] = rint(z * scale);
  to[3] = rint(w * scale);
}
#endif

//@provides oclc_digits_begin oclc_digits_end oclc_digits_sum
// Around a sum: from 0 if `first`, else on from what the last end left. Then line i, columns 16 * h ..: the sum of products divided by
// 65536 units.
void oclc_digits_begin(__local int* sums, int first);
void oclc_digits_end(__local int* sums);
#ifdef OCLC_AMX
void oclc_digits_begin(__local int* sums, int first) {
  if (first)
    __asm__ volatile(
        "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n tilezero %%tmm4\n tilezero %%tmm5" ::: "memory");
  else
    __asm__ volatile(
        "tileloadd (%0,%1,1),%%tmm0\n tileloadd 1024(%0,%1,1),%%tmm1\n tileloadd 2048(%0,%1,1),%%tmm2\n"
        "tileloadd 3072(%0,%1,1),%%tmm3\n tileloadd 4096(%0,%1,1),%%tmm4\n tileloadd 5120(%0,%1,1),%%tmm5" ::"r"(sums),
        "r"(64L) : "memory");
}
void oclc_digits_end(__local int* sums) {
  __asm__ volatile(
      "tilestored %%tmm0,(%0,%1,1)\n tilestored %%tmm1,1024(%0,%1,1)\n tilestored %%tmm2,2048(%0,%1,1)\n"
      "tilestored %%tmm3,3072(%0,%1,1)\n tilestored %%tmm4,4096(%0,%1,1)\n tilestored %%tmm5,5120(%0,%1,1)" ::"r"(sums),
      "r"(64L) : "memory");
}
#else
void oclc_digits_begin(__local int* sums, int first) {
  for (int i = 0; first && i < 96; ++i) ((__local int16*)sums)[i] = 0;
}
void oclc_digits_end(__local int* sums) {}
#endif
float16 oclc_digits_sum(const __local int* sums, int i, int h) {
#if defined(OCLC_AMX) || defined(OCLC_AMX_EMULATED)
  const __local int16* s = (const __local int16*)sums + h * 16 + i;
  return fma(convert_float16(s[0]), 65536.0f, fma(convert_float16(s[32]), 256.0f, convert_float16(s[64])));
#else
  return ((const __local float16*)sums)[h * 16 + i] * 0x1p-16f;
#endif
}

//@provides oclc_digits_multiply
// sums += A * B over n steps, the steps of A `next` bytes apart; asks for memory at `soon` as oclc_tiles_multiply_* do.
#ifdef OCLC_AMX
#define OCLC_DIGITS_A(p) "tileloadd (%[" #p "],%[s],1),%%tmm7\n"
#define OCLC_DIGITS_B(at) "tileloadd " #at "(%[b],%[s],1),%%tmm6\n"
#define OCLC_DIGITS_DOT(sum) "tdpbssd %%tmm6,%%tmm7,%%tmm" #sum "\n"
// Each tile of B is loaded once, and 13 tiles for 12 products: what comes from the second-level cache takes as long as the unit.
#define OCLC_DIGITS_STEPS(NEXT) \
  __asm__ volatile( \
      "1:\n" \
      OCLC_DIGITS_B(0) OCLC_DIGITS_A(z) OCLC_DIGITS_DOT(4) OCLC_DIGITS_A(y) OCLC_DIGITS_DOT(2) \
      NEXT \
      OCLC_DIGITS_A(x) OCLC_DIGITS_DOT(0) OCLC_DIGITS_B(2048) OCLC_DIGITS_DOT(2) \
      NEXT \
      OCLC_DIGITS_A(y) OCLC_DIGITS_DOT(4) OCLC_DIGITS_B(3072) OCLC_DIGITS_DOT(5) \
      NEXT \
      OCLC_DIGITS_A(x) OCLC_DIGITS_DOT(3) OCLC_DIGITS_B(5120) OCLC_DIGITS_DOT(5) \
      NEXT \
      OCLC_DIGITS_B(4096) OCLC_DIGITS_DOT(4) OCLC_DIGITS_B(1024) OCLC_DIGITS_DOT(1) \
      NEXT \
      OCLC_DIGITS_A(y) OCLC_DIGITS_DOT(3) OCLC_DIGITS_A(z) OCLC_DIGITS_DOT(5) \
      NEXT \
      "add %[next],%[x]\n add %[next],%[y]\n add %[next],%[z]\n add $6144,%[b]\n dec %[n]\n jnz 1b\n" \
      : [x] "+&r"(x), [y] "+&r"(y), [z] "+&r"(z), [b] "+&r"(b), [n] "+&r"(left), [soon] "+&r"(soon) \
      : [s] "r"(64L), [next] "r"((long)next) : "memory", "cc")
#endif
void oclc_digits_multiply(__local int* sums, const __local uchar* a, int pitch, int next, const __global char* b, int n, int share,
                          const __global ushort* soon) {
#ifdef OCLC_AMX
  const __local uchar *x = a, *y = a + pitch, *z = y + pitch;
  long left = n;
  OCLC_TILE_BY_SHARE(OCLC_DIGITS_STEPS)
#elif defined(OCLC_AMX_EMULATED)
  for (; n > 0; --n, a += next, b += 6144)
    for (int p = 0; p < 3; ++p)
      for (int q = 0; p + q < 3; ++q)
        for (int h = 0; h < 2; ++h)
          for (int i = 0; i < 16; ++i) {
            __local int16* to = (__local int16*)sums + ((p + q) * 2 + h) * 16 + i;
            int16 sum = *to;
            for (int k = 0; k < 16; ++k) {
              const int16 four = vload16(k, (const __global int*)(b + (q * 2 + h) * 1024));
              const __local char* line = (const __local char*)a + p * pitch + i * 64 + 4 * k;
              sum += line[0] * (four << 24 >> 24) + line[1] * (four << 16 >> 24) + line[2] * (four << 8 >> 24) + line[3] * (four >> 24);
            }
            *to = sum;
          }
#else
  float16 panel[128];
  __local float16* to = (__local float16*)sums;
  for (; n > 0; --n, a += next, b += 6144) {
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 16; ++i) {
        const __global int16* four = (const __global int16*)b + h * 16 + i;
        for (int j = 0; j < 4; ++j) {
          const int up = 24 - 8 * j;
          panel[2 * (i + 16 * j) + h] = convert_float16((four[0] << up >> 24) * 65536 + (four[32] << up >> 24) * 256 + (four[64] << up >> 24));
        }
      }
    for (int i0 = 0; i0 < 16; i0 += 8) {
      float16 sum[8][2];
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        sum[i][0] = 0, sum[i][1] = 0;
      for (int k = 0; k < 64; ++k) {
        const float16 x = panel[2 * k], y = panel[2 * k + 1];
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float v = ((const __local float*)a)[(i0 + i) * 64 + k];
          sum[i][0] = fma(v, x, sum[i][0]), sum[i][1] = fma(v, y, sum[i][1]);
        }
      }
      #pragma unroll
      for (int i = 0; i < 8; ++i)
        to[i0 + i] += sum[i][0], to[16 + i0 + i] += sum[i][1];
    }
  }
#endif
}
