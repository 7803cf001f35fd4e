// A kernel from a template's expanded body: parameters, constants of its own, local memory.
#pragma once
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/text/template_text.h"

namespace oclc {

// A constant of the kernel's own making, the last of its arguments.
struct OwnConstant {
  std::string name;  // in the code
  Buffer buffer;
};

OwnConstant own_constant(std::string name, std::string buffer_name, HostTensor content);

struct TileKernel {
  std::string template_name;
  TemplateValues values;
  Expr groups = 1;
  std::string schedule;  // for the report
  std::vector<OwnConstant> constants;
  std::string local_name, local_macro;  // the local array and the template's macro of its size; empty: none
};

// `kernel` has the operands marked that a constant replaces.
GeneratedKernel assemble(const Kernel& kernel, TileKernel tile);

}  // namespace oclc
