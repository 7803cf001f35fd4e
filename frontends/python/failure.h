// Errors as Python's exceptions: oclc.Error (status, cl_code) of the runtime, oclc.CompileError of the compiler.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "oclc/oclc.h"

namespace oclc::python {

// What a call of the runtime reported.
class RuntimeError : public std::runtime_error {
 public:
  RuntimeError(oclc_status status, std::int32_t cl_code, const std::string& message)
      : std::runtime_error(message), status_(status), cl_code_(cl_code) {}
  oclc_status status() const { return status_; }
  std::int32_t cl_code() const { return cl_code_; }

 private:
  oclc_status status_;
  std::int32_t cl_code_;
};

// The process forked since the handle was made; what is on the device belongs to the parent.
class Forked : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Calls `call(oclc_error*)`; throws RuntimeError unless it gives OCLC_OK.
template <class Call>
void checked(Call call) {
  oclc_error error = OCLC_INIT(oclc_error);
  const oclc_status status = call(&error);
  if (status != OCLC_OK) throw RuntimeError(status, error.cl_code, error.message);
}

void bind_failures(nanobind::module_& module);

}  // namespace oclc::python
