// A plan as one page for a browser.
#pragma once
#include <string>

#include "compiler/compile.h"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

// Self-contained HTML: figures of each entry at the sizes `at`, its launches with their share of flops and bytes and the source
// of each kernel, and the arena as a chart of buffers over the schedule.
std::string plan_as_html(const Compiled& compiled, const PlanView& view, const plan::Plan& plan, const SymbolValues& at);

}  // namespace oclc::tool
