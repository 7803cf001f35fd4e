#include "frontends/python/failure.h"

#include <nanobind/stl/string.h>

#include "compiler/support/error.h"
#include "runtime/package/error.h"

namespace oclc::python {
namespace {

namespace nb = nanobind;

// Raises oclc.errors.<name>(arguments...).
template <class... A>
void raise(const char* name, A&&... arguments) {
  const nb::object type = nb::module_::import_("oclc.errors").attr(name);
  const nb::object error = type(std::forward<A>(arguments)...);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void raise_compile_error(const CompileError& error) {
  const CompileError::Parts& p = error.parts();
  nb::dict parts;
  parts["stage"] = p.stage;
  parts["node"] = p.node;
  parts["op"] = p.op;
  parts["wanted"] = p.wanted;
  parts["found"] = p.found;
  parts["advice"] = p.advice;
  raise("CompileError", std::string(error.what()), parts);
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const CompileError& error) {
    raise_compile_error(error);
  } catch (const RuntimeError& error) {
    raise("Error", std::string(error.what()), std::string(oclc_status_name(error.status())), error.cl_code());
  } catch (const package::Error& error) {
    const bool io = error.kind() == package::ErrorKind::io;
    raise("Error", std::string(error.what()), std::string(oclc_status_name(io ? OCLC_E_IO : OCLC_E_PLAN)), 0);
  } catch (const Forked& error) {
    raise("ForkError", std::string(error.what()));
  } catch (const InternalError& error) {
    raise("Error", std::string(error.what()) + "\noclc: this is a bug of oclc; please report it with this text and the model",
          std::string(oclc_status_name(OCLC_E_INTERNAL)), 0);
  }
}

}  // namespace

void bind_failures(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace oclc::python
