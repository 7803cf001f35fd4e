// What kernels use of NVIDIA's sm_90 and sm_90a beyond OpenCL C, in inline PTX. Instructions that the OpenCL compiler does not know
// stand behind "//@", a comment of PTX that the runtime lifts (runtime/sm90a.h). Local addresses are 32-bit shared addresses.
//
// launch    none: helper functions
// local     none
// paper     NVIDIA: PTX ISA 8.0, Asynchronous warpgroup-level matrix instructions; mbarrier.

//@provides oclc_shared
#ifdef OCLC_SM90A
__attribute__((always_inline)) uint oclc_shared(const __local void* p) { return (uint)(size_t)p; }
#endif

//@provides oclc_barrier_init oclc_barrier_arrive oclc_barrier_wait
// Barriers of phases, 8 bytes each: a phase ends with its `count`th arrival; waiting for phase 0, 1, 0, ... in turn.
#ifdef OCLC_SM90A
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
#endif

//@provides oclc_publish
// What this work-item wrote to local memory can be seen by matrix units from its next arrival at a barrier on.
#ifdef OCLC_SM90A
void oclc_publish(void) { __asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif

//@provides oclc_fewer_registers oclc_more_registers
// Of the 128 registers that each of 512 work-items begins with, half of them give 48 to the other half, a warpgroup together.
#ifdef OCLC_SM90A
void oclc_fewer_registers(void) { __asm volatile("//@setmaxnreg.dec.sync.aligned.u32 80;" ::: "memory"); }
void oclc_more_registers(void) { __asm volatile("//@setmaxnreg.inc.sync.aligned.u32 176;" ::: "memory"); }
#endif

//@provides oclc_warp_barrier
#ifdef OCLC_SM90A
void oclc_warp_barrier(void) { __asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
#endif

//@provides oclc_matrix_load
// Four 8x8 matrices of 32-bit elements by halves: lane 4 * i + j gets element j of row i of each; lane l gives the address of row
// l % 8 of matrix l / 8.
#ifdef OCLC_SM90A
__attribute__((always_inline)) uint4 oclc_matrix_load(uint row) {
  uint4 v;
  __asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(row) : "memory");
  return v;
}
#endif

//@provides oclc_tf32
// To 10 bits of mantissa, nearest, ties away from zero; the rest x - oclc_tf32(x) is exact.
#ifdef OCLC_SM90A
float4 __attribute__((overloadable)) oclc_tf32(float4 x) { return as_float4((as_uint4(x) + 0x1000u) & 0xffffe000u); }
float __attribute__((overloadable)) oclc_tf32(float x) { return as_float((as_uint(x) + 0x1000u) & 0xffffe000u); }
#endif

//@provides oclc_wgmma_begin oclc_wgmma_end
#ifdef OCLC_SM90A
void oclc_wgmma_begin(void) { __asm volatile("//@wgmma.fence.sync.aligned;" ::: "memory"); }
void oclc_wgmma_end(void) { __asm volatile("//@wgmma.commit_group.sync.aligned;" ::: "memory"); }
#endif

//@provides oclc_wgmma_tile
// Where B's tile of 32 k lies: rows of 128 bytes, one a column, 16-byte pieces swapped by the column's number, from a multiple of
// 1024 on.
#ifdef OCLC_SM90A
ulong oclc_wgmma_tile(uint address) { return (ulong)((address & 0x3ffff) >> 4) | (1UL << 16) | (64UL << 32) | (1UL << 62); }
#endif

//@provides oclc_wgmma_64_zero oclc_wgmma_64 oclc_wgmma_64_wait
// d[64 x 64] (+)= a[64 x 8] * b[8 x 64] of TF32, a warpgroup together: item 32 * w + 4 * i + j holds d[16 * w + i + 8 * h]
// [8 * c + 2 * j + l] in d[4 * c + 2 * h + l]. Operands and d are to be left alone until the wait.
#ifdef OCLC_SM90A
__attribute__((always_inline)) void oclc_wgmma_64_zero(float* d, uint4 a, ulong b) {
  __asm volatile("//@{.reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1;}"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]),
                   "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]),
                   "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]),
                   "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]),
                   "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
                   "=f"(d[30]), "=f"(d[31])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b) : "memory");
}
__attribute__((always_inline)) void oclc_wgmma_64(float* d, uint4 a, ulong b) {
  __asm volatile("//@{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b) : "memory");
}
__attribute__((always_inline)) void oclc_wgmma_64_wait(float* d) {
  __asm volatile("//@wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 :: "memory");
}
#endif

//@provides oclc_wgmma_128_zero oclc_wgmma_128 oclc_wgmma_128_wait
// d[64 x 128] (+)= a[64 x 8] * b[8 x 128] of TF32, a warpgroup together: item 32 * w + 4 * i + j holds d[16 * w + i + 8 * h]
// [8 * c + 2 * j + l] in d[4 * c + 2 * h + l]. Operands and d are to be left alone until the wait.
#ifdef OCLC_SM90A
__attribute__((always_inline)) void oclc_wgmma_128_zero(float* d, uint4 a, ulong b) {
  __asm volatile("//@{.reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1;}"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]),
                   "=f"(d[6]), "=f"(d[7]), "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]),
                   "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]), "=f"(d[17]),
                   "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]),
                   "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
                   "=f"(d[30]), "=f"(d[31]), "=f"(d[32]), "=f"(d[33]), "=f"(d[34]), "=f"(d[35]),
                   "=f"(d[36]), "=f"(d[37]), "=f"(d[38]), "=f"(d[39]), "=f"(d[40]), "=f"(d[41]),
                   "=f"(d[42]), "=f"(d[43]), "=f"(d[44]), "=f"(d[45]), "=f"(d[46]), "=f"(d[47]),
                   "=f"(d[48]), "=f"(d[49]), "=f"(d[50]), "=f"(d[51]), "=f"(d[52]), "=f"(d[53]),
                   "=f"(d[54]), "=f"(d[55]), "=f"(d[56]), "=f"(d[57]), "=f"(d[58]), "=f"(d[59]),
                   "=f"(d[60]), "=f"(d[61]), "=f"(d[62]), "=f"(d[63])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b) : "memory");
}
__attribute__((always_inline)) void oclc_wgmma_128(float* d, uint4 a, ulong b) {
  __asm volatile("//@{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b) : "memory");
}
__attribute__((always_inline)) void oclc_wgmma_128_wait(float* d) {
  __asm volatile("//@wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 :: "memory");
}
#endif
