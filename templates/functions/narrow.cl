// Narrow numbers that only conversions compute with: floats of 8 and 4 bits, integers of 2, 4 and 12. A float has a sign, an
// exponent with a bias and a mantissa of `m` bits; its code is its bits without the sign. Codes above `largest` are NaN, or the one behind
// it is infinity. With `one_zero` the code of -0 is NaN, and there is no other.
//
// launch    none: helper functions
// local     none

//@provides oclc_from_narrow
float oclc_from_narrow(uint bits, int m, int bias, int sign_shift, uint largest, uint too_large, uint not_a_number, int one_zero) {
  const uint sign = (bits >> sign_shift) & 1u, code = bits & ((1u << sign_shift) - 1u), fraction = code & ((1u << m) - 1u);
  const uint unit = (uint)(128 - bias - m) << 23;  // as a float, the smallest number
  const float small = (float)fraction * as_float(unit);
  const float normal = as_float((code + ((uint)(127 - bias) << m)) << (23 - m));
  float x = (code >> m) == 0 ? small : normal;
  if (code > largest) x = code == too_large && code != not_a_number ? INFINITY : NAN;
  if (one_zero && sign && code == 0) x = NAN;
  return sign ? -x : x;
}

//@provides oclc_to_narrow
// The nearest, ties to even.
uint oclc_to_narrow(float x, int m, int bias, int sign_shift, uint largest, uint too_large, uint not_a_number, int one_zero) {
  const uint bits = as_uint(x), size = bits & 0x7fffffffu;
  const int dropped = 23 - m;
  const float units = as_float(size) * as_float((uint)(126 + bias + m) << 23);
  const uint small = (uint)rint(fmin(units, 256.0f));
  const uint normal = ((size + (1u << (dropped - 1)) - 1u + ((size >> dropped) & 1u)) >> dropped) - ((uint)(127 - bias) << m);
  uint code = (int)(size >> 23) - 127 + bias < 1 ? small : normal;
  if (code > largest) code = too_large;
  if (size > 0x7f800000u) code = not_a_number;
  const int signless = one_zero ? code == 0 || code == not_a_number : size > 0x7f800000u && not_a_number == largest;
  return code | (signless ? 0u : (bits >> 31) << sign_shift);
}

//@provides oclc_from_f8e4m3fn oclc_to_f8e4m3fn
float oclc_from_f8e4m3fn(uchar b) { return oclc_from_narrow(b, 3, 7, 7, 0x7e, 0x7f, 0x7f, 0); }
uchar oclc_to_f8e4m3fn(float x) { return (uchar)oclc_to_narrow(x, 3, 7, 7, 0x7e, 0x7f, 0x7f, 0); }

//@provides oclc_from_f8e4m3fnuz oclc_to_f8e4m3fnuz
float oclc_from_f8e4m3fnuz(uchar b) { return oclc_from_narrow(b, 3, 8, 7, 0x7f, 0x80, 0x80, 1); }
uchar oclc_to_f8e4m3fnuz(float x) { return (uchar)oclc_to_narrow(x, 3, 8, 7, 0x7f, 0x80, 0x80, 1); }

//@provides oclc_from_f8e5m2 oclc_to_f8e5m2
float oclc_from_f8e5m2(uchar b) { return oclc_from_narrow(b, 2, 15, 7, 0x7b, 0x7c, 0x7e, 0); }
uchar oclc_to_f8e5m2(float x) { return (uchar)oclc_to_narrow(x, 2, 15, 7, 0x7b, 0x7c, 0x7e, 0); }

//@provides oclc_from_f8e5m2fnuz oclc_to_f8e5m2fnuz
float oclc_from_f8e5m2fnuz(uchar b) { return oclc_from_narrow(b, 2, 16, 7, 0x7f, 0x80, 0x80, 1); }
uchar oclc_to_f8e5m2fnuz(float x) { return (uchar)oclc_to_narrow(x, 2, 16, 7, 0x7f, 0x80, 0x80, 1); }

//@provides oclc_from_f4e2m1 oclc_to_f4e2m1
float oclc_from_f4e2m1(uchar b) { return oclc_from_narrow(b, 1, 1, 3, 0x7, 0x7, 0x7, 0); }
uchar oclc_to_f4e2m1(float x) { return (uchar)oclc_to_narrow(x, 1, 1, 3, 0x7, 0x7, 0x7, 0); }

//@provides oclc_to_i4 oclc_to_u4
// The low 4 bits, two's complement.
char oclc_to_i4(int x) { return (char)(((x & 15) ^ 8) - 8); }
uchar oclc_to_u4(int x) { return (uchar)(x & 15); }

//@provides oclc_from_f8e8m0 oclc_to_f8e8m0
// An exponent alone: of the number without its sign, the next power of two that is not below it.
float oclc_from_f8e8m0(uchar b) { return b == 255 ? NAN : as_float(b == 0 ? 0x400000u : (uint)b << 23); }
uchar oclc_to_f8e8m0(float x) {
  const uint size = as_uint(x) & 0x7fffffffu, exponent = size >> 23;
  const uint up = (size & 0x7fffffu) > (exponent == 0 ? 0x400000u : 0u);
  return (uchar)(exponent == 255 ? 255u : min(exponent + up, 254u));
}

//@provides oclc_to_i2 oclc_to_u2
// The low 2 bits, two's complement.
char oclc_to_i2(int x) { return (char)(((x & 3) ^ 2) - 2); }
uchar oclc_to_u2(int x) { return (uchar)(x & 3); }

//@provides oclc_dot_twelve
// The sum of eight integers of 12 bits, two's complement, the first in the lowest bits, times the elements of x and y.
float oclc_dot_twelve(uint a, uint b, uint c, float4 x, float4 y) {
  const uint4 p = (uint4)(a << 20, a << 8, (a >> 24 | b << 8) << 20, b << 16);
  const uint4 q = (uint4)(b << 4, (b >> 28 | c << 4) << 20, c << 12, c);
  const float4 m = convert_float4(as_int4(p) >> 20) * x, n = convert_float4(as_int4(q) >> 20) * y;
  return ((m.x + m.y) + (m.z + m.w)) + ((n.x + n.y) + (n.z + n.w));
}
