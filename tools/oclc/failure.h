// Failures of a command: the text on standard error and the exit code. The one place where the tool catches exceptions.
#pragma once
#include <functional>
#include <string>

#include "compiler/support/error.h"

namespace oclc::tool {

// A user's mistake on the command line.
[[noreturn]] void usage_error(const std::string& message);

// The operating system refused `path`: "<path>: <what>: <text of errno>".
[[noreturn]] void io_error(const std::string& path, const std::string& what, int error_number);

// Runs `command` and gives its exit code; prints "oclc: error: ..." and gives the failure's code if it throws.
// `file` is the file that the command works on when the failure does not name one.
int guarded(const std::string& file, const std::function<int()>& command);

}  // namespace oclc::tool
