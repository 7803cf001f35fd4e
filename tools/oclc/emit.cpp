#include "tools/oclc/emit.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "compiler/ir/dot.h"
#include "runtime/package/text/unicode.h"
#include "runtime/package/writer.h"
#include "tools/oclc/emit_html.h"
#include "tools/oclc/emit_onnx.h"

namespace oclc::tool {
namespace {

constexpr const char* kList = "files.txt";

void write_text(const std::filesystem::path& file, std::string_view text) {
  package::write_file(file.string(), std::as_bytes(std::span(text)));
}

// What an earlier compilation wrote into `folder` by its list of files, and this one does not write again.
void remove_stale(const std::filesystem::path& folder, const std::map<std::string, std::string>& files) {
  std::ifstream in(folder / kList);
  for (std::string name; std::getline(in, name);) {
    std::error_code ignored;
    // Names alone: a list from elsewhere names nothing outside of the folder.
    if (name.find_first_of("/\\") == name.npos && !files.contains(name) && (name.ends_with(".cl") || name.ends_with(".onnx")))
      std::filesystem::remove(folder / name, ignored);
  }
}

}  // namespace

void emit_files(const std::filesystem::path& folder, const Compiled& compiled, const PlanView& view, const SymbolValues& at) {
  std::filesystem::create_directories(folder);
  std::map<std::string, std::string> files;
  for (const GeneratedFile& file : compiled.plan.files) files[file.name + ".cl"] = file.source;
  for (const auto& graph : compiled.module->entries) {
    files["graph.dot"] += print_dot(*graph);
    files[graph->name + ".onnx"] = graph_as_onnx(*graph);
  }
  files["kernels.txt"] = compiled.schedule.text();
  files["plan.txt"] = view.text();
  files["report.html"] = plan_as_html(compiled, view, *plan::GetPlan(compiled.plan.metadata.data()), at);
  files["plan.json"] = view.json(at).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  remove_stale(folder, files);
  std::string list;
  for (const auto& [name, text] : files) {
    // Models, plans and sources are for programs; in what people read, names may hold anything.
    const bool is_read = name == "graph.dot" || name.ends_with(".txt") || name.ends_with(".html");
    write_text(folder / name, is_read ? package::shown(text, true) : text);
    list += name + "\n";
  }
  write_text(folder / kList, list);
}

}  // namespace oclc::tool
