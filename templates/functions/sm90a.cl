// What kernels use of NVIDIA's sm_90 and sm_90a beyond OpenCL C, in inline PTX. Instructions that the OpenCL compiler does not know
// stand behind "//@", a comment of PTX that the runtime lifts (runtime/sm90a.h). Local addresses are 32-bit shared addresses.
//
// launch    none: helper functions
// local     none
// paper     NVIDIA: PTX ISA 8.0, Asynchronous warpgroup-level matrix instructions; mbarrier.
//@only OCLC_SM90A

//@provides oclc_shared
__attribute__((always_inline)) uint oclc_shared(const __local void* p) { return (uint)(size_t)p; }

//@provides oclc_barrier_init oclc_barrier_arrive oclc_barrier_wait
// Barriers of phases, 8 bytes each: a phase ends with its `count`th arrival; waiting for phase 0, 1, 0, ... in turn.
void oclc_barrier_init(uint barrier, uint count) {
  __asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
void oclc_barrier_arrive(uint barrier) {
  __asm volatile("{.reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0];}" ::"r"(barrier) : "memory");
}
void oclc_barrier_wait(uint barrier, uint phase) {
  uint done;
  do {
    __asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
  } while (!done);
}

//@provides oclc_barrier_expect oclc_copy_bulk
// The phase also waits for so many bytes: one arrival, by the work-item that then has them copied, a multiple of 16.
void oclc_barrier_expect(uint barrier, uint bytes) {
  __asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
void oclc_copy_bulk(uint to, const __global void* from, uint bytes, uint barrier) {
  __asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}

//@provides oclc_copy_16 oclc_copy_4 oclc_copies_arrive
// 16 or 4 bytes of local memory become the first `bytes` of those at `from`, all or none, then zeros; once all copies that a work-item asked
// for are done, it has arrived at the barrier.
void oclc_copy_16(uint to, const __global void* from, uint bytes) {
  __asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
void oclc_copy_4(uint to, const __global void* from, uint bytes) {
  __asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
void oclc_copies_arrive(uint barrier) {
  __asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

//@provides oclc_publish
// What this work-item wrote to local memory can be seen by matrix units from its next arrival at a barrier on, and what it has read
// there may be overwritten by bulk copies from then on: an arrival alone does not wait for reads.
void oclc_publish(void) { __asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@provides oclc_fewer_registers oclc_more_registers
// Of the 128 registers that each of 512 work-items begins with, half of them give 48 to the other half, a warpgroup together.
void oclc_fewer_registers(void) { __asm volatile("//@setmaxnreg.dec.sync.aligned.u32 80;" ::: "memory"); }
void oclc_more_registers(void) { __asm volatile("//@setmaxnreg.inc.sync.aligned.u32 176;" ::: "memory"); }

//@provides oclc_registers_40 oclc_registers_232
// Of the 168 registers that each of 384 work-items begins with, a third of them gives 128 to the others, a warpgroup together.
void oclc_registers_40(void) { __asm volatile("//@setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory"); }
void oclc_registers_232(void) { __asm volatile("//@setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory"); }

//@provides oclc_registers_120 oclc_registers_192
// Of those, a third gives 48.
void oclc_registers_120(void) { __asm volatile("//@setmaxnreg.dec.sync.aligned.u32 120;" ::: "memory"); }
void oclc_registers_192(void) { __asm volatile("//@setmaxnreg.inc.sync.aligned.u32 192;" ::: "memory"); }

//@provides oclc_registers_32 oclc_registers_160
// Of the 128 registers that each of 512 work-items begins with, a quarter of them gives 96 to the others, a warpgroup together.
void oclc_registers_32(void) { __asm volatile("//@setmaxnreg.dec.sync.aligned.u32 32;" ::: "memory"); }
void oclc_registers_160(void) { __asm volatile("//@setmaxnreg.inc.sync.aligned.u32 160;" ::: "memory"); }

//@provides oclc_next_of
// Of a counter that goes on from `last` to 0: what it was.
uint oclc_next_of(volatile __global uint* counter, uint last) {
  uint before;
  __asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(last) : "memory");
  return before;
}

//@provides oclc_hand_in oclc_wait_for
// Counts on, as oclc_next_of does, once others can see what the warp has stored: by one work-item, behind a barrier of the warp.
// Waits for the count, with such a barrier behind it, and sees what was stored before.
void oclc_hand_in(volatile __global uint* counter, uint last) {
  __asm volatile("fence.acq_rel.gpu; red.relaxed.gpu.global.inc.u32 [%0], %1;" ::"l"(counter), "r"(last) : "memory");
}
void oclc_wait_for(volatile __global uint* counter, uint count) {
  uint value;
  do {
    __asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  } while (value < count);
}

//@provides oclc_warp_barrier
void oclc_warp_barrier(void) { __asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

//@provides oclc_matrix_load
// Four 8x8 matrices of 32-bit elements by halves: lane 4 * i + j gets element j of row i of each; lane l gives the address of row
// l % 8 of matrix l / 8.
__attribute__((always_inline)) uint4 oclc_matrix_load(uint row) {
  uint4 v;
  __asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(row) : "memory");
  return v;
}

//@provides oclc_tf32
// To 10 bits of mantissa, nearest, ties away from zero; the rest x - oclc_tf32(x) is exact.
float4 __attribute__((overloadable)) oclc_tf32(float4 x) { return as_float4((as_uint4(x) + 0x1000u) & 0xffffe000u); }
float __attribute__((overloadable)) oclc_tf32(float x) { return as_float((as_uint(x) + 0x1000u) & 0xffffe000u); }

//@provides oclc_largest_bits
// The bits of the largest of eight elements.
uint oclc_largest_bits(float4 x, float4 y) {
  const float4 z = fmax(fabs(x), fabs(y));
  return as_uint(fmax(fmax(z.x, z.y), fmax(z.z, z.w)));
}

//@provides oclc_finite_bits oclc_warp_largest oclc_loaders_any
// The bits of the largest of eight elements that is finite; the largest of a warp's; and whether a condition holds for one of 128
// work-items, who wait for each other and see what was stored before.
uint oclc_finite_bits(float4 x, float4 y) {
  const uint4 a = as_uint4(fabs(x)), b = as_uint4(fabs(y)), infinite = 0x7f800000u;
  const uint4 z = max(a < infinite ? a : (uint4)(0), b < infinite ? b : (uint4)(0));
  return max(max(z.x, z.y), max(z.z, z.w));
}
uint oclc_warp_largest(uint x) {
  uint largest;
  __asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(x));
  return largest;
}
uint oclc_loaders_any(uint condition) {
  uint any;
  __asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; barrier.cta.red.or.aligned.pred p, 1, 128, p; selp.u32 %0, 1, 0, p;}"
                 : "=r"(any) : "r"(condition) : "memory");
  return any;
}

//@provides oclc_exceeds
// Whether the exponent of an element with those bits is larger than that exponent's.
int oclc_exceeds(uint bits, uint exponent) { return bits >= exponent + (1u << 23); }

//@provides oclc_largest_exponent
// The bits of the exponent of the largest of 32 elements, eight in each of four neighbouring work-items; at least 2^-111, so that
// both scales are finite.
uint oclc_largest_exponent(float4 x, float4 y) {
  const uint v = max(oclc_largest_bits(x, y), 16u << 23);
  uint w, r;
  __asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(w) : "r"(v));
  const uint u = max(v, w);
  __asm volatile("shfl.sync.bfly.b32 %0, %1, 2, 31, 0xffffffff;" : "=r"(r) : "r"(u));
  return max(u, r) & 0x7f800000u;
}

//@provides oclc_ask_for
// Asks for bytes that a later launch reads, a multiple of 16, to come to the second-level cache: the share of the `of` that number
// `which` has, by a warp.
void oclc_ask_for(const __global uint* from, int bytes, int which, int of) {
  const int piece = 2048, lane = get_local_id(0) % 32;
  for (int at = (which + lane * of) * piece; at < bytes; at += 32 * of * piece)
    __asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"((const __global uchar*)from + at), "r"(min(piece, bytes - at))
                   : "memory");
}

