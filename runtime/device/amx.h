// Tile units of x86 processors (AMX), which the operating system lends a process that asks.
#pragma once
#include <string>
#include <string_view>

namespace oclc::runtime {

inline constexpr std::string_view kAmxOption = " -DOCLC_AMX";

// How programs with the branch OCLC_AMX are built.
struct AmxUse {
  std::string option;   // of the build; "" for the portable branch
  std::string refusal;  // why there are no instructions of the unit; "" if there are
};

// Asks the processor, and the operating system for the process, once; thereafter threads that there are and that come may use
// the unit. The environment variable OCLC_AMX, read each time: 0 refuses it, `emulate` takes the branch that computes what the
// unit does in plain C.
AmxUse amx_use();

}  // namespace oclc::runtime
