#include "tools/oclc/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "tools/oclc/console.h"

namespace oclc::tool {
namespace {

using Visit = std::function<void(const Node&)>;

void each_node(const Graph& graph, const Visit& visit) {
  for (const Node* node : graph.nodes()) {
    visit(*node);
    for (const auto& body : node->bodies) each_node(*body, visit);
  }
}

void each_node(const Module& module, const Visit& visit) {
  for (const auto& graph : module.entries) each_node(*graph, visit);
}

// The names that a merged node joins with '+'. Names of the model that hold a '+' themselves stay whole.
std::vector<std::string> parts_of(const std::string& source, const std::set<std::string>& known) {
  if (known.count(source)) return {source};
  std::vector<std::string> parts;
  std::string part;
  for (std::size_t at = 0; at <= source.size(); ++at) {
    if (at < source.size() && source[at] != '+') {
      part += source[at];
      continue;
    }
    if (known.count(part)) {
      parts.push_back(std::move(part));
      part.clear();
    } else if (at < source.size()) {
      part += '+';
    }
  }
  return parts;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

// Calls `visit` with each kernel of a ragged group and the names of the others' nodes, of many the first alone.
void each_member(const Schedule& schedule, std::span<const Step> steps,
                 const std::function<void(const Kernel&, const std::string& others)>& visit) {
  constexpr std::size_t kMostNames = 3;
  for (const Step& step : steps) {
    if (!step.is<RaggedStep>()) {
      each_member(schedule, step.body(), visit);
      continue;
    }
    for (const Step& member : step.body()) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < step.body().size() && names.size() < kMostNames; ++i) {
        const Step& other = step.body()[i];
        if (&other != &member) names.push_back(fmt::format("{}", fmt::join(schedule.kernel(other).sources, "+")));
      }
      const std::size_t more = step.body().size() - 1 - names.size();
      visit(schedule.kernel(member),
            fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
    }
  }
}

}  // namespace

std::vector<SourceNode> source_nodes(const Module& module) {
  std::vector<SourceNode> nodes;
  std::unordered_map<std::string, std::size_t> place;
  each_node(module, [&](const Node& node) {
    if (node.source.empty() || node.op->name == "constant") return;
    const auto [at, fresh] = place.emplace(node.source, nodes.size());
    if (fresh) nodes.push_back({node.source, {}});
    add_once(nodes[at->second].operators, std::string(node.op->name));
  });
  return nodes;
}

std::vector<ReportRow> report_rows(const std::vector<SourceNode>& sources, const Compiled& compiled) {
  std::set<std::string> known;
  for (const SourceNode& s : sources) known.insert(s.name);
  struct Fates {
    std::vector<std::string> stored, read, why_not, grouped;
    bool survives = false;
  };
  std::map<std::string, Fates> fates;
  for (const NodeFate& fate : compiled.fates) {
    for (const std::string& name : parts_of(fate.source, known)) {
      add_once(fates[name].stored, fate.fate);
      if (!fate.why_not.empty()) add_once(fates[name].why_not, fate.why_not);
    }
  }
  for (const Kernel& kernel : compiled.schedule.kernels) {
    for (const std::string& source : kernel.sources) {
      for (const std::string& name : parts_of(source, known)) add_once(fates[name].read, kernel.name);
    }
  }
  for (const EntrySchedule& entry : compiled.schedule.entries) {
    each_member(compiled.schedule, entry.steps, [&](const Kernel& kernel, const std::string& others) {
      for (const std::string& source : kernel.sources) {
        for (const std::string& name : parts_of(source, known)) add_once(fates[name].grouped, "in one launch with " + others);
      }
    });
  }
  each_node(*compiled.module, [&](const Node& node) {
    for (const std::string& name : parts_of(node.source, known)) fates[name].survives = true;
  });
  std::vector<ReportRow> rows;
  for (const SourceNode& source : sources) {
    const Fates& f = fates[source.name];
    // The root of a kernel says so once.
    std::vector<std::string> stored = f.stored;
    std::erase_if(stored, [&](const std::string& text) {
      constexpr std::string_view kFused = "fused into ";
      if (!text.starts_with(kFused)) return false;
      const std::string root = "kernel " + text.substr(kFused.size());
      return std::any_of(f.stored.begin(), f.stored.end(), [&](const std::string& other) {
        return other.starts_with(root) && (other.size() == root.size() || other[root.size()] == ':');
      });
    });
    std::string fate;
    if (!stored.empty()) {
      fate = fmt::format("{}", fmt::join(stored, "; "));
    } else if (!f.read.empty()) {
      fate = fmt::format("read inside {}", fmt::join(f.read, ", "));
    } else {
      fate = f.survives ? "view: costs nothing" : "folded";
    }
    for (const std::string& with : f.grouped) fate += "; " + with;
    rows.push_back({source.name, fmt::format("{}", fmt::join(source.operators, ", ")), fate,
                    fmt::format("{}", fmt::join(f.why_not, "; "))});
  }
  return rows;
}

std::string report_text(const std::vector<ReportRow>& rows) {
  std::size_t node = 4, operators = 9;
  for (const ReportRow& row : rows) {
    node = std::max(node, std::min<std::size_t>(row.node.size(), 44));
    operators = std::max(operators, std::min<std::size_t>(row.operators.size(), 40));
  }
  std::string out = fmt::format("{}  {}  {}\n", table_cell("node", node), table_cell("operators", operators), "fate");
  for (const ReportRow& row : rows) {
    out += fmt::format("{}  {}  {}{}\n", table_cell(row.node, node), table_cell(row.operators, operators), row.fate,
                       row.why_not.empty() ? "" : fmt::format("  (not fused further: {})", row.why_not));
  }
  return out;
}

nlohmann::json report_json(const std::vector<ReportRow>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const ReportRow& row : rows)
    out.push_back({{"node", row.node}, {"operators", row.operators}, {"fate", row.fate}, {"why_not", row.why_not}});
  return out;
}

std::string contractions_text(const std::vector<RankedContraction>& contractions) {
  std::string out;
  for (const RankedContraction& c : contractions) {
    out += fmt::format("contraction {}\n", c.kernel);
    std::vector<std::pair<std::string_view, std::vector<std::string_view>>> refused;  // strategies by reason
    for (const Candidate& candidate : c.candidates) {
      if (candidate.choice) {
        out += fmt::format("  {:>9.1f} us  {}\n", candidate.choice->seconds * 1e6, candidate.choice->text());
        continue;
      }
      if (refused.empty() || refused.back().first != candidate.why_not) refused.push_back({candidate.why_not, {}});
      refused.back().second.push_back(name_of(candidate.strategy->id));
    }
    for (const auto& [why_not, names] : refused) out += fmt::format("    refused  {}: {}\n", fmt::join(names, ", "), why_not);
  }
  return out;
}

nlohmann::json contractions_json(const std::vector<RankedContraction>& contractions) {
  nlohmann::json out = nlohmann::json::array();
  for (const RankedContraction& c : contractions) {
    nlohmann::json candidates = nlohmann::json::array();
    for (const Candidate& candidate : c.candidates) {
      nlohmann::json row = {{"strategy", name_of(candidate.strategy->id)}};
      if (candidate.choice) {
        row["seconds"] = candidate.choice->seconds;
        row["tiles"] = candidate.choice->text();
      } else {
        row["why_not"] = candidate.why_not;
      }
      candidates.push_back(std::move(row));
    }
    out.push_back({{"kernel", c.kernel}, {"candidates", std::move(candidates)}});
  }
  return out;
}

}  // namespace oclc::tool