//@provides oclc_from_lane
// What work-item `lane` of the warp has.
uint oclc_from_lane(uint x, int lane) {
  uint there;
  __asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(there) : "r"(x), "r"(lane));
  return there;
}

//@provides oclc_warp_any
// Whether a condition holds for one of a warp's work-items.
uint oclc_warp_any(uint condition) {
  uint any;
  __asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.any.pred p, p, 0xffffffff; selp.u32 %0, 1, 0, p;}"
                 : "=r"(any) : "r"(condition));
  return any;
}

//@provides oclc_scale_up oclc_scale_down
// The power of two that takes numbers of that exponent to 2^14 .. 2^15, and the one that takes them back, times oclc_regain(step).
float oclc_scale_up(uint exponent) { return as_float((268u << 23) - exponent); }
float oclc_scale_down(uint exponent, int step) { return as_float(exponent - (14u << 23) + (uint)(step & 1)); }

//@provides oclc_regain
// The matrix unit truncates: its sums of some ten terms are too small by 5.5e-8 to 8e-8 of themselves on average (measured on an
// H200), which no number of them evens out. So every second sum is multiplied by 1 + 2^-23, in neighbouring rows another one, since
// there may be only one. Exact sums, as of small integers, are exact no more.
float oclc_regain(int step) { return as_float(0x3f800000u + (uint)(step & 1)); }

