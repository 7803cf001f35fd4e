// oclc-bench-compile-time [--target NAME].. [--most NODES] [--kind NAME].. [--seconds LIMIT] [--json FILE]
//
// Seconds and memory that the compiler takes for graphs of 10^2, 10^3, .. nodes of each kind of tests/compile/large_graphs.h,
// by target. Each is compiled in a process of its own. The last column is the power of the number of nodes by which seconds
// grew since the size before; n log n is 1.1 to 1.2 there. A kind ends with the size that took longer than the limit.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "tests/compile/large_graphs.h"

namespace {

using namespace oclc;

struct Measured {
  double seconds = 0, megabytes = 0;
  std::int64_t kernels = 0, source_bytes = 0;
  char error[200] = "";
};

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Measured measured_here(const test::GraphKind& kind, int nodes, const std::string& target) {
  Measured m;
  auto module = kind.make(nodes);
  const double before = peak_megabytes(), begin = processor_seconds();
  try {
    CompileOptions options;
    options.target = find_target(target);
    const Compiled compiled = compile(std::move(module), options);
    m.kernels = static_cast<std::int64_t>(compiled.schedule.kernels.size());
    for (const GeneratedFile& file : compiled.plan.files) m.source_bytes += static_cast<std::int64_t>(file.source.size());
  } catch (const CompileError& error) {
    std::strncpy(m.error, error.what(), sizeof m.error - 1);
  }
  m.seconds = processor_seconds() - begin;
  m.megabytes = peak_megabytes() - before;
  return m;
}

Measured measured(const test::GraphKind& kind, int nodes, const std::string& target) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    const Measured m = measured_here(kind, nodes, target);
    ::_exit(::write(ends[1], &m, sizeof m) == static_cast<ssize_t>(sizeof m) ? 0 : 1);
  }
  ::close(ends[1]);
  Measured m;
  if (::read(ends[0], &m, sizeof m) != static_cast<ssize_t>(sizeof m)) std::strcpy(m.error, "the process ended");
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return m;
}

bool among(const std::vector<std::string>& list, std::string_view name) {
  for (const std::string& item : list)
    if (item == name) return true;
  return list.empty();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> targets, kinds;
  int most = 1000;
  double limit = 120;
  std::string json_file;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--target") targets.push_back(value);
    if (option == "--kind") kinds.push_back(value);
    if (option == "--most") most = std::atoi(value.c_str());
    if (option == "--seconds") limit = std::atof(value.c_str());
    if (option == "--json") json_file = value;
  }
  if (targets.empty()) targets = {"cpu", "h200"};
  nlohmann::json rows = nlohmann::json::array();
  std::printf("%-20s %-8s %8s %9s %8s %8s %11s %6s\n", "kind", "target", "nodes", "s", "MB", "kernels", "source", "power");
  for (const test::GraphKind& kind : test::graph_kinds()) {
    if (!among(kinds, kind.name)) continue;
    for (const std::string& target : targets) {
      double before = 0;
      for (int nodes = 100; nodes <= most; nodes *= 10) {
        const Measured m = measured(kind, nodes, target);
        const double power = before > 0 ? std::log10(std::max(m.seconds, 1e-3) / std::max(before, 1e-3)) : 0;
        std::printf("%-20s %-8s %8d %9.3f %8.1f %8lld %11lld %6.2f %s\n", std::string(kind.name).c_str(), target.c_str(), nodes,
                    m.seconds, m.megabytes, static_cast<long long>(m.kernels), static_cast<long long>(m.source_bytes), power,
                    m.error);
        std::fflush(stdout);
        rows.push_back({{"kind", kind.name},
                        {"target", target},
                        {"nodes", nodes},
                        {"seconds", m.seconds},
                        {"megabytes", m.megabytes},
                        {"kernels", m.kernels},
                        {"source_bytes", m.source_bytes},
                        {"error", m.error}});
        before = m.seconds;
        if (m.seconds > limit) break;
      }
    }
  }
  if (!json_file.empty()) {
    std::FILE* file = std::fopen(json_file.c_str(), "w");
    if (!file || std::fputs(rows.dump(1).c_str(), file) < 0 || std::fclose(file) != 0) {
      std::fprintf(stderr, "compile_time: cannot write %s\n", json_file.c_str());
      return 1;
    }
  }
  return 0;
}
