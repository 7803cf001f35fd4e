// Intel's matrix units (XMX), through cl_intel_subgroup_matrix_multiply_accumulate in sub-groups of 16 work-items. With
// OCLC_UNITS_EMULATED plain C computes the same: each lane holds what it holds there, and lanes exchange it in local memory.
//
// launch    none: helper functions; all work-items of a group come to a product together
// local     `exchange`: oclc_exchange_floats(1) floats for a sub-group where the unit is emulated, else nothing
// Read from the extension's text and run emulated alone: nobody has measured it.

//@provides oclc_xmx_a oclc_xmx_b oclc_xmx_load_a oclc_xmx_load_b oclc_xmx_store
// Fragments of a[8][16] and b[16][16], of 16 bits, and of c[8][16], single precision. Lane l has a[i][l], the pair b[2i][l] and
// b[2i + 1][l], the former in the low bits, and c[i][l], for i < 8. In local memory columns of b lie as rows of a do.
typedef short8 oclc_xmx_a;
typedef int8 oclc_xmx_b;
short8 oclc_xmx_load_a(const __local ushort* from, int pitch, int lane) {
  from += lane;
  return as_short8((ushort8)(from[0], from[pitch], from[2 * pitch], from[3 * pitch], from[4 * pitch], from[5 * pitch],
                             from[6 * pitch], from[7 * pitch]));
}
int8 oclc_xmx_load_b(const __local ushort* from, int pitch, int lane) {
  return vload8(0, (const __local int*)(from + lane * pitch));
}
void oclc_xmx_store(float8 c, __local float* to, int pitch, int lane) {
  to += lane;
  to[0] = c.s0, to[pitch] = c.s1, to[2 * pitch] = c.s2, to[3 * pitch] = c.s3;
  to[4 * pitch] = c.s4, to[5 * pitch] = c.s5, to[6 * pitch] = c.s6, to[7 * pitch] = c.s7;
}

//@provides oclc_xmx_bf16 oclc_xmx_f16
// c + a * b, of bfloat16 or of halves.
#ifdef OCLC_UNITS_EMULATED
#define OCLC_XMX(type, from)                                                                                 \
  float8 oclc_xmx_##type(short8 a, int8 b, float8 c, int lane, __local float* exchange) {                    \
    __local ushort *all_a = (__local ushort*)exchange, *all_b = all_a + 128;                                 \
    for (int i = 0; i < 8; ++i) {                                                                            \
      all_a[i * 16 + lane] = ((const ushort*)&a)[i];                                                         \
      all_b[2 * i * 16 + lane] = ((const ushort*)&b)[2 * i];                                                 \
      all_b[(2 * i + 1) * 16 + lane] = ((const ushort*)&b)[2 * i + 1];                                       \
    }                                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    for (int i = 0; i < 8; ++i)                                                                              \
      for (int k = 0; k < 16; ++k)                                                                           \
        ((float*)&c)[i] += from(all_a[i * 16 + k]) * from(all_b[k * 16 + lane]);                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    return c;                                                                                                \
  }
OCLC_XMX(bf16, oclc_from_bf16)
OCLC_XMX(f16, oclc_from_f16)
#else
#define oclc_xmx_bf16(a, b, c, lane, exchange) intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, c)
#define oclc_xmx_f16(a, b, c, lane, exchange) intel_sub_group_f16_f16_matrix_mad_k16(a, b, c)
#endif
