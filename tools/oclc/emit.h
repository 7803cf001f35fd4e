// --emit-dir: what the compiler made, as files for people.
#pragma once
#include <filesystem>

#include "compiler/compile.h"
#include "tools/oclc/plan_view.h"

namespace oclc::tool {

// Writes into `folder`, which is made: each kernel's source as <kernel>.cl, the graph after the passes as graph.dot
// and <entry>.onnx, the kernels as kernels.txt, the plan with its memory as plan.txt and (at the sizes `at`) plan.json, and all
// of it on one page, report.html; files.txt lists them. Kernels and graphs that files.txt of an earlier compilation lists and
// this one has not are removed. Throws package::Error{io}.
void emit_files(const std::filesystem::path& folder, const Compiled& compiled, const PlanView& view, const SymbolValues& at);

}  // namespace oclc::tool
