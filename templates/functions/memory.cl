// Memory as caches and vectors have it: lines that are asked for, squares that are turned, stores of whole vectors and past the caches.

//@provides oclc_prefetch
// Asks for the cache line at p, which may point anywhere. Compilers to an intermediate language know no such hint, and kernels that are
// not optimized wait for little else than themselves.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OCLC_UNOPTIMIZED)
#define oclc_prefetch(p) __builtin_prefetch((const void*)(size_t)(p))
#else
#define oclc_prefetch(p)
#endif

//@provides oclc_prefetch_l2
// The same for the second-level cache: lines of one column fall into one set of the first.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OCLC_UNOPTIMIZED)
#define oclc_prefetch_l2(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#else
#define oclc_prefetch_l2(p)
#endif

//@provides oclc_load_once
// 16 bytes that are read once a run, with what lies beside them: what else is in the caches stays there.
#if OCLC_NV_SM >= 80
uint4 oclc_load_once(const __global uint4* p) {
  uint4 v;
  __asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
#else
uint4 oclc_load_once(const __global uint4* p) { return *p; }
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

//@provides oclc_member
// The row of the member that a tile belongs to. A ragged group's table has the number of its members, then a row of `width` numbers for
// each, of which the first is the member's first tile.
__global const long* oclc_member(__global const long* members, int width, int tile) {
  int first = 0, end = (int)members[0];
  while (end - first > 1) {
    const int middle = (first + end) / 2;
    if (members[1 + middle * width] <= tile)
      first = middle;
    else
      end = middle;
  }
  return members + 1 + first * width;
}
