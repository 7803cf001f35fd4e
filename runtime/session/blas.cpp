#include "runtime/session/blas.h"

#include <dlfcn.h>

#include "runtime/failure.h"
#include "runtime/package/own_folder.h"

namespace oclc::runtime {

std::shared_ptr<Blas> Blas::load() {
  std::shared_ptr<Blas> blas(new Blas);
  const std::string where = package::folder_of(reinterpret_cast<const void*>(&oclc_version));
  for (const std::string& path : {where + "liboclc_clblast.so", std::string("liboclc_clblast.so")})
    if ((blas->library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
  if (!blas->library_) {
    const char* reason = ::dlerror();
    throw Failure(OCLC_E_UNSUPPORTED,
                  std::string("the plan uses CLBlast, but the component liboclc_clblast.so cannot be loaded: ") +
                      (reason ? reason : "unknown reason") +
                      "; install it (with libclblast1), or compile the model with --gemm own");
  }
  blas->gemm_ = reinterpret_cast<oclc_clblast_gemm_function>(::dlsym(blas->library_, OCLC_CLBLAST_GEMM_SYMBOL));
  if (!blas->gemm_) throw Failure(OCLC_E_UNSUPPORTED, "liboclc_clblast.so is of another version than the runtime");
  return blas;
}

// CLBlast keeps static state that must outlive its last use: the component stays loaded.
Blas::~Blas() = default;

void Blas::gemm(const oclc_clblast_gemm_args& args, cl_command_queue queue, cl_event* event, const std::string& what) const {
  const int code = gemm_(&args, queue, event);
  if (code != 0) throw Failure(OCLC_E_DEVICE, what + ": CLBlast reports " + cl_error_text(code), code);
}

}  // namespace oclc::runtime
