#include "tools/oclc/emit.h"

#include <nlohmann/json.hpp>
#include <span>

#include "compiler/ir/dot.h"
#include "runtime/package/text/unicode.h"
#include "runtime/package/writer.h"
#include "tools/oclc/emit_html.h"
#include "tools/oclc/emit_onnx.h"

namespace oclc::tool {
namespace {

void write_text(const std::filesystem::path& file, std::string_view text) {
  package::write_file(file.string(), std::as_bytes(std::span(text)));
}

// For people: names in it may hold anything.
void write_shown(const std::filesystem::path& file, std::string_view text) { write_text(file, package::shown(text, true)); }

}  // namespace

void emit_files(const std::filesystem::path& folder, const Compiled& compiled, const PlanView& view, const SymbolValues& at) {
  std::filesystem::create_directories(folder);
  for (const GeneratedFile& file : compiled.plan.files) write_text(folder / (file.name + ".cl"), file.source);
  std::string dot;
  for (const auto& graph : compiled.module->entries) {
    dot += print_dot(*graph);
    write_text(folder / (graph->name + ".onnx"), graph_as_onnx(*graph));
  }
  write_shown(folder / "graph.dot", dot);
  write_shown(folder / "kernels.txt", compiled.schedule.text());
  write_shown(folder / "plan.txt", view.text());
  write_shown(folder / "report.html", plan_as_html(compiled, view, *plan::GetPlan(compiled.plan.metadata.data()), at));
  write_text(folder / "plan.json", view.json(at).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace oclc::tool
