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
float16 __attribute__((overloadable)) oclc_exp(float16 a) {
  const float16 top = a > 100 ? (float16)(100) : a, b = top < -150 ? (float16)(-150) : top;
  const float16 n = fma(b, (float16)(1.44269504f), (float16)(12582912.0f)) - 12582912.0f;
  return __builtin_ia32_scalefps512_mask(oclc_exp_rest(b, n) + 1, n, (float16)(0.0f), (ushort)0xffff, 4);
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
OCLC_FLOATS(OCLC_ERF)
#define OCLC_ERF_DOUBLE(T) \
  T __attribute__((overloadable)) oclc_erf(T a) { return erf(a); }
OCLC_DOUBLE(OCLC_ERF_DOUBLE)
//@provides oclc_softplus
// log(1 + e^a) = max(a, 0) + log1p(e^-|a|).
#define OCLC_SOFTPLUS(T) \
  T __attribute__((overloadable)) oclc_softplus(T a) { return (a < 0 ? (T)(0) : a) + log1p(exp(-fabs(a))); }
OCLC_FLOATS(OCLC_SOFTPLUS) OCLC_DOUBLE(OCLC_SOFTPLUS)

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

//@provides oclc_claim
// The number of a tile that no other group has claimed; `tiles` or more if there is none left. The first half of the groups claims
// from the front, the others from the back, so that what a core wrote and read in one kernel it mostly meets again in the next. Tiles from
// the front are counted in the lower half of the counter, those from the back in the upper one, if the halves are wide enough.
int oclc_claim(volatile __global int* claimed, int tiles) {
  if (tiles > 16384) return *claimed >= tiles ? tiles : atomic_inc(claimed);
  const int from_back = 2 * get_group_id(0) >= get_num_groups(0);
  int before = *claimed;
  if ((before & 65535) + (before >> 16) >= tiles) return tiles;
  before = atomic_add(claimed, from_back ? 65536 : 1);
  const int front = before & 65535, back = before >> 16;
  return front + back >= tiles ? tiles : from_back ? tiles - 1 - back : front;
}
//@provides oclc_take
// The number of one of `places`, all 0 if nobody has them, that is the caller's until oclc_give; -1 if there is none.
int oclc_take(volatile __global int* taken, int places) {
  for (int i = 0; i < places; ++i) {
    if (atomic_cmpxchg(taken + i, 0, 1) == 0) return i;
  }
  return -1;
}
//@provides oclc_give
void oclc_give(volatile __global int* taken) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  atomic_xchg(taken, 0);
}
//@provides oclc_finish
// Says that a claimed tile's results are in memory.
void oclc_finish(volatile __global int* done) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  atomic_inc(done);
}
//@provides oclc_wait
// Returns when all tiles are done; their results are seen from then on.
void oclc_wait(volatile __global int* done, int tiles) {
  while (*done < tiles) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#endif
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}
//@provides oclc_claim_trip
// As oclc_claim, in trip `trip` of a loop. The counters of tiles from the front and from the back, next to each other, go on from trip
// to trip, modulo 2^32: what is claimed belongs to the trip, whichever groups have come how far.
int oclc_claim_trip(volatile __global int* claimed, long trip, int tiles) {
  const int from_back = 2 * get_group_id(0) >= get_num_groups(0), front = (tiles + 1) / 2;
  for (int i = 0; i < 2; ++i) {
    const int back = from_back ^ i;
    const uint many = back ? tiles - front : front, begin = (uint)trip * many;
    for (uint before = claimed[back]; before - begin < many;) {
      const uint seen = atomic_cmpxchg(claimed + back, (int)before, (int)(before + 1));
      if (seen == before) return back ? tiles - 1 - (int)(before - begin) : (int)(before - begin);
      before = seen;
    }
  }
  return tiles;
}
//@provides oclc_done
// Whether `tiles` tiles are done, counted from the first trip of a loop on, modulo 2^32.
int oclc_done(volatile __global int* done, long tiles) { return (int)((uint)*done - (uint)tiles) >= 0; }
//@provides oclc_wait_trip
// Returns when oclc_done() does with 1; the results are seen from then on.
void oclc_wait_trip(volatile __global int* done, long tiles) {
  while (!oclc_done(done, tiles)) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#endif
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}
//@provides oclc_leave
// Counters are 16 ints apart. The last group to leave, which nobody can wait for any more, makes them zero again.
void oclc_leave(volatile __global int* progress, int counters) {
  if (atomic_inc(progress) != (int)get_num_groups(0) - 1) return;
  for (int i = 0; i < counters; ++i) progress[i * 16] = progress[i * 16 + 1] = 0;
}

