// Time of a plan's entry point with all data on the device: what a program does that computes one batch after another.
//
//   bench_megakernel PLAN [SYMBOL=VALUE...] [--entry NAME] [--seconds S] [--runs R] [--device SEL] [--top N] [--turns]
//   [--plain]
//
// Inputs are device buffers, floats in [-1, 1), integers 0 or 1; outputs stay on the device. After 30 runs come runs of at
// least S seconds (3) and R runs (100), enqueued without waiting, then R that are waited for one by one, then profiled ones. R
// 0: one run and no figures, for programs to be built. One line: milliseconds a run in a row, median of one by one, sum of the
// launches; --top N: the N kernels that take longest. --turns: `ready` after the warm runs, then for each line of standard
// input a stretch of at least S seconds and its milliseconds a run; behind the last one the line as without, so that another
// program can have its turns in between. --plain: a queue without profiling, no profile, and behind the line the median
// of the milliseconds that the host takes to enqueue a run.
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"

namespace {

using Clock = std::chrono::steady_clock;
namespace rt = oclc::rt;

constexpr int kWarmRuns = 30, kProfiledRuns = 10;

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

std::vector<std::byte> random_bytes(oclc_dtype dtype, std::uint64_t bytes, std::mt19937& random) {
  std::vector<std::byte> data(bytes);
  if (dtype == OCLC_F32) {
    for (std::uint64_t at = 0; at + 4 <= bytes; at += 4) {
      const float x = std::uniform_real_distribution<float>(-1, 1)(random);
      std::memcpy(data.data() + at, &x, 4);
    }
  } else if (dtype == OCLC_I64) {
    for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) data[at] = static_cast<std::byte>(random() & 1);
  }
  return data;
}

// A run for whose end nobody waits in particular.
void enqueue(rt::Session& session, std::uint32_t entry) {
  if (oclc_session_enqueue(session.get(), entry, 0, nullptr, nullptr) != OCLC_OK) throw std::runtime_error("a run failed");
}

struct Options {
  std::string plan, entry, device;
  std::map<std::string, std::int64_t> dims;
  double seconds = 3;
  int runs = 100;
  std::size_t top = 0;
  bool turns = false, plain = false;
};

Options read_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (word == "--entry") {
      o.entry = next();
    } else if (word == "--seconds") {
      o.seconds = std::stod(next());
    } else if (word == "--runs") {
      o.runs = std::stoi(next());
    } else if (word == "--device") {
      o.device = next();
    } else if (word == "--top") {
      o.top = std::stoul(next());
    } else if (word == "--turns") {
      o.turns = true;
    } else if (word == "--plain") {
      o.plain = true;
    } else if (const auto at = word.find('='); at != std::string::npos) {
      o.dims[word.substr(0, at)] = std::stoll(word.substr(at + 1));
    } else {
      o.plan = word;
    }
  }
  return o;
}

