#include <clblast_c.h>

#include "runtime/clblast/bridge.h"

extern "C" __attribute__((visibility("default"))) int oclc_clblast_gemm_v1(const oclc_clblast_gemm_args* g,
                                                                           cl_command_queue queue, cl_event* event) {
  const CLBlastTranspose a = g->trans_a ? CLBlastTransposeYes : CLBlastTransposeNo;
  const CLBlastTranspose b = g->trans_b ? CLBlastTransposeYes : CLBlastTransposeNo;
  if (g->batch == 1)
    return CLBlastSgemm(CLBlastLayoutRowMajor, a, b, g->m, g->n, g->k, g->alpha, g->a, g->offset_a, g->lda, g->b, g->offset_b,
                        g->ldb, g->beta, g->c, g->offset_c, g->ldc, &queue, event);
  return CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, a, b, g->m, g->n, g->k, g->alpha, g->a, g->offset_a, g->lda,
                                    g->stride_a, g->b, g->offset_b, g->ldb, g->stride_b, g->beta, g->c, g->offset_c, g->ldc,
                                    g->stride_c, g->batch, &queue, event);
}