//@provides oclc_prefetch
// Asks for the cache line at p, which may point anywhere. Compilers to an intermediate language know no such hint.
#if defined(__x86_64__) || defined(__aarch64__)
#define oclc_prefetch(p) __builtin_prefetch((const void*)(size_t)(p))
#else
#define oclc_prefetch(p)
#endif

//@provides oclc_prefetch_l2
// The same for the second-level cache: lines of one column fall into one set of the first.
#if defined(__x86_64__) || defined(__aarch64__)
#define oclc_prefetch_l2(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#else
#define oclc_prefetch_l2(p)
#endif

//@provides oclc_transpose
// Rows become columns, by the three (two) steps of shuffles that vector units have.
void __attribute__((overloadable)) oclc_transpose(float4* r) {
  const float4 a = (float4)(r[0].x, r[1].x, r[0].y, r[1].y), b = (float4)(r[0].z, r[1].z, r[0].w, r[1].w);
  const float4 c = (float4)(r[2].x, r[3].x, r[2].y, r[3].y), d = (float4)(r[2].z, r[3].z, r[2].w, r[3].w);
  r[0] = (float4)(a.lo, c.lo);
  r[1] = (float4)(a.hi, c.hi);
  r[2] = (float4)(b.lo, d.lo);
  r[3] = (float4)(b.hi, d.hi);
}
void __attribute__((overloadable)) oclc_transpose(float8* r) {
  float8 a[8], b[8];
  #pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float8 x = r[i], y = r[i + 1];
    a[i] = (float8)(x.s0, y.s0, x.s1, y.s1, x.s4, y.s4, x.s5, y.s5);
    a[i + 1] = (float8)(x.s2, y.s2, x.s3, y.s3, x.s6, y.s6, x.s7, y.s7);
  }
  #pragma unroll
  for (int i = 0; i < 8; i += 4) {
    b[i] = (float8)(a[i].s01, a[i + 2].s01, a[i].s45, a[i + 2].s45);
    b[i + 1] = (float8)(a[i].s23, a[i + 2].s23, a[i].s67, a[i + 2].s67);
    b[i + 2] = (float8)(a[i + 1].s01, a[i + 3].s01, a[i + 1].s45, a[i + 3].s45);
    b[i + 3] = (float8)(a[i + 1].s23, a[i + 3].s23, a[i + 1].s67, a[i + 3].s67);
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    r[i] = (float8)(b[i].lo, b[i + 4].lo);
    r[i + 4] = (float8)(b[i].hi, b[i + 4].hi);
  }
}
void __attribute__((overloadable)) oclc_transpose(float16* r) {
  float16 a[16], b[16];
  #pragma unroll
  for (int i = 0; i < 16; i += 2) {
    const float16 x = r[i], y = r[i + 1];
    a[i] = (float16)(x.s0, y.s0, x.s1, y.s1, x.s4, y.s4, x.s5, y.s5, x.s8, y.s8, x.s9, y.s9, x.sc, y.sc, x.sd, y.sd);
    a[i + 1] = (float16)(x.s2, y.s2, x.s3, y.s3, x.s6, y.s6, x.s7, y.s7, x.sa, y.sa, x.sb, y.sb, x.se, y.se, x.sf, y.sf);
  }
  #pragma unroll
  for (int i = 0; i < 16; i += 4) {
    #pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float16 x = a[i + j], y = a[i + j + 2];
      b[i + 2 * j] = (float16)(x.s01, y.s01, x.s45, y.s45, x.s89, y.s89, x.scd, y.scd);
      b[i + 2 * j + 1] = (float16)(x.s23, y.s23, x.s67, y.s67, x.sab, y.sab, x.sef, y.sef);
    }
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float16 p = (float16)(b[i].lo, b[i + 4].lo), q = (float16)(b[i + 8].lo, b[i + 12].lo);
    const float16 s = (float16)(b[i].hi, b[i + 4].hi), t = (float16)(b[i + 8].hi, b[i + 12].hi);
    r[i] = (float16)(p.s0123, p.s89ab, q.s0123, q.s89ab);
    r[i + 4] = (float16)(p.s4567, p.scdef, q.s4567, q.scdef);
    r[i + 8] = (float16)(s.s0123, s.s89ab, t.s0123, t.s89ab);
    r[i + 12] = (float16)(s.s4567, s.scdef, t.s4567, t.scdef);
  }
}

