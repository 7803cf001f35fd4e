// AMD's matrix units of RDNA3 (WMMA), through builtins of clang in sub-groups of 32 work-items. With OCLC_UNITS_EMULATED plain C
// computes the same: each lane holds what it holds there, and lanes exchange it in local memory.
//
// launch    none: helper functions; all work-items of a group come to a product together
// local     `exchange`: oclc_exchange_floats(1) floats for a sub-group where the unit is emulated, else nothing
// Compiled for gfx1100 and run emulated alone: nobody has measured it.

//@provides oclc_wmma_a oclc_wmma_b oclc_wmma_load_a oclc_wmma_load_b oclc_wmma_store
// Fragments of a[16][16] and b[16][16], of 16 bits, and of c[16][16], single precision. Lane l has a[l % 16][k] and b[k][l % 16] for
// k < 16, which both halves of a sub-group hold, and c[2i + l / 16][l % 16] for i < 8. In local memory columns of b lie as rows of a
// do.
typedef short16 oclc_wmma_a;
typedef short16 oclc_wmma_b;
short16 oclc_wmma_load_a(const __local ushort* from, int pitch, int lane) {
  return vload16(0, (const __local short*)(from + lane % 16 * pitch));
}
short16 oclc_wmma_load_b(const __local ushort* from, int pitch, int lane) { return oclc_wmma_load_a(from, pitch, lane); }
void oclc_wmma_store(float8 c, __local float* to, int pitch, int lane) {
  to += lane / 16 * pitch + lane % 16;
  to[0] = c.s0, to[2 * pitch] = c.s1, to[4 * pitch] = c.s2, to[6 * pitch] = c.s3;
  to[8 * pitch] = c.s4, to[10 * pitch] = c.s5, to[12 * pitch] = c.s6, to[14 * pitch] = c.s7;
}

//@provides oclc_wmma_bf16 oclc_wmma_f16
// c + a * b, of bfloat16 or of halves.
#ifdef OCLC_UNITS_EMULATED
// Even terms are read from the lower half of the sub-group, odd ones from the upper half: both have to hold them.
#define OCLC_WMMA(type, from)                                                                                \
  float8 oclc_wmma_##type(short16 a, short16 b, float8 c, int lane, __local float* exchange) {               \
    __local ushort *all_a = (__local ushort*)exchange, *all_b = all_a + 256;                                 \
    for (int k = lane / 16; k < 16; k += 2) {                                                                \
      all_a[lane % 16 * 16 + k] = ((const ushort*)&a)[k];                                                    \
      all_b[k * 16 + lane % 16] = ((const ushort*)&b)[k];                                                    \
    }                                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    for (int i = 0; i < 8; ++i)                                                                              \
      for (int k = 0; k < 16; ++k)                                                                           \
        ((float*)&c)[i] +=                                                                                   \
            from(all_a[(2 * i + lane / 16) * 16 + k]) * from(all_b[k * 16 + lane % 16]);                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    return c;                                                                                                \
  }
OCLC_WMMA(bf16, oclc_from_bf16)
OCLC_WMMA(f16, oclc_from_f16)
#else
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define oclc_wmma_bf16(a, b, c, lane, exchange) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c)
#define oclc_wmma_f16(a, b, c, lane, exchange)                                                               \
  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16(a), as_half16(b), c)
#endif
