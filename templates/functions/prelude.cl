// Functions that the operators' kernel text calls (compiler/ops/elementwise.cpp), for scalars and for vectors of 4, 8 and 16 lanes.
// Each piece is put before a kernel that uses one of the names it provides. Float functions are accurate to 2.5 ulp and give what IEEE
// arithmetic gives for NaN and infinities; double ones use the device's built-in functions.
//
// launch    none: helper functions
// local     none

//@provides OCLC_FLOATS OCLC_DOUBLE
#define OCLC_FLOATS(F) F(float) F(float4) F(float8) F(float16)
#ifdef cl_khr_fp64
#define OCLC_DOUBLE(F) F(double)
#else
#define OCLC_DOUBLE(F)
#endif

//@provides OCLC_SIGNED OCLC_UNSIGNED
#define OCLC_SIGNED(F) F(char) F(short) F(int) F(long) F(int4) F(int8) F(int16)
#define OCLC_UNSIGNED(F) F(uchar) F(ushort) F(uint) F(ulong) F(uint4) F(uint8) F(uint16)

//@provides oclc_max
// The larger; NaN if either is. One instruction where b is a constant.
#define OCLC_MAX(T) \
  T __attribute__((overloadable)) oclc_max(T a, T b) { \
    const T larger = b > a ? b : a; \
    return b != b ? b : larger; \
  }
OCLC_FLOATS(OCLC_MAX) OCLC_DOUBLE(OCLC_MAX)
//@provides oclc_min
// The smaller; NaN if either is. One instruction where b is a constant.
#define OCLC_MIN(T) \
  T __attribute__((overloadable)) oclc_min(T a, T b) { \
    const T smaller = b < a ? b : a; \
    return b != b ? b : smaller; \
  }
OCLC_FLOATS(OCLC_MIN) OCLC_DOUBLE(OCLC_MIN)
//@provides oclc_relu
// max(a, 0); NaN stays.
#define OCLC_RELU(T) \
  T __attribute__((overloadable)) oclc_relu(T a) { return a < 0 ? (T)(0) : a; }
OCLC_FLOATS(OCLC_RELU) OCLC_DOUBLE(OCLC_RELU) OCLC_SIGNED(OCLC_RELU) OCLC_UNSIGNED(OCLC_RELU)
//@provides oclc_sign
// -1, 0 or 1; NaN stays.
#define OCLC_SIGN(T) \
  T __attribute__((overloadable)) oclc_sign(T a) { return a > 0 ? (T)(1) : (a < 0 ? (T)(-1) : a); }
OCLC_FLOATS(OCLC_SIGN) OCLC_DOUBLE(OCLC_SIGN) OCLC_SIGNED(OCLC_SIGN) OCLC_UNSIGNED(OCLC_SIGN)

//@provides oclc_exp_near
// e^r - 1 for |r| <= ln(2) / 2: the polynomial is a minimax one of (e^r - 1 - r) / r^2.
#define OCLC_EXP_NEAR(T) \
  T __attribute__((overloadable)) oclc_exp_near(T r) { \
    const T s = r * r, low = fma((T)(1.66665206e-1f), r, (T)(4.99999934e-1f)); \
    const T high = fma((T)(8.36871521e-3f), r, (T)(4.16683879e-2f)); \
    return fma(fma(fma((T)(1.38146020e-3f), s, high), s, low), s, r); \
  }
OCLC_FLOATS(OCLC_EXP_NEAR)
//@provides oclc_exp_rest
// e^a 2^-n - 1 for an integer n next to a / ln 2.
#define OCLC_EXP_REST(T) \
  T __attribute__((overloadable)) oclc_exp_rest(T a, T n) { \
    return oclc_exp_near(fma(n, (T)(1.90465421e-9f), fma(n, (T)(-0.693147182f), a))); \
  }