//@provides oclc_rescale
// What takes a sum of numbers scaled by the first exponent's power of two to one scaled by the second's, no smaller; 0 where it
// would vanish.
float oclc_rescale(uint from, uint to) { return as_float((uint)max((int)((127u << 23) + from - to), 0)); }

//@provides oclc_halves oclc_rests
// Pairs of halves (x.xy, y.xy, x.zw, y.zw), nearest, ties to even, the first of a pair in the low bits; and of what they leave.
uint4 oclc_halves(float4 x, float4 y) {
  return (uint4)(oclc_half_pair(x.x, x.y), oclc_half_pair(y.x, y.y), oclc_half_pair(x.z, x.w), oclc_half_pair(y.z, y.w));
}
uint4 oclc_rests(float4 x, float4 y, uint4 pairs) {
  return (uint4)(oclc_half_pair_rest(x.x, x.y, pairs.x), oclc_half_pair_rest(y.x, y.y, pairs.y), oclc_half_pair_rest(x.z, x.w, pairs.z),
                 oclc_half_pair_rest(y.z, y.w, pairs.w));
}

//@provides oclc_wgmma_begin oclc_wgmma_end
void oclc_wgmma_begin(void) { __asm volatile("//@wgmma.fence.sync.aligned;" ::: "memory"); }
void oclc_wgmma_end(void) { __asm volatile("//@wgmma.commit_group.sync.aligned;" ::: "memory"); }

//@provides oclc_wgmma_tile
// Where B's tile of 32 k lies: rows of 128 bytes, one a column, 16-byte pieces swapped by the column's number, from a multiple of
// 1024 on.
ulong oclc_wgmma_tile(uint address) { return (ulong)((address & 0x3ffff) >> 4) | (1UL << 16) | (64UL << 32) | (1UL << 62); }

//@provides oclc_wgmma_half_tile
// Where B's tile of 32 k of 16 bits lies: rows of 64 bytes, one a column, 16-byte pieces swapped by half the column's number, from a
// multiple of 512 on.
ulong oclc_wgmma_half_tile(uint address) { return (ulong)((address & 0x3ffff) >> 4) | (1UL << 16) | (32UL << 32) | (2UL << 62); }

