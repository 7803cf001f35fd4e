#include "tools/oclrun/streams.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "tools/oclrun/inputs.h"

namespace oclc::oclrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kDefaultSeconds = 2;

// A session on a context of its own: sessions of one context share its queue and take turns.
struct Stream {
  rt::Context context;
  Runner runner;
  std::vector<double> times_ms;
  Clock::time_point begin, end;
  std::exception_ptr failure;

  Stream(const rt::Plan& plan, rt::Context own, const std::string& entry)
      : context(std::move(own)), runner(plan, context, entry) {}
};

void run_stream(Stream& stream, const Options& o, std::barrier<>& start) {
  stream.times_ms.clear();
  start.arrive_and_wait();
  stream.begin = Clock::now();
  try {
    const double seconds = o.seconds > 0 ? o.seconds : o.runs > 0 ? 0 : kDefaultSeconds;
    for (auto now = stream.begin; static_cast<int>(stream.times_ms.size()) < std::max(o.runs, 1) ||
                                  std::chrono::duration<double>(now - stream.begin).count() < seconds;) {
      stream.runner.run();
      const auto end = Clock::now();
      stream.times_ms.push_back(std::chrono::duration<double, std::milli>(end - now).count());
      now = end;
    }
  } catch (...) {
    stream.failure = std::current_exception();
  }
  stream.end = Clock::now();
}

Throughput measure(std::span<const std::unique_ptr<Stream>> streams, const Options& o) {
  std::barrier<> start(static_cast<std::ptrdiff_t>(streams.size()));
  std::vector<std::thread> threads;
  for (const auto& stream : streams) threads.emplace_back([&] { run_stream(*stream, o, start); });
  for (std::thread& thread : threads) thread.join();
  // This thread may have been woken behind the first results: a stream knows itself when it began.
  Clock::time_point begin = streams.front()->begin;
  for (const auto& stream : streams) begin = std::min(begin, stream->begin);
  Throughput result;
  result.streams = static_cast<int>(streams.size());
  for (const auto& stream : streams) {
    if (stream->failure) std::rethrow_exception(stream->failure);
    result.seconds = std::max(result.seconds, std::chrono::duration<double>(stream->end - begin).count());
    result.latencies.sorted.insert(result.latencies.sorted.end(), stream->times_ms.begin(), stream->times_ms.end());
  }
  std::sort(result.latencies.sorted.begin(), result.latencies.sorted.end());
  return result;
}

}  // namespace

std::vector<Throughput> measure_streams(const rt::Plan& plan, const Options& options,
                                        const std::function<rt::Context()>& make_context) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < options.streams; ++i) streams.push_back(std::make_unique<Stream>(plan, make_context(), options.entry));
  std::vector<Throughput> rows;
  const std::size_t sizes = std::max<std::size_t>(1, options.sweep.size());
  for (std::size_t i = 0; i < sizes; ++i) {
    Options sized = options;
    if (!options.sweep.empty()) sized.dims.emplace_back(options.sweep_dim, options.sweep[i]);
    for (const auto& stream : streams) {
      stream->runner.forget_inputs();
      bind_from_options(stream->runner, sized);
      for (int run = 0; run < std::max(1, options.warmup); ++run) stream->runner.run();
    }
    const auto add = [&](std::size_t count) {
      Throughput row = measure(std::span(streams).first(count), sized);
      if (!options.sweep.empty())
        row.size = options.sweep_dim + "=" + std::to_string(options.sweep[i]), row.of = options.sweep[i];
      if (count > 1) row.scaling = row.runs_per_s() / rows.back().runs_per_s();
      rows.push_back(std::move(row));
    };
    add(1);
    if (streams.size() > 1) add(streams.size());
  }
  return rows;
}

std::string streams_table(const std::vector<Throughput>& rows) {
  const bool swept = !rows.front().size.empty();
  const std::string dim = rows.front().size.substr(0, rows.front().size.find('='));
  std::size_t width = 4;
  for (const Throughput& row : rows) width = std::max(width, row.size.size());
  const int w = static_cast<int>(width);
  const auto format = [](const char* pattern, auto... values) {
    char text[512];
    std::snprintf(text, sizeof text, pattern, values...);
    return std::string(text);
  };
  std::string text = swept ? format("%-*s ", w, "size") : "";
  text += format("%7s %10s ", "streams", "runs/s");
  if (swept) text += format("%10s ", (dim + "/s").c_str());
  text += format("%9s %9s %9s %8s\n", "p50 ms", "p90 ms", "p99 ms", "scaling");
  for (const Throughput& row : rows) {
    if (swept) text += format("%-*s ", w, row.size.c_str());
    text += format("%7d %10.1f ", row.streams, row.runs_per_s());
    if (swept) text += format("%10.1f ", row.runs_per_s() * static_cast<double>(row.of));
    text += format("%9.3f %9.3f %9.3f %8.2f\n", row.latencies.median(), row.latencies.percentile(90),
                   row.latencies.percentile(99), row.scaling);
  }
  return text;
}

nlohmann::json streams_json(const std::vector<Throughput>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Throughput& row : rows) {
    nlohmann::json one = {{"streams", row.streams},
                          {"runs_per_s", row.runs_per_s()},
                          {"seconds", row.seconds},
                          {"latency_ms", latency_json(row.latencies, {})},
                          {"scaling", row.scaling}};
    if (!row.size.empty()) one["size"] = row.size;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace oclc::oclrun
