// Compilation takes time and memory in proportion to the model, whatever it is made of.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "tests/compile/allocations.h"
#include "tests/compile/large_graphs.h"

using namespace oclc;
using namespace oclc::test;

namespace growth_test {
namespace {

CompileOptions options() {
  CompileOptions made;
  made.target = find_target("cpu");
  return made;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The most memory that the process had since the last call, if the system tells.
double peak_megabytes() {
  double kilobytes = 0;
  std::string word;
  std::ifstream status("/proc/self/status");
  while (status >> word) {
    if (word == "VmHWM:") status >> kilobytes;
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  return kilobytes / 1024;
}

struct Measured {
  double seconds = 0, megabytes = 0;
  std::size_t kernels = 0, source_bytes = 0;
  std::string error;
};

Measured measure(const GraphKind& kind, int nodes) {
  Measured m;
  auto module = kind.make(nodes);
  peak_megabytes();
  const double begin = processor_seconds();
  try {
    const Compiled compiled = compile(std::move(module), options());
    m.kernels = compiled.schedule.kernels.size();
    for (const GeneratedFile& file : compiled.plan.files) m.source_bytes += file.source.size();
  } catch (const CompileError& error) {
    m.error = error.what();
  }
  m.seconds = processor_seconds() - begin;
  m.megabytes = peak_megabytes();
  return m;
}

}  // namespace

// Eight times the nodes take at most 8 log 8, and what a loaded machine adds.
TEST_CASE("compilation grows with the number of nodes") {
  for (const GraphKind& kind : graph_kinds()) {
    const Measured small = measure(kind, 60), large = measure(kind, 480);
    INFO(kind.name, ": ", small.seconds, " s, ", large.seconds, " s, ", large.source_bytes, " bytes of source");
    CHECK(small.error == "");
    CHECK(large.error == "");
    CHECK(large.seconds < 24 * small.seconds + 1);
    CHECK(large.source_bytes < 24 * small.source_bytes + 100'000);
  }
}

// Allocations stand for work: a list that is copied, or searched by making something, for each node makes them grow by the
// square.
TEST_CASE("the work of compilation is in proportion to the number of nodes") {
  for (const GraphKind& kind : graph_kinds()) {
    const bool slow = kind.name == "rolls" || kind.name == "self_concats" || kind.name == "gathers";
    const int small = slow ? 60 : kind.most < 4000 ? 200 : 500;
    const auto work = [&](int nodes) {
      auto module = kind.make(nodes);
      return static_cast<double>(allocations_in([&] { compile(std::move(module), options()); }));
    };
    const double few = work(small), many = work(8 * small);
    INFO(kind.name, ": ", few, " allocations, ", many);
    CHECK(many < 1.5 * 8 * few);
  }
}

TEST_CASE("curves of compilation are printed where OCLC_CURVES asks for them") {
  const char* most = std::getenv("OCLC_CURVES");
  const char* only = std::getenv("OCLC_CURVES_OF");
  for (const GraphKind& kind : graph_kinds()) {
    if (only && kind.name != only) continue;
    for (int nodes = 100; nodes <= (most ? std::atoi(most) : 100); nodes *= 10) {
      const Measured m = measure(kind, nodes);
      CHECK(m.seconds >= 0);
      if (most)
        fmt::print("{:20} {:7} nodes {:8.2f} s {:8.0f} MB {:6} kernels {:10} bytes of source {}\n", kind.name, nodes, m.seconds,
                   m.megabytes, m.kernels, m.source_bytes, m.error);
      std::fflush(stdout);
      if (m.seconds > 60) break;
    }
  }
}

}  // namespace growth_test
