//@provides oclc_terms
// Without optimization each vector of a register tile goes through memory for each term. There a function does what the loop behind its call
// would, in the same order: acc[i][j] += the sum over `terms` of a[i] * (vector j of w), AT being a[i] at the first term, NEXT at the
// second, and W_STEP floats from one term of w to the next. Clang leaves functions of the least size to the optimizer even then.
#ifdef OCLC_UNOPTIMIZED
#define OCLC_SUM(W, i, j) float##W s##i##j = sums[(r + i) * vectors + v + j];
#define OCLC_ADD(W, i, j) s##i##j = fma((float##W)a[r + i][t * a_step], x##j, s##i##j);
#define OCLC_KEEP(W, i, j) sums[(r + i) * vectors + v + j] = s##i##j;
#define OCLC_ONE(DO, W) DO(W, 0, 0)
#define OCLC_PAIR(DO, W) DO(W, 0, 0) DO(W, 0, 1)
#define OCLC_EIGHT(DO, W) OCLC_PAIR(DO, W) DO(W, 1, 0) DO(W, 1, 1) DO(W, 2, 0) DO(W, 2, 1) DO(W, 3, 0) DO(W, 3, 1)
#define OCLC_TERMS_BLOCK(BLOCK, VECTORS, W, SW) \
  BLOCK(OCLC_SUM, W) \
  for (long t = 0; t < terms; ++t) { \
    const float##W x0 = *(SW const oclc_floats##W*)(w + t * w_step + v * W); \
    const float##W x1 = VECTORS == 1 ? x0 : *(SW const oclc_floats##W*)(w + t * w_step + (v + 1) * W); \
    BLOCK(OCLC_ADD, W) \
  } \
  BLOCK(OCLC_KEEP, W)
#define OCLC_TERMS(W, SA, SW) \
  static void __attribute__((overloadable, minsize)) oclc_add_terms(float##W* sums, int rows, int vectors, SA const float* const* a, \
                                                                    long a_step, SW const float* w, long w_step, long terms) { \
    for (int v = 0; v < vectors; v += 2) { \
      int r = 0; \
      if (v + 1 < vectors) { \
        for (; r + 3 < rows; r += 4) { OCLC_TERMS_BLOCK(OCLC_EIGHT, 2, W, SW) } \
        for (; r < rows; ++r) { OCLC_TERMS_BLOCK(OCLC_PAIR, 2, W, SW) } \
      } else { \
        for (; r < rows; ++r) { OCLC_TERMS_BLOCK(OCLC_ONE, 1, W, SW) } \
      } \
    } \
  }
#define OCLC_TERMS_OF(W) \
  typedef float##W oclc_floats##W __attribute__((aligned(4))); \
  OCLC_TERMS(W, __global, __global) OCLC_TERMS(W, __global, __local) OCLC_TERMS(W, __local, __global) OCLC_TERMS(W, __local, __local)
OCLC_TERMS_OF(4) OCLC_TERMS_OF(8) OCLC_TERMS_OF(16)
#define oclc_terms(ACC, ROWS, VECTORS, AT, NEXT, W, W_STEP, TERMS) \
  { \
    int i = 0; \
    __typeof__(&(AT)) from[ROWS]; \
    for (; i < ROWS; ++i) from[i] = &(AT); \
    i = 0; \
    oclc_add_terms(&ACC[0][0], ROWS, VECTORS, from, &(NEXT) - &(AT), W, W_STEP, TERMS); \
  }
#else
#define oclc_terms(ACC, ROWS, VECTORS, AT, NEXT, W, W_STEP, TERMS)
#endif

//@provides oclc_optimized
// Whether the compiler optimizes: behind a condition that is 0 it generates no code even if it does not.
#ifdef OCLC_UNOPTIMIZED
#define oclc_optimized 0
#else
#define oclc_optimized 1
#endif
