#include "tools/oclrun/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/package/writer.h"
#include "tools/io/tensor.h"

namespace oclc::oclrun {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kDefaultRuns = 10;

std::string format(const char* pattern, auto... values) {
  char text[1024];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string percentile_name(double p) { return format("p%g", p); }

// Quotes a field of a CSV file where needed.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
}

double rate(double amount, double us) { return us > 0 ? amount / us * 1e-3 : 0; }  // G per second

void write_trace(const std::string& path, const Runner& runner, const std::vector<oclc_launch_info>& launches) {
  json events = json::array();
  events.push_back(
      {{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "process_name"}, {"args", {{"name", "oclrun " + runner.entry_name()}}}});
  events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "thread_name"}, {"args", {{"name", "OpenCL queue"}}}});
  const std::uint64_t origin = launches.empty() ? 0 : launches.front().start_ns;
  for (const oclc_launch_info& l : launches)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"name", l.title},
                      {"cat", l.anchor},
                      {"ts", static_cast<double>(l.start_ns - origin) * 1e-3},
                      {"dur", static_cast<double>(l.end_ns - l.start_ns) * 1e-3},
                      {"args", {{"nodes", l.nodes}, {"step", l.step}, {"flops", l.flops}, {"bytes", l.bytes}}}});
  const std::string text =
      json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump(1, ' ', false, json::error_handler_t::replace);
  try {
    package::write_file(path, std::as_bytes(std::span(text)));
  } catch (const package::Error& error) {
    throw io::FileError(io::FileProblem::io, error.what());
  }
}

}  // namespace

double Latencies::percentile(double p) const {
  const double place = p / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

double Latencies::mean() const {
  return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

Latencies time_runs(Runner& runner, const Options& options) {
  for (int i = 0; i < options.warmup; ++i) runner.run();
  int runs = options.runs;
  if (runs < 0) runs = options.seconds > 0 ? 1 : options.warmup >= 0 || !options.percentiles.empty() ? kDefaultRuns : 1;
  Latencies result;
  const auto begin = Clock::now();
  while (static_cast<int>(result.sorted.size()) < runs ||
         std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds) {
    const auto start = Clock::now();
    runner.run();
    result.sorted.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(result.sorted.begin(), result.sorted.end());
  return result;
}

Profile profile_runs(Runner& runner, int runs, const std::string& trace) {
  Profile profile;
  profile.runs = runs;
  runner.session().enable_profile(true);
  runner.run();  // the first profiled run pays for event pools
  for (int i = 0; i < runs; ++i) {
    runner.run();
    const auto launches = runner.session().launches();
    for (const oclc_launch_info& l : launches) {
      if (l.step >= profile.rows.size()) profile.rows.resize(l.step + 1);
      ProfileRow& row = profile.rows[l.step];
      row.kernel = l.title;
      row.anchor = l.anchor;
      row.nodes = l.nodes;
      row.us += static_cast<double>(l.end_ns - l.start_ns) * 1e-3 / runs;
      row.calls += 1.0 / runs;
      row.flops += l.flops / runs;
      row.bytes += l.bytes / runs;
    }
    if (i + 1 == runs && !trace.empty()) write_trace(trace, runner, launches);
  }
  runner.session().enable_profile(false);
  std::erase_if(profile.rows, [](const ProfileRow& row) { return row.calls == 0; });
  std::stable_sort(profile.rows.begin(), profile.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.us > b.us; });
  return profile;
}

double Profile::total_us() const {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.us;
  return total;
}

std::string profile_table(const Profile& profile) {
  std::size_t kernel_width = 6;
  for (const ProfileRow& row : profile.rows)
    kernel_width = std::max(kernel_width, std::min<std::size_t>(row.kernel.size(), 40));
  const int width = static_cast<int>(kernel_width);
  std::string text = format("%10s %6s %6s %9s %8s  %-*s  %-14s %s\n", "time us", "%", "calls", "GFLOP/s", "GB/s", width,
                            "kernel", "anchor", "nodes");
  const double total = profile.total_us();
  ProfileRow sum;
  for (const ProfileRow& row : profile.rows) {
    text += format("%10.1f %6.1f %6g %9.1f %8.1f  %-*s  %-14s %s\n", row.us, total > 0 ? row.us / total * 100 : 0,
                   std::round(row.calls * 100) / 100, rate(row.flops, row.us), rate(row.bytes, row.us), width,
                   shortened(row.kernel, kernel_width).c_str(), shortened(row.anchor, 14).c_str(),
                   shortened(row.nodes, 80).c_str());
    sum.calls += row.calls;
    sum.flops += row.flops;
    sum.bytes += row.bytes;
  }
  text += format("%10.1f %6.1f %6g %9.1f %8.1f  total of %zu kernels, mean of %d runs\n", total, 100.0,
                 std::round(sum.calls * 100) / 100, rate(sum.flops, total), rate(sum.bytes, total), profile.rows.size(),
                 profile.runs);
  return text;
}

std::string profile_csv(const Profile& profile) {
  std::string text = "kernel,anchor,nodes,time_us,calls,flops,bytes,gflops,gbs\n";
  for (const ProfileRow& row : profile.rows)
    text += csv_field(row.kernel) + "," + csv_field(row.anchor) + "," + csv_field(row.nodes) +
            format(",%.3f,%g,%.0f,%.0f,%.3f,%.3f\n", row.us, row.calls, row.flops, row.bytes, rate(row.flops, row.us),
                   rate(row.bytes, row.us));
  return text;
}

json profile_json(const Profile& profile) {
  json rows = json::array();
  for (const ProfileRow& row : profile.rows)
    rows.push_back({{"kernel", row.kernel},
                    {"anchor", row.anchor},
                    {"nodes", row.nodes},
                    {"time_us", row.us},
                    {"calls", row.calls},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"gflops", rate(row.flops, row.us)},
                    {"gbs", rate(row.bytes, row.us)}});
  return {{"total_us", profile.total_us()}, {"runs", profile.runs}, {"rows", rows}};
}

json latency_json(const Latencies& l, const std::vector<double>& percentiles) {
  json result = {{"median", l.median()},    {"min", l.sorted.front()}, {"max", l.sorted.back()}, {"mean", l.mean()},
                 {"p90", l.percentile(90)}, {"p99", l.percentile(99)}, {"runs", l.sorted.size()}};
  for (const double p : percentiles) result[percentile_name(p)] = l.percentile(p);
  return result;
}

std::string latency_line(const Latencies& l, const std::vector<double>& percentiles) {
  std::string text = format("latency_ms median=%.3f min=%.3f", l.median(), l.sorted.front());
  for (const double p : percentiles)
    if (p != 50 && p != 90 && p != 99) text += format(" %s=%.3f", percentile_name(p).c_str(), l.percentile(p));
  return text + format(" p90=%.3f p99=%.3f runs=%zu", l.percentile(90), l.percentile(99), l.sorted.size());
}

}  // namespace oclc::oclrun
