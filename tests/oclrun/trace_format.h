// The Trace Event Format that Perfetto and Chrome read ("Trace Event Format", Duffy and Sinclair, 2016), as far as oclrun
// writes it: stricter than its readers, which skip what they do not understand.
#pragma once
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace oclc::test {

// The first thing in an event that the format does not allow; empty: there is none.
inline std::string problem_of_event(const nlohmann::json& e) {
  using nlohmann::json;
  static const std::map<std::string, std::set<std::string>> kKeys = {
      {"X", {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"}}, {"M", {"ph", "name", "pid", "tid", "args"}}};
  static const std::set<std::string> kMetadata = {"process_name", "process_labels", "process_sort_index", "thread_name",
                                                  "thread_sort_index"};
  if (!e.is_object() || !e.contains("ph") || !e["ph"].is_string()) return "an event without a phase";
  const auto keys = kKeys.find(e["ph"].get<std::string>());
  if (keys == kKeys.end()) return "an event of phase " + e["ph"].dump();
  for (const auto& [key, value] : e.items())
    if (!keys->second.count(key)) return "an event with the member '" + key + "'";
  for (const std::string& key : keys->second)
    if (!e.contains(key)) return "an event without '" + key + "'";
  if (!e["name"].is_string() || e["name"].get<std::string>().empty()) return "an event whose name is no text";
  if (!e["pid"].is_number_integer() || !e["tid"].is_number_integer()) return "an event whose pid or tid is no integer";
  if (!e["args"].is_object()) return "an event whose args are no object";
  if (e["ph"] == "M") {
    if (!kMetadata.count(e["name"].get<std::string>())) return "metadata called " + e["name"].dump();
    const bool is_name = e["name"].get<std::string>().ends_with("_name");
    if (is_name && (!e["args"].contains("name") || !e["args"]["name"].is_string())) return "metadata without a name";
    return "";
  }
  if (!e["cat"].is_string()) return "an event whose category is no text";
  for (const char* key : {"ts", "dur"})
    if (!e[key].is_number() || !std::isfinite(e[key].get<double>()) || e[key].get<double>() < 0)
      return std::string("an event whose ") + key + " is no number of microseconds";
  return "";
}

// Of a whole file. Complete events of one thread lie within or behind one another, and processes and threads have names.
inline std::string problem_of_trace(const nlohmann::json& trace) {
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) return "no array of events";
  for (const auto& [key, value] : trace.items())
    if (key != "traceEvents" && key != "displayTimeUnit") return "the member '" + key + "'";
  if (!trace.contains("displayTimeUnit") || (trace["displayTimeUnit"] != "ms" && trace["displayTimeUnit"] != "ns"))
    return "a time unit that is neither ms nor ns";
  using Track = std::pair<std::int64_t, std::int64_t>;
  std::set<std::int64_t> processes;
  std::set<Track> threads;
  std::map<Track, std::vector<std::pair<double, double>>> spans;
  for (const auto& e : trace["traceEvents"]) {
    if (const std::string problem = problem_of_event(e); !problem.empty()) return problem;
    const Track track{e["pid"].get<std::int64_t>(), e["tid"].get<std::int64_t>()};
    if (e["name"] == "process_name") processes.insert(track.first);
    if (e["name"] == "thread_name") threads.insert(track);
    if (e["ph"] == "X") spans[track].emplace_back(e["ts"].get<double>(), e["ts"].get<double>() + e["dur"].get<double>());
  }
  constexpr double kRounding = 1e-3;  // ns, of clocks in ns that are written as us
  for (auto& [track, list] : spans) {
    if (!processes.count(track.first)) return "a process without a name";
    if (!threads.count(track)) return "a thread without a name";
    std::vector<double> open;
    double before = 0;
    for (const auto& [begin, end] : list) {
      if (begin < before) return "events of a thread that are not in the order of their beginnings";
      before = begin;
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      if (!open.empty() && end > open.back() + kRounding) return "two events of a thread that overlap";
      open.push_back(end);
    }
  }
  return "";
}

}  // namespace oclc::test
