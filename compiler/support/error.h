// The two kinds of failure in the compiler: CompileError for what the model or the user got wrong, check failures for our bugs.
#pragma once
#include <stdexcept>
#include <string>

namespace oclc {

// Exit codes of the tools (docs: the tools' contract).
enum class ExitCode : int {
  good = 0,
  internal = 1,
  usage = 2,
  bad_model = 3,
  unsupported = 4,
  device = 5,
  io = 6,
  verification = 7,
  interrupted = 130
};

// The model's or the user's fault. `what()` reads "node 'conv1' (Conv): wanted ..., found ...; try ...".
class CompileError : public std::runtime_error {
 public:
  struct Parts {
    std::string stage{};   // import, passes, kernels, ...
    std::string node{};    // source node's name, or empty
    std::string op{};      // source operator, or empty
    std::string wanted{};  // or, if `found` is empty, the whole statement
    std::string found{};
    std::string advice{};  // what to do, or empty
    ExitCode exit_code = ExitCode::bad_model;
  };
  explicit CompileError(Parts parts);
  const Parts& parts() const { return parts_; }

 private:
  Parts parts_;
};

// Our bug. Never reachable from input alone.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace oclc

#define OCLC_CHECK(condition, detail)                                                     \
  do {                                                                                    \
    if (!(condition)) ::oclc::check_failed(#condition, OCLC_FILE_NAME, __LINE__, detail); \
  } while (false)

// Paths of the build machine must not reach binaries or messages.
#ifdef __FILE_NAME__
#define OCLC_FILE_NAME __FILE_NAME__
#else
#define OCLC_FILE_NAME (__builtin_strrchr(__FILE__, '/') ? __builtin_strrchr(__FILE__, '/') + 1 : __FILE__)
#endif
