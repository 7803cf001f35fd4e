// Instructions of NVIDIA's matrix units (compute capability 8.0 and later), which OpenCL C reaches through inline PTX alone.
//
// launch    none: helper macros; all 32 work-items of a sub-group come here together
// local     none

//@provides oclc_mma_first oclc_mma
// Product of 16 x 8 and 8 x 8 TF32 numbers: d = a * b, and d += a * b. Lane l has, with r = l / 4 and t = l % 4, the bits of
// a = A[r][t], A[r + 8][t], A[r][t + 4], A[r + 8][t + 4], of b0 = B[t][r], b1 = B[t + 4][r], and the floats
// d = D[r][2t], D[r][2t + 1], D[r + 8][2t], D[r + 8][2t + 1].
#define oclc_mma_first(d, a, b0, b1)                                                             \
  __asm volatile(                                                                                \
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"  \
      "{%10,%10,%10,%10};"                                                                       \
      : "=f"((d)[0]), "=f"((d)[1]), "=f"((d)[2]), "=f"((d)[3])                                   \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1), "f"(0.0f))
#define oclc_mma(d, a, b0, b1)                                                                   \
  __asm volatile(                                                                                \
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"  \
      "{%0,%1,%2,%3};"                                                                           \
      : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                                   \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1))

//@provides oclc_swap_lanes
// to = `from` of the work-item whose lane differs in the bits of `lanes`, a constant.
#define oclc_swap_lanes(to, from, lanes) \
  __asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(to) : "f"(from), "n"(lanes))
