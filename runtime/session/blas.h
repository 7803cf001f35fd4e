// GEMM by CLBlast, through a component that is loaded only for plans that ask for it.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <string>

#include "runtime/clblast/bridge.h"

namespace oclc::runtime {

class Blas {
 public:
  // Loads liboclc_clblast.so from the folder of this library or the loader's path; throws OCLC_E_UNSUPPORTED if it is not
  // there.
  static std::shared_ptr<Blas> load();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // Throws OCLC_E_DEVICE naming `what`.
  void gemm(const oclc_clblast_gemm_args& args, cl_command_queue queue, cl_event* event, const std::string& what) const;

 private:
  Blas() = default;
  void* library_ = nullptr;
  oclc_clblast_gemm_function gemm_ = nullptr;
};

}  // namespace oclc::runtime
