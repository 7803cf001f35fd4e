// The extension module oclc._core. Users meet it through the package `oclc`.
#include <nanobind/nanobind.h>

#include "frontends/python/handles.h"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // sessions may live until the interpreter ends
  oclc::python::bind_failures(module);
  oclc::python::bind_context(module);
  oclc::python::bind_plan(module);
  oclc::python::bind_session(module);
  oclc::python::bind_trainer(module);
  oclc::python::bind_compile(module);
}
