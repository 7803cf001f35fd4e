#include "tools/oclrun/start.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "tools/oclrun/inputs.h"

namespace oclc::oclrun {
namespace {

using Clock = std::chrono::steady_clock;

double processor_ms() {
  double ms = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) != 0) continue;
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      ms += static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) * 1e-3;
  }
  return ms;
}

std::string format(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Than the first results.
bool is_later(const StartClock::Span& s) {
  return s.what == kSecondRunMark || s.what == kOptimizedMark || s.what == kSteadyRunMark;
}

const char* how(const oclc_build_info& b) {
  return b.from_plan ? "from the plan" : b.cached ? "from oclc's cache" : b.by_builder ? "by another process" : "";
}

}  // namespace

std::string programs_text(rt::Session& session, const char* cache) {
  const oclc_stats stats = session.stats();
  std::uint32_t of_plan = 0;
  for (const oclc_build_info& b : session.builds()) of_plan += b.from_plan;
  std::string text = format("%u built, %u from %s", stats.programs_built, stats.programs_cached - of_plan, cache);
  if (of_plan > 0) text += format(", %u from the plan", of_plan);
  return text;
}

StartClock::StartClock() : last_(Clock::now()), last_processor_ms_(processor_ms()) {}

void StartClock::mark(const std::string& what) {
  const auto now = Clock::now();
  const double processor = processor_ms();
  spans_.push_back({what, std::chrono::duration<double, std::milli>(now - last_).count(), processor - last_processor_ms_});
  last_ = now;
  last_processor_ms_ = processor;
}

double StartClock::ms_of(const std::string& what) const {
  const auto found = std::find_if(spans_.begin(), spans_.end(), [&](const Span& s) { return s.what == what; });
  return found == spans_.end() ? 0 : found->ms;
}

void run_until_optimized(Runner& runner, StartClock& clock) {
  runner.run();
  clock.mark(kSecondRunMark);
  if (!runner.session().stats().unoptimized) return;
  while (runner.session().stats().unoptimized) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    runner.run();
  }
  clock.mark(kOptimizedMark);
  runner.run();
  clock.mark(kSteadyRunMark);
}

std::string start_table(const StartClock& clock, rt::Session& session, const std::string& device) {
  const oclc_stats stats = session.stats();
  std::string text = "start on " + device + "\n" + format("%10s %14s\n", "time ms", "processor ms");
  double ms = 0, processor = 0;
  for (const StartClock::Span& s : clock.spans()) {
    text += format("%10.1f %14.1f  %s\n", s.ms, s.processor_ms, s.what.c_str());
    if (s.what == kSessionMark) {
      text += format("%10.1f %14s    programs: %s\n", static_cast<double>(stats.build_ns) * 1e-6, "",
                     programs_text(session, "oclc's cache").c_str());
      for (const oclc_build_info& b : session.builds())
        text += format("%10.1f %14s      %s: %.1f KB of text, %u kernels%s%s\n", static_cast<double>(b.build_ns) * 1e-6, "",
                       b.name, static_cast<double>(b.text_bytes) * 1e-3, b.kernels, *how(b) ? ", " : "", how(b));
      text += format("%10.1f %14s    constants\n", static_cast<double>(stats.upload_ns) * 1e-6, "");
    }
    if (is_later(s)) continue;
    ms += s.ms;
    processor += s.processor_ms;
  }
  const double first = clock.ms_of(kFirstRunMark), second = clock.ms_of(kSecondRunMark);
  if (second > 0)
    text += format("%10.1f %14s  of the first run beyond the second: kernels compiled when they first run\n",
                   std::max(0.0, first - second), "");
  return text + format("%10.1f %14.1f  to the first results\n", ms, processor);
}

nlohmann::json start_json(const StartClock& clock, rt::Session& session) {
  nlohmann::json spans = nlohmann::json::array(), builds = nlohmann::json::array();
  double ms = 0, processor = 0;
  for (const StartClock::Span& s : clock.spans()) {
    spans.push_back({{"what", s.what}, {"ms", s.ms}, {"processor_ms", s.processor_ms}});
    if (is_later(s)) continue;
    ms += s.ms;
    processor += s.processor_ms;
  }
  for (const oclc_build_info& b : session.builds())
    builds.push_back({{"program", b.name},
                      {"text_bytes", b.text_bytes},
                      {"kernels", b.kernels},
                      {"build_ms", static_cast<double>(b.build_ns) * 1e-6},
                      {"cached", b.cached != 0},
                      {"from_plan", b.from_plan != 0},
                      {"by_builder", b.by_builder != 0}});
  return {{"first_result_ms", ms},
          {"optimized_ms", static_cast<double>(session.stats().optimized_ns) * 1e-6},
          {"processor_ms", processor},
          {"spans", spans},
          {"builds", builds}};
}

std::string warm(const rt::Plan& plan, const rt::Context& context, const Options& options) {
  Dims dims = options.dims;
  for (const oclc_symbol_info& symbol : plan.symbols()) {
    const auto given = [&](const auto& dim) { return dim.first == symbol.name; };
    if (!symbol.loop_counter && std::none_of(dims.begin(), dims.end(), given)) dims.emplace_back(symbol.name, symbol.lo);
  }
  std::uint32_t entries = 0;
  std::string names;
  for (std::uint32_t entry = 0; entry < plan.info().entry_count; ++entry) {
    const std::string name = plan.entry_info(entry).name;
    if (!options.entry.empty() && name != options.entry) continue;
    Runner runner(plan, context, name);
    runner.bind_dims(dims);
    for (std::uint32_t i = 0; i < runner.inputs().size(); ++i)
      runner.bind_input(i, random_tensor(runner.inputs()[i].dtype, runner.input_shape(i), i));
    runner.bind_outputs();
    runner.run();
    names += (entries++ ? ", " : "") + name;
  }
  if (entries == 0) plan.entry(options.entry);  // says which there are
  return "ran " + names + (dims.empty() ? "" : " with " + dims_text(dims)) + "; their programs and kernels are in the cache";
}

}  // namespace oclc::oclrun