//@provides OCLC_WGMMA OCLC_WGMMA_LOCAL OCLC_WGMMA_WAIT
// A function that begins d = a * b or d += a * b, and one that waits for it: `registers` names d's in the instruction, `sources` those
// of a and b behind them, `list` gives d's as operands.
#define OCLC_REGISTERS_32                                                                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                      \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OCLC_REGISTERS_64                                                                                                     \
  OCLC_REGISTERS_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                        \
                    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OCLC_REGISTERS_96                                                                                                     \
  OCLC_REGISTERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                        \
                    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define OCLC_REGISTERS_128                                                                                                    \
  OCLC_REGISTERS_96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "              \
                    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define OCLC_LIST_8(use, d, i)                                                                                                \
  use(d[i]), use(d[i + 1]), use(d[i + 2]), use(d[i + 3]), use(d[i + 4]), use(d[i + 5]), use(d[i + 6]), use(d[i + 7])
#define OCLC_LIST_32(use, d, i) \
  OCLC_LIST_8(use, d, i), OCLC_LIST_8(use, d, i + 8), OCLC_LIST_8(use, d, i + 16), OCLC_LIST_8(use, d, i + 24)
#define OCLC_LIST_64(use, d, i) OCLC_LIST_32(use, d, i), OCLC_LIST_32(use, d, i + 32)
#define OCLC_LIST_96(use, d, i) OCLC_LIST_64(use, d, i), OCLC_LIST_32(use, d, i + 64)
#define OCLC_LIST_128(use, d, i) OCLC_LIST_64(use, d, i), OCLC_LIST_64(use, d, i + 64)
#define OCLC_WRITTEN(x) "=f"(x)
#define OCLC_ADDED(x) "+f"(x)
#define OCLC_WGMMA_BEGUN(name, shape, registers, sources, list, use, adds)                                                    \
  __attribute__((always_inline)) void name(float* d, uint4 a, ulong b) {                                                        \
    __asm volatile("//@{.reg .pred p; setp.ne.b32 p, " adds ", 0; wgmma.mma_async.sync.aligned." shape " {" registers "}, "      \
                   sources ";}"                                                                                                \
                   : list(use, d, 0) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b) : "memory");                              \
  }
