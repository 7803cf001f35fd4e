// Bodies of expanded templates with what is known folded, so that they say what runs.
#pragma once
#include <string>

namespace oclc {

// Statements of OpenCL C: constant expressions become numbers, branches on them what is taken, loops of one trip their body,
// loops of none nothing; each on its line at its depth. A text whose brackets do not match stays as it is.
std::string fold_known(const std::string& body);

}  // namespace oclc
