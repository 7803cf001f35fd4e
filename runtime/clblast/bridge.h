/* Interface of the component liboclc_clblast.so, loaded by the runtime. */
#ifndef OCLC_CLBLAST_BRIDGE_H
#define OCLC_CLBLAST_BRIDGE_H
#include <CL/cl.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i] for i < batch; row major, offsets and strides in elements. */
typedef struct oclc_clblast_gemm_args {
  size_t m, n, k;
  cl_mem a, b, c;
  size_t offset_a, offset_b, offset_c;
  size_t lda, ldb, ldc;
  size_t batch, stride_a, stride_b, stride_c;
  int trans_a, trans_b;
  float alpha, beta;
} oclc_clblast_gemm_args;

/* Enqueues; returns CLBlast's status, 0 for success. */
typedef int (*oclc_clblast_gemm_function)(const oclc_clblast_gemm_args* args, cl_command_queue queue, cl_event* event);
#define OCLC_CLBLAST_GEMM_SYMBOL "oclc_clblast_gemm_v1"

#ifdef __cplusplus
}
#endif
#endif
