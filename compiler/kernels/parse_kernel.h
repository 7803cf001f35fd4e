// Reads a kernel of the text form of a schedule; see parse_schedule.h.
#pragma once
#include "compiler/ir/parse.h"
#include "compiler/ir/scanner.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

// After the keyword.
Kernel parse_kernel(Scanner& in, const OpLookup& find_op);

}  // namespace oclc
