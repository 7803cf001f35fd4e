// Models compiled, run and compared one after another in one process, for OCLC_SOAK_SECONDS.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/fuzz/generate.h"
#include "tests/support/run_plan.h"

namespace oclc::fuzz {
namespace {

double resident_megabytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long total = 0, pages = 0;
  if (!file) return 0;
  if (std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
  std::fclose(file);
  return static_cast<double>(pages) * 4096 / (1 << 20);
}

TEST_CASE("case 102: random models compile, run and give the reference's numbers, one after another in one process") {
  const char* wish = std::getenv("OCLC_SOAK_SECONDS");
  const char* first = std::getenv("OCLC_SOAK_SEED");
  const double seconds = wish ? std::atof(wish) : 5;
  const std::vector<Spec> specs = all_specs();
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  constexpr int kWarm = 20;
  int models = 0, refused = 0;
  double warm = 0;
  for (std::uint64_t seed = first ? std::strtoull(first, nullptr, 10) : 1; passed() < seconds || models < 3; ++seed) {
    const Spec& spec = specs[seed * 7919 % specs.size()];
    const Single single = random_single(seed, spec.until, spec, "a");
    if (!single.failure.empty() || !single.refusal.empty()) {
      CHECK_MESSAGE(single.failure == "", spec.op << ", seed " << seed);
      ++refused;
      continue;
    }
    CHECK_MESSAGE(check(single.model, test::default_options()) == "", spec.op << ", seed " << seed);
    if (++models == kWarm) warm = resident_megabytes();
  }
  MESSAGE(models << " models in " << passed() << " s, " << refused << " refused; "
                 << (models > kWarm ? (resident_megabytes() - warm) * 1024 / (models - kWarm) : 0)
                 << " KiB a model behind the first " << kWarm);
  CHECK(models > refused);
}

}  // namespace
}  // namespace oclc::fuzz
