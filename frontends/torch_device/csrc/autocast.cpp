// torch.autocast("ocl"): torch's own lists of operators for 16 and for 32 bits.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define OCLC_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define OCLC_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define OCLC_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define OCLC_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(OCLC_LOWER_PRECISION)
  AT_FORALL_FP32(OCLC_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(OCLC_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(OCLC_PROMOTE)
#undef OCLC_LOWER_PRECISION
#undef OCLC_FP32
#undef OCLC_FP32_SET_OPT_DTYPE
#undef OCLC_PROMOTE
}

}  // namespace
}  // namespace at::autocast