#define OCLC_WGMMA(name, shape, registers, sources, list)                            \
  OCLC_WGMMA_BEGUN(name##_zero, shape, registers, sources, list, OCLC_WRITTEN, "0")  \
  OCLC_WGMMA_BEGUN(name, shape, registers, sources, list, OCLC_ADDED, "1")
#define OCLC_WGMMA_LOCAL(name, shape, registers, sources, list)                                                               \
  __attribute__((always_inline)) void name(float* d, ulong a, ulong b) {                                                       \
    __asm volatile("//@{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." shape " {" registers "}, " sources ";}" \
                   : list(OCLC_ADDED, d, 0) : "l"(a), "l"(b) : "memory");                                                      \
  }
#define OCLC_WGMMA_WAIT(name, list)                                                                                           \
  __attribute__((always_inline)) void name(float* d) {                                                                         \
    __asm volatile("//@wgmma.wait_group.sync.aligned 0;" : list(OCLC_ADDED, d, 0)::"memory");                                    \
  }

//@provides oclc_wgmma_wait_but_last
// Until all have ended but those between the last oclc_wgmma_begin and oclc_wgmma_end, whose sums and halves are in use still.
void oclc_wgmma_wait_but_last(void) { __asm volatile("//@wgmma.wait_group.sync.aligned 1;" ::: "memory"); }

//@provides oclc_wgmma_64_wait
OCLC_WGMMA_WAIT(oclc_wgmma_64_wait, OCLC_LIST_32)

//@provides oclc_wgmma_128_wait
OCLC_WGMMA_WAIT(oclc_wgmma_128_wait, OCLC_LIST_64)

//@provides oclc_wgmma_192_wait
OCLC_WGMMA_WAIT(oclc_wgmma_192_wait, OCLC_LIST_96)

//@provides oclc_wgmma_256_wait
OCLC_WGMMA_WAIT(oclc_wgmma_256_wait, OCLC_LIST_128)

//@provides oclc_wgmma_64_zero oclc_wgmma_64
// d[64 x 64] (+)= a[64 x 8] * b[8 x 64] of TF32, a warpgroup together: item 32 * w + 4 * i + j holds d[16 * w + i + 8 * h]
// [8 * c + 2 * j + l] in d[4 * c + 2 * h + l]. Operands and d are to be left alone until the wait.
OCLC_WGMMA(oclc_wgmma_64, "m64n64k8.f32.tf32.tf32", OCLC_REGISTERS_32, "{%32, %33, %34, %35}, %36, p, 1, 1", OCLC_LIST_32)

//@provides oclc_wgmma_128_zero oclc_wgmma_128
// The same of 128 columns.
OCLC_WGMMA(oclc_wgmma_128, "m64n128k8.f32.tf32.tf32", OCLC_REGISTERS_64, "{%64, %65, %66, %67}, %68, p, 1, 1", OCLC_LIST_64)

//@provides oclc_wgmma_half_64_zero oclc_wgmma_half_64
// d[64 x 64] (+)= a[64 x 16] * b[16 x 64] of halves, d as above. Item 32 * w + 4 * i + j gives the pairs a[16 * w + i][2 * j ..],
// a[16 * w + i + 8][2 * j ..], a[16 * w + i][2 * j + 8 ..], a[16 * w + i + 8][2 * j + 8 ..].
OCLC_WGMMA(oclc_wgmma_half_64, "m64n64k16.f32.f16.f16", OCLC_REGISTERS_32, "{%32, %33, %34, %35}, %36, p, 1, 1, 0", OCLC_LIST_32)

//@provides oclc_wgmma_half_128_zero oclc_wgmma_half_128
// The same of 128 columns.
OCLC_WGMMA(oclc_wgmma_half_128, "m64n128k16.f32.f16.f16", OCLC_REGISTERS_64, "{%64, %65, %66, %67}, %68, p, 1, 1, 0",
           OCLC_LIST_64)

//@provides oclc_wgmma_half_192_zero oclc_wgmma_half_192
// The same of 192 columns.
OCLC_WGMMA(oclc_wgmma_half_192, "m64n192k16.f32.f16.f16", OCLC_REGISTERS_96, "{%96, %97, %98, %99}, %100, p, 1, 1, 0", OCLC_LIST_96)

//@provides oclc_wgmma_half_256_zero oclc_wgmma_half_256
// The same of 256 columns.
OCLC_WGMMA(oclc_wgmma_half_256, "m64n256k16.f32.f16.f16", OCLC_REGISTERS_128, "{%128, %129, %130, %131}, %132, p, 1, 1, 0",
           OCLC_LIST_128)

//@provides oclc_wgmma_made_64
// The sums of 64 x 64: d[64 x 64] += a[64 x 16] * b[16 x 64] of halves that both lie in local memory, d as above.
OCLC_WGMMA_LOCAL(oclc_wgmma_made_64, "m64n64k16.f32.f16.f16", OCLC_REGISTERS_32, "%32, %33, p, 1, 1, 0, 0", OCLC_LIST_32)

//@provides oclc_wgmma_made_128
// The same of 128 columns.
OCLC_WGMMA_LOCAL(oclc_wgmma_made_128, "m64n128k16.f32.f16.f16", OCLC_REGISTERS_64, "%64, %65, p, 1, 1, 0, 0", OCLC_LIST_64)

//@provides oclc_wgmma_made_192
// The same of 192 columns.
OCLC_WGMMA_LOCAL(oclc_wgmma_made_192, "m64n192k16.f32.f16.f16", OCLC_REGISTERS_96, "%96, %97, p, 1, 1, 0, 0", OCLC_LIST_96)

//@provides oclc_wgmma_made_256
// The same of 256 columns.
OCLC_WGMMA_LOCAL(oclc_wgmma_made_256, "m64n256k16.f32.f16.f16", OCLC_REGISTERS_128, "%128, %129, p, 1, 1, 0, 0", OCLC_LIST_128)
