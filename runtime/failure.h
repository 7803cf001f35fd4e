// Failures inside the runtime travel as exceptions and become status codes at the C entry points (api.h).
#pragma once
#include <stdexcept>
#include <string>

#include "oclc/oclc.h"
#include "runtime/device/opencl.h"

namespace oclc::runtime {

class Failure : public std::runtime_error {
 public:
  Failure(oclc_status status, const std::string& message, cl_int cl_code = 0)
      : std::runtime_error(message), status_(status), cl_code_(cl_code) {}
  oclc_status status() const { return status_; }
  cl_int cl_code() const { return cl_code_; }

 private:
  oclc_status status_;
  cl_int cl_code_;
};

// "CL_OUT_OF_RESOURCES (-5)".
std::string cl_error_text(cl_int code);

// Throws OCLC_E_DEVICE (OCLC_E_MEMORY for allocation failures) unless `code` is CL_SUCCESS: "<what>: CL_... (n)".
void check_cl(cl_int code, const std::string& what);

}  // namespace oclc::runtime