void profile(rt::Session& session, std::uint32_t entry, const Options& options, double run_ms, double single_ms) {
  session.enable_profile(true);
  session.run(entry);
  struct Row {
    double us = 0, flops = 0, bytes = 0;
    int calls = 0;
  };
  std::map<std::string, Row> rows;
  double total_us = 0;
  std::size_t count = 0;
  for (int run = 0; run < kProfiledRuns; ++run) {
    session.run(entry);
    const auto launches = session.launches();
    count = launches.size();
    for (const oclc_launch_info& l : launches) {
      const double us = static_cast<double>(l.end_ns - l.start_ns) * 1e-3 / kProfiledRuns;
      Row& row = rows[l.name];
      row.us += us;
      row.flops += l.flops / kProfiledRuns;
      row.bytes += l.bytes / kProfiledRuns;
      ++row.calls;
      total_us += us;
    }
  }
  std::printf("run_ms %.4f single_ms %.4f kernels_ms %.4f launches %zu\n", run_ms, single_ms, total_us * 1e-3, count);
  std::vector<std::pair<std::string, Row>> list(rows.begin(), rows.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  list.resize(std::min(list.size(), options.top));
  for (const auto& [name, row] : list)
    std::printf("  %9.1f us %3d x %8.1f GFLOP/s %7.1f GB/s  %s\n", row.us, row.calls / kProfiledRuns, row.flops / row.us * 1e-3,
                row.bytes / row.us * 1e-3, name.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = read_options(argc, argv);
  oclc_context_options wish = OCLC_INIT(oclc_context_options);
  wish.profiling = options.plain ? 0 : 1;
  if (!options.device.empty()) wish.device = options.device.c_str();
  wish.message = [](void*, oclc_severity, const char* text) { std::fprintf(stderr, "%s\n", text); };
  const rt::Context context(wish);
  const rt::Plan plan = rt::Plan::load(options.plan);
  const auto start = Clock::now();
  rt::Session session(plan, context);
  std::fprintf(stderr, "session after %.0f ms\n", ms_since(start));
  const std::uint32_t entry = options.entry.empty() ? 0 : plan.entry(options.entry);
  for (const auto& [symbol, value] : options.dims) session.bind_dim(symbol, value);
  cl_context cl = nullptr;
  cl_command_queue queue = oclc_context_cl_queue(context.get());
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof cl, &cl, nullptr);
  std::mt19937 random(1);
  std::vector<cl_mem> buffers;
  const auto bind = [&](const oclc_binding_info& info, oclc_direction direction) {
    const std::uint64_t bytes = session.bytes(entry, direction, info.name);
    const auto shape = session.shape(entry, direction, info.name);
    auto data = random_bytes(info.dtype, bytes, random);
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = info.dtype;
    tensor.rank = static_cast<std::uint32_t>(shape.size());
    tensor.shape = shape.data();
    if (bytes > 0) {
      cl_int code = 0;
      buffers.push_back(clCreateBuffer(cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, data.data(), &code));
      if (code != CL_SUCCESS) throw std::runtime_error("no memory on the device");
      tensor.buffer = buffers.back();
    }
    direction == OCLC_INPUT ? session.set_input(entry, info.name, tensor) : session.set_output(entry, info.name, tensor);
  };
  for (const oclc_binding_info& info : plan.inputs(entry)) bind(info, OCLC_INPUT);
  for (const oclc_binding_info& info : plan.outputs(entry)) bind(info, OCLC_OUTPUT);

  session.run(entry);
  if (options.runs == 0) return 0;
  for (int i = 1; i < std::min(kWarmRuns, options.runs); ++i) session.run(entry);
  const auto stretch = [&](int least_runs) {
    int runs = 0;
    const auto begin = Clock::now();
    while (runs < least_runs || ms_since(begin) < options.seconds * 1e3) {
      for (int i = 0; i < std::min(20, options.runs); ++i, ++runs) enqueue(session, entry);
      clFinish(queue);
    }
    return ms_since(begin) / runs;
  };
  if (options.turns) {
    std::puts("ready");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%.4f\n", stretch(1));
      std::fflush(stdout);
    }
  }
  const double run_ms = stretch(options.runs);
  std::vector<double> singles;
  for (int i = 0; i < options.runs; ++i) {
    const auto one = Clock::now();
    session.run(entry);
    singles.push_back(ms_since(one));
  }
  std::sort(singles.begin(), singles.end());
  if (options.plain) {
    std::vector<double> enqueued;
    for (int i = 0; i < options.runs; ++i) {
      const auto one = Clock::now();
      enqueue(session, entry);
      enqueued.push_back(ms_since(one));
      clFinish(queue);
    }
    std::sort(enqueued.begin(), enqueued.end());
    std::printf("run_ms %.4f single_ms %.4f enqueue_ms %.4f\n", run_ms, singles[singles.size() / 2],
                enqueued[enqueued.size() / 2]);
  } else {
    profile(session, entry, options, run_ms, singles[singles.size() / 2]);
  }
  for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_megakernel: error: %s\n", error.what());
  return 1;
}