//@provides oclc_store
// v at p, which need not be aligned for more than a number: one store where compilers know such types, while vstore may be several.
#ifdef __clang__
#define OCLC_STORE_IN(T, W, SPACE) \
  void __attribute__((overloadable)) oclc_store(T##W v, SPACE T* p) { \
    typedef T##W at_any __attribute__((aligned(sizeof(T)))); \
    *(SPACE at_any*)p = v; \
  }
#else
#define OCLC_STORE_IN(T, W, SPACE) \
  void __attribute__((overloadable)) oclc_store(T##W v, SPACE T* p) { vstore##W(v, 0, p); }
#endif
#define OCLC_STORE(T) \
  OCLC_STORE_IN(T, 4, __global) OCLC_STORE_IN(T, 8, __global) OCLC_STORE_IN(T, 16, __global) \
  OCLC_STORE_IN(T, 4, __local) OCLC_STORE_IN(T, 8, __local) OCLC_STORE_IN(T, 16, __local) \
  OCLC_STORE_IN(T, 4, __private) OCLC_STORE_IN(T, 8, __private) OCLC_STORE_IN(T, 16, __private)
OCLC_STORE(float) OCLC_STORE(int) OCLC_STORE(uint) OCLC_STORE(uchar) OCLC_STORE(ushort)
//@provides oclc_load4 oclc_load8 oclc_load16
// The vector at p, which need not be aligned for more than a number: one load where compilers know such types. What vload makes of
// it may be a load of each number, of which the sum or difference of two such vectors becomes many narrow ones.
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define OCLC_LOAD_IN(W, SPACE) \
  float##W __attribute__((overloadable)) oclc_load##W(const SPACE float* p) { \
    typedef float##W at_any __attribute__((aligned(4))); \
    return *(const SPACE at_any*)p; \
  }
#else
#define OCLC_LOAD_IN(W, SPACE) \
  float##W __attribute__((overloadable)) oclc_load##W(const SPACE float* p) { return vload##W(0, p); }
#endif
#define OCLC_LOAD(W) OCLC_LOAD_IN(W, __global) OCLC_LOAD_IN(W, __local) OCLC_LOAD_IN(W, __private)
OCLC_LOAD(4) OCLC_LOAD(8) OCLC_LOAD(16)
//@provides oclc_stream oclc_streamed
// v at p, past the caches where a whole vector lies in line: for results that no cache holds, whose lines would first be read.
// oclc_streamed() makes them seen before what its caller stores next.
#if defined(__x86_64__) && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store) && __has_builtin(__builtin_ia32_sfence)
#define OCLC_STREAMS
#endif
#endif
#ifdef OCLC_STREAMS
#define OCLC_STREAM(W) \
  void __attribute__((overloadable)) oclc_stream(float##W v, __global float* p) { \
    if (((size_t)p & (sizeof(v) - 1)) == 0) \
      __builtin_nontemporal_store(v, (__global float##W*)p); \
    else \
      oclc_store(v, p); \
  }
void oclc_streamed(void) { __builtin_ia32_sfence(); }
#else
#define OCLC_STREAM(W) \
  void __attribute__((overloadable)) oclc_stream(float##W v, __global float* p) { oclc_store(v, p); }
void oclc_streamed(void) {}
#endif
OCLC_STREAM(4) OCLC_STREAM(8)
void __attribute__((overloadable)) oclc_stream(float16 v, __global float* p) {
#ifdef OCLC_STREAMS
  if (((size_t)p & (sizeof(v) - 1)) == 0)
    __builtin_nontemporal_store(v, (__global float16*)p);
  else if (((size_t)p & (sizeof(v.lo) - 1)) == 0)  // rows of whole half lines, of which every second line is begun by a row
    oclc_stream(v.lo, p), oclc_stream(v.hi, p + 8);
  else
#endif
    oclc_store(v, p);
}
