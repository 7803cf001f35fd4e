// What happens to a finished tile of sums: the text of the hole EPILOGUE of the templates contraction_*_cpu.cl.
#pragma once
#include <string>

#include "compiler/codegen/contraction_view.h"
#include "compiler/targets/target.h"

namespace oclc {

// Lines that compute and store the results of the vector `v` of sums at row m and columns n ... of group g.
std::string contraction_epilogue(const ContractionView& view, const Target& target);

}  // namespace oclc
