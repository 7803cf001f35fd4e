// What became of each of the model's nodes: the rows of --report.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compiler/compile.h"

namespace oclc::tool {

struct SourceNode {
  std::string name;
  std::vector<std::string> operators;  // core operators it was decomposed into
};

// The model's nodes in order, as the importer left them.
std::vector<SourceNode> source_nodes(const Module& module);

struct ReportRow {
  std::string node;
  std::string operators;  // "sub, exp, sum, div"
  std::string fate;       // "kernel K", "fused into K", "read by K", "folded", "view"
  std::string why_not;    // why it was not fused further, or empty
};

// `compiled` with CompileOptions::report.
std::vector<ReportRow> report_rows(const std::vector<SourceNode>& sources, const Compiled& compiled);
std::string report_text(const std::vector<ReportRow>& rows);
nlohmann::json report_json(const std::vector<ReportRow>& rows);

// Of each contraction all strategies, the chosen one first, with seconds by estimate or why each was refused.
std::string contractions_text(const std::vector<RankedContraction>& contractions);
nlohmann::json contractions_json(const std::vector<RankedContraction>& contractions);

}  // namespace oclc::tool