OCLC_FLOATS(OCLC_EXP_REST)
//@provides oclc_exp_times
// e^a 2^e where that is a normal number, `magic` = 1.5 2^23 + 127 + e: the sum rounds a / ln 2 to an integer in the low bits of z, from
// where it becomes an exponent.
#define OCLC_EXP_TIMES(T, I) \
  T __attribute__((overloadable)) oclc_exp_times(T a, T magic) { \
    const T z = fma(a, (T)(1.44269504f), magic); \
    return (oclc_exp_rest(a, z - magic) + 1) * as_##T(as_##I(z) << 23); \
  }
OCLC_EXP_TIMES(float, int) OCLC_EXP_TIMES(float4, int4) OCLC_EXP_TIMES(float8, int8) OCLC_EXP_TIMES(float16, int16)
//@provides oclc_expm1
// e^a - 1 for |a| <= 60, close to 0 as accurately as elsewhere: e^a = 2^n e^r as above.
#define OCLC_EXPM1(T, I) \
  T __attribute__((overloadable)) oclc_expm1(T a) { \
    const T z = fma(a, (T)(1.44269504f), (T)(12583039.0f)), scale = as_##T(as_##I(z) << 23); \
    return fma(scale, oclc_exp_rest(a, z - 12583039.0f), scale - 1); \
  }
