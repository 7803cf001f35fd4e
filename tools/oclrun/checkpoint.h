// A session's state in a file: a plan without entry points, so every check of a plan holds for a checkpoint too.
#pragma once
#include <string>

#include "oclc/oclc.hpp"

namespace oclc::oclrun {

// Writes all variables of the session, atomically. Throws io::FileError.
void save_state(const std::string& path, const rt::Plan& plan, rt::Session& session);

// Reads them back by name. Throws io::FileError if the file is no checkpoint or lacks a variable, or one has another element
// type or shape; the session's state is then unchanged.
void load_state(const std::string& path, const rt::Plan& plan, rt::Session& session);

}  // namespace oclc::oclrun
