#include "tools/oclc/emit.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/ir/dot.h"
#include "tools/oclc/emit_html.h"
#include "tools/oclc/emit_onnx.h"
#include "tools/oclc/failure.h"

namespace oclc::tool {
namespace {

void write_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  const bool opened = out.is_open();
  out << text;
  out.close();
  if (out) return;
  const int error_number = errno;
  std::error_code ignored;
  if (opened) std::filesystem::remove(file, ignored);
  io_error(file.string(), "cannot write", error_number);
}

}  // namespace

void emit_files(const std::filesystem::path& folder, const Compiled& compiled, const PlanView& view, const SymbolValues& at) {
  std::filesystem::create_directories(folder);
  for (const GeneratedFile& file : compiled.plan.files) write_text(folder / (file.name + ".cl"), file.source);
  std::string dot;
  for (const auto& graph : compiled.module->entries) {
    dot += print_dot(*graph);
    write_text(folder / (graph->name + ".onnx"), graph_as_onnx(*graph));
  }
  write_text(folder / "graph.dot", dot);
  write_text(folder / "kernels.txt", compiled.schedule.text());
  write_text(folder / "plan.txt", view.text());
  write_text(folder / "report.html", plan_as_html(compiled, view, *plan::GetPlan(compiled.plan.metadata.data()), at));
  write_text(folder / "plan.json", view.json(at).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace oclc::tool
