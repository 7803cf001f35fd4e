// The trained weights in the model that the plan came from.
#pragma once
#include <string>

#include "oclc/oclc.hpp"

namespace oclc::oclrun {

// Writes `model` to `path` with every initializer that has a variable's name replaced by that variable's value. Throws
// io::FileError. Returns what was done, in words.
std::string export_onnx(rt::Session& session, const rt::Plan& plan, const std::string& model, const std::string& path);

}  // namespace oclc::oclrun