OCLC_EXPM1(float, int) OCLC_EXPM1(float4, int4) OCLC_EXPM1(float8, int8) OCLC_EXPM1(float16, int16)
//@provides oclc_exp
// Two factors, so that large results overflow and small ones lose their digits one by one, where no instruction scales so. Built-in
// functions are shorter on GPUs.
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_scalefps512_mask)
#define OCLC_SCALES
#endif
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define OCLC_EXP(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { \
    const T top = a > 100 ? (T)(100) : a, b = top < -104 ? (T)(0) : top; \
    const T e = oclc_exp_times(b, b < 0 ? (T)(12583103.0f) : (T)(12582975.0f)) * (b < 0 ? (T)(0x1p-64f) : (T)(0x1p64f)); \
    return a < -104 ? (T)(0) : e; \
  }
#else
#define OCLC_EXP(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { return exp(a); }
#endif
#ifdef OCLC_SCALES
OCLC_EXP(float) OCLC_EXP(float4) OCLC_EXP(float8)
// The mask leaves out what is 0, as e^-inf behind a mask of attention: some processors take 200 cycles for a result that is too small.
float16 __attribute__((overloadable)) oclc_exp(float16 a) {
  const float16 top = a > 100 ? (float16)(100) : a;
  const float16 n = fma(top, (float16)(1.44269504f), (float16)(12582912.0f)) - 12582912.0f;
  const ushort some = __builtin_ia32_cmpps512_mask(a, (float16)(-104.0f), 5 /* not less */, (ushort)0xffff, 4);
  return __builtin_ia32_scalefps512_mask(oclc_exp_rest(top, n) + 1, n, (float16)(0.0f), some, 4);
}
#else
OCLC_FLOATS(OCLC_EXP)
#endif
#define OCLC_EXP_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_exp(T a) { return exp(a); }
OCLC_DOUBLE(OCLC_EXP_DOUBLE)
//@provides oclc_sigmoid
// 2^-32 / (2^-32 + 2^-32 e^-a): nothing overflows, and small results keep their digits.
#define OCLC_SIGMOID(T) \
  T __attribute__((overloadable)) oclc_sigmoid(T a) { \
    const T low = -a < -64 ? (T)(-64) : -a, b = low > 110 ? (T)(110) : low; \
    return 0x1p-32f / (0x1p-32f + oclc_exp_times(b, (T)(12583007.0f))); \
  }
OCLC_FLOATS(OCLC_SIGMOID)
#ifdef cl_khr_fp64
double __attribute__((overloadable)) oclc_sigmoid(double a) {
  const double e = exp(-fabs(a));
  return (a < 0 ? e : 1) / (1 + e);
}
#endif
//@provides oclc_silu
// a / (1 + e^-a): for a product with its own sigmoid. 2^n e^r as above, but ln 2 is one number: the result is accurate to 2.5 ulp from
// -30 on, to 5 down to -87, and stays at its value there below, -1.4e-36.
#define OCLC_SILU(T, I) \
  T __attribute__((overloadable)) oclc_silu(T a) { \
    const T low = a < -87 ? (T)(-87) : a, b = low > 64 ? (T)(64) : low; \
    const T z = fma(b, (T)(-1.44269504f), (T)(12583039.0f)), n = z - 12583039.0f; \
    const T e = oclc_exp_near(-fma(n, (T)(0.693147182f), b)); \
    return low / fma(e + 1, as_##T(as_##I(z) << 23), (T)(1)); \
  }
OCLC_SILU(float, int) OCLC_SILU(float4, int4) OCLC_SILU(float8, int8) OCLC_SILU(float16, int16)
//@provides oclc_tanh
// For |a| <= 0.55: a + a^3 p(a^2), p a minimax polynomial; else 1 - 2 / (e^(2|a|) + 1) with the sign of a.
#define OCLC_TANH(T) \
  T __attribute__((overloadable)) oclc_tanh(T a) { \
    const T s = a * a; \
    T p = fma((T)(-6.28246693e-3f), s, (T)(2.10777540e-2f)); \
    p = fma(p, s, (T)(-5.38538583e-2f)); \
    p = fma(p, s, (T)(1.33326024e-1f)); \
    p = fma(p, s, (T)(-3.33333194e-1f)); \
    const T near = fma(p * s, a, a); \
    const T most = fabs(a) < 10 ? fabs(a) : (T)(10); \
    const T far = copysign(1 - 2 / (oclc_exp_times(2 * most, (T)(12583039.0f)) + 1), a); \
    return fabs(a) > 0.55f ? far : near; \
  }
OCLC_FLOATS(OCLC_TANH)
#define OCLC_TANH_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_tanh(T a) { return tanh(a); }
OCLC_DOUBLE(OCLC_TANH_DOUBLE)
//@provides OCLC_ENTRY
// Lane by lane the entry of 16 that the low four bits of z choose.
#if defined(__AVX512F__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_permvarsf512)
#define OCLC_ENTRY(z, ...) __builtin_ia32_permvarsf512((float16)(__VA_ARGS__), as_int16(z))
#endif
#endif
//@provides oclc_erf
// 1 - e^p with the sign of a, p = t q(t) - t for t = min(|a|, 4): beyond, erf rounds to 1. q is a minimax polynomial of
// (log(erfc(t)) + t) / t, weighted by what an error of it does to erf.
#define OCLC_ERF(T) \
  T __attribute__((overloadable)) oclc_erf(T a) { \
    const T t = 4 < fabs(a) ? (T)(4) : fabs(a); \
    const T s = t * t; \
    T even = fma((T)(9.25560289e-6f), s, (T)(6.32813724e-4f)), odd = fma((T)(-1.17635092e-4f), s, (T)(-1.66698277e-3f)); \
    even = fma(even, s, (T)(1.60348281e-4f)), odd = fma(odd, s, (T)(1.91530921e-2f)); \
    even = fma(even, s, (T)(-1.02777839e-1f)), odd = fma(odd, s, (T)(-6.36619389e-1f)); \
    const T q = fma(odd, t, fma(even, s, (T)(-1.28379166e-1f))); \
    return copysign(oclc_expm1(fma(q, t, -t)), a); \
  }
#ifdef OCLC_ENTRY
OCLC_ERF(float) OCLC_ERF(float4) OCLC_ERF(float8)
// The polynomial of the nearest multiple of 1/4, whose number the sum has in its low bits. The last one is 1 where erf rounds to 1.
float16 __attribute__((overloadable)) oclc_erf(float16 a) {
  const float16 t = 3.8749998f < fabs(a) ? (float16)(3.8749998f) : fabs(a);
  const float16 z = t + 3145728.0f, r = t - (z - 3145728.0f);
  float16 p = OCLC_ENTRY(z, 0.138964936f, 0.0808316991f, 0.00815973524f, -0.0524770133f, -0.0687321424f, -0.047109887f,
                          -0.0150321387f, 0.0064318208f, 0.0129848523f, 0.0106366491f, 0.00613417383f, 0.00277595478f,
                          0.0010287629f, 0.000319127517f, 8.39455024e-05f, 1.88838403e-05f);
  p = fma(p, r, OCLC_ENTRY(z, -0.0067525995f, 0.126042247f, 0.181912482f, 0.150058627f, 0.0692901388f, -0.0056624501f,
                          -0.0441468656f, -0.047891859f, -0.0344337821f, -0.0191510133f, -0.00868785009f, -0.00329699367f,
                          -0.00106175267f, -0.00029278046f, -6.95545314e-05f, -1.42976924e-05f));
  p = fma(p, r, OCLC_ENTRY(z, -0.375586569f, -0.309191197f, -0.146478385f, 0.0267797261f, 0.138365179f, 0.167535573f,
                          0.138753727f, 0.0901591107f, 0.0482239127f, 0.0217247475f, 0.00834993366f, 0.00276020193f,
                          0.000788987265f, 0.000195760207f, 4.22785051e-05f, 7.96484528e-06f));
  p = fma(p, r, OCLC_ENTRY(z, -1.38666046e-05f, -0.264998108f, -0.43938446f, -0.482194632f, -0.415108114f, -0.295654297f,
                          -0.178398088f, -0.092357479f, -0.0413340367f, -0.016069822f, -0.00544532714f, -0.00161203451f,
                          -0.000417657371f, -9.48278757e-05f, -1.88872036e-05f, -2.59868716e-06f));
  p = fma(p, r, OCLC_ENTRY(z, 1.12837923f, 1.06001425f, 0.87878263f, 0.642931104f, 0.415107518f, 0.236521125f, 0.118930288f,
                          0.0527749918f, 0.020666983f, 0.00714231841f, 0.00217828457f, 0.000586277689f, 0.00013925333f,
                          2.91891483e-05f, 5.39946859e-06f, 1.05744402e-06f));
  p = fma(p, r, OCLC_ENTRY(z, 0.0f, 0.276326388f, 0.520499885f, 0.711155653f, 0.842700779f, 0.92290014f, 0.966105163f,
                          0.986671686f, 0.995322287f, 0.998537302f, 0.999593019f, 0.999899387f, 0.999977887f, 0.999995708f,
                          0.999999285f, 0.999999881f));
  return copysign(p, a);
}
#else
OCLC_FLOATS(OCLC_ERF)
#endif
#define OCLC_ERF_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_erf(T a) { return erf(a); }
OCLC_DOUBLE(OCLC_ERF_DOUBLE)
//@provides oclc_softplus
// log(1 + e^a) = max(a, 0) + log1p(t), t = e^-|a|: t + t^2 p(t), p a minimax polynomial for t up to 1. Built-in functions are shorter
// on GPUs.
#define OCLC_SOFTPLUS_BUILT_IN(T) \
  T __attribute__((overloadable)) oclc_softplus(T a) { return (a < 0 ? (T)(0) : a) + log1p(exp(-fabs(a))); }
#if defined(__x86_64__) || defined(__aarch64__)
#define OCLC_SOFTPLUS(T) \
  T __attribute__((overloadable)) oclc_softplus(T a) { \
    const T t = oclc_exp(-fabs(a)); \
    T p = fma((T)(2.07291823e-3f), t, (T)(-1.36313327e-2f)); \
    p = fma(p, t, (T)(4.19810489e-2f)); \
    p = fma(p, t, (T)(-8.3073698e-2f)); \
    p = fma(p, t, (T)(1.2467096e-1f)); \
    p = fma(p, t, (T)(-1.61293238e-1f)); \
    p = fma(p, t, (T)(1.98979288e-1f)); \
    p = fma(p, t, (T)(-2.49885783e-1f)); \
    p = fma(p, t, (T)(3.33326906e-1f)); \
    p = fma(p, t, (T)(-4.99999881e-1f)); \
    return (a < 0 ? (T)(0) : a) + fma(t * t, p, t); \
  }
#else
#define OCLC_SOFTPLUS(T) OCLC_SOFTPLUS_BUILT_IN(T)
#endif
OCLC_FLOATS(OCLC_SOFTPLUS) OCLC_DOUBLE(OCLC_SOFTPLUS_BUILT_IN)

//@provides oclc_sin oclc_cos oclc_tan
// Lane by lane: the vector versions of PoCL 3.1 give wrong results in all lanes when one lane's argument is large.
#define OCLC_LANES(NAME, BUILTIN) \
  float __attribute__((overloadable)) NAME(float a) { return BUILTIN(a); } \
  float4 __attribute__((overloadable)) NAME(float4 a) { return (float4)(BUILTIN(a.x), BUILTIN(a.y), BUILTIN(a.z), BUILTIN(a.w)); } \
  float8 __attribute__((overloadable)) NAME(float8 a) { return (float8)(NAME(a.lo), NAME(a.hi)); } \
  float16 __attribute__((overloadable)) NAME(float16 a) { return (float16)(NAME(a.lo), NAME(a.hi)); }
OCLC_LANES(oclc_sin, sin) OCLC_LANES(oclc_cos, cos) OCLC_LANES(oclc_tan, tan)
#ifdef cl_khr_fp64
double __attribute__((overloadable)) oclc_sin(double a) { return sin(a); }
double __attribute__((overloadable)) oclc_cos(double a) { return cos(a); }
double __attribute__((overloadable)) oclc_tan(double a) { return tan(a); }
#endif

//@provides floor_div
// Quotient rounded down; the divisor is not 0. For index arithmetic.
#define OCLC_FLOOR_DIV(R, A, B) \
  R __attribute__((overloadable)) floor_div(A a, B b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
OCLC_FLOOR_DIV(int, int, int) OCLC_FLOOR_DIV(long, long, long) OCLC_FLOOR_DIV(long, int, long) OCLC_FLOOR_DIV(long, long, int)
//@provides floor_mod
// Remainder with the divisor's sign; the divisor is not 0. For index arithmetic.
#define OCLC_FLOOR_MOD(R, A, B) \
  R __attribute__((overloadable)) floor_mod(A a, B b) { return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); }
OCLC_FLOOR_MOD(int, int, int) OCLC_FLOOR_MOD(long, long, long) OCLC_FLOOR_MOD(long, int, long) OCLC_FLOOR_MOD(long, long, int)

//@provides oclc_abs
// |a|, wrapping at the lowest value.
#define OCLC_ABS(T) \
  T __attribute__((overloadable)) oclc_abs(T a) { return a < 0 ? (T)(0 - a) : a; }
OCLC_SIGNED(OCLC_ABS)
#define OCLC_ABS_UNSIGNED(T) \
  T __attribute__((overloadable)) oclc_abs(T a) { return a; }
OCLC_UNSIGNED(OCLC_ABS_UNSIGNED)
//@provides oclc_div
// Truncated quotient; a / 0 = 0, and the lowest value / -1 wraps.
#define OCLC_DIV(T) \
  T __attribute__((overloadable)) oclc_div(T a, T b) { \
    const T q = a / (b == 0 || b == -1 ? (T)(1) : b); \
    return b == 0 ? (T)(0) : (b == -1 ? (T)(0 - a) : q); \
  }
OCLC_SIGNED(OCLC_DIV)
#define OCLC_DIV_UNSIGNED(T) \
  T __attribute__((overloadable)) oclc_div(T a, T b) { return b == 0 ? (T)(0) : (T)(a / (b == 0 ? (T)(1) : b)); }
OCLC_UNSIGNED(OCLC_DIV_UNSIGNED)
//@provides oclc_rem oclc_mod
// Remainders: oclc_rem has the dividend's sign, oclc_mod the divisor's; 0 for a divisor of 0.
#define OCLC_REM(T) \
  T __attribute__((overloadable)) oclc_rem(T a, T b) { return a % (b == 0 || b == -1 ? (T)(1) : b); } \
  T __attribute__((overloadable)) oclc_mod(T a, T b) { \
    const T r = oclc_rem(a, b); \
    return r != 0 && (r ^ b) < 0 ? (T)(r + b) : r; \
  }
OCLC_SIGNED(OCLC_REM)
#define OCLC_REM_UNSIGNED(T) \
  T __attribute__((overloadable)) oclc_rem(T a, T b) { return a % (b == 0 ? (T)(1) : b); } \
  T __attribute__((overloadable)) oclc_mod(T a, T b) { return oclc_rem(a, b); }
OCLC_UNSIGNED(OCLC_REM_UNSIGNED)
#define OCLC_MOD_FLOAT(T) \
  T __attribute__((overloadable)) oclc_mod(T a, T b) { \
    const T r = fmod(a, b); \
    return r != 0 && (r < 0 ? b > 0 : b < 0) ? r + b : r; \
  }
OCLC_FLOATS(OCLC_MOD_FLOAT) OCLC_DOUBLE(OCLC_MOD_FLOAT)
//@provides oclc_shift_left oclc_shift_right
// Shifts by the width or more move all bits out. Negative shifts count as such.
#define OCLC_WIDTH(T) (sizeof(T) <= 8 ? 8 * (int)sizeof(T) : 32)
#define OCLC_SHIFT(T) \
  T __attribute__((overloadable)) oclc_shift_left(T a, T b) { \
    const T most = (T)(OCLC_WIDTH(T) - 1); \
    return b >= 0 && b <= most ? (T)(a << (b & most)) : (T)(0); \
  } \
  T __attribute__((overloadable)) oclc_shift_right(T a, T b) { \
    const T most = (T)(OCLC_WIDTH(T) - 1); \
    return b >= 0 && b <= most ? (T)(a >> (b & most)) : (T)(a < 0 ? (T)(-1) : (T)(0)); \
  }
OCLC_SIGNED(OCLC_SHIFT) OCLC_UNSIGNED(OCLC_SHIFT)
//@provides oclc_pow
// Integer power by squaring; negative exponents give 0 except for 1 and -1.
#define OCLC_POWER(T) \
    T result = 1, base = a, e = b; \
    for (int bit = 0; bit < OCLC_BITS(T); ++bit) { \
      result = (e & 1) != 0 ? (T)(result * base) : result; \
      base = base * base; \
      e = e >> 1; \
    }
#define OCLC_BITS(T) (sizeof(T) <= 8 ? 8 * (int)sizeof(T) : 32)
#define OCLC_POW(T) \
  T __attribute__((overloadable)) oclc_pow(T a, T b) { \
    OCLC_POWER(T) \
    const T inverse = a == 1 ? (T)(1) : (a == -1 ? ((b & 1) != 0 ? (T)(-1) : (T)(1)) : (T)(0)); \
    return b < 0 ? inverse : result; \
  }
OCLC_SIGNED(OCLC_POW)
#define OCLC_POW_UNSIGNED(T) \
  T __attribute__((overloadable)) oclc_pow(T a, T b) { \
    OCLC_POWER(T) \
    return result; \
  }
OCLC_UNSIGNED(OCLC_POW_UNSIGNED)
//@provides oclc_random_bits
// First word of Philox4x32-10 of the counter (index, step, 0, 0) under the key (stream, 0).
#define OCLC_RANDOM_BITS(T) \
  T __attribute__((overloadable)) oclc_random_bits(T index, T step, T stream) { \
    T c0 = index, c1 = step, c2 = 0, c3 = 0, key0 = stream; \
    uint key1 = 0; \
    for (int round = 0; round < 10; ++round) { \
      const T high0 = mul_hi(c0, (T)(0xD2511F53u)), low0 = c0 * 0xD2511F53u; \
      const T high2 = mul_hi(c2, (T)(0xCD9E8D57u)), low2 = c2 * 0xCD9E8D57u; \
      c0 = high2 ^ c1 ^ key0; \
      c1 = low2; \
      c2 = high0 ^ c3 ^ key1; \
      c3 = low0; \
      key0 += 0x9E3779B9u; \
      key1 += 0xBB67AE85u; \
    } \
    return c0; \
  }
OCLC_RANDOM_BITS(uint) OCLC_RANDOM_BITS(uint4) OCLC_RANDOM_BITS(uint8) OCLC_RANDOM_BITS(uint16)
