// Binaries of programs that come back from the cache, seen from the driver's side.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "runtime/package/package.h"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("case 65: a binary that the driver refuses is built from source, with one warning") {
  const TempDir folder;
  make(folder.path().c_str());
  const auto entry = entries(folder.path()).at(0);
  for (const auto& [code, text] : {std::pair{CL_INVALID_BINARY, "CL_INVALID_BINARY (-42)"},
                                   std::pair{CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY (-6)"}}) {
    driver.binaries_offered = 0;
    driver.answer = code;
    const Made made = make(folder.path().c_str());
    driver.answer = CL_SUCCESS;
    CHECK(driver.binaries_offered == 1);
    CHECK(made.stats.programs_built == 1);
    CHECK(made.stats.programs_cached == 0);
    CHECK(made.result == kExpected);
    REQUIRE(made.messages.size() == 1);
    CHECK(made.messages[0] ==
          "the driver refuses the program cache entry '" + entry.string() + "': " + text + "; it is made anew");
  }
  const Made again = make(folder.path().c_str());
  CHECK(again.stats.programs_cached == 1);
  CHECK(again.messages.empty());
}

TEST_CASE("case 65: a binary that another driver made is not offered") {
  const TempDir folder;
  make(folder.path().c_str());
  const auto entry = entries(folder.path()).at(0);
  // As if the driver had been updated since: its version is part of the key. The checksum is right.
  std::string bytes = read(entry);
  const std::string version = rt::Context().device().driver;
  const std::size_t at = bytes.find('\n' + version + '\n');
  REQUIRE(at != std::string::npos);
  ++bytes[at + version.size()];
  constexpr std::size_t kHash = 8, kHashed = 16;  // positions in the file
  const std::uint64_t hash = package::hash64(std::as_bytes(std::span(bytes)).subspan(kHashed));
  std::memcpy(bytes.data() + kHash, &hash, sizeof hash);
  write(entry, bytes);
  driver.binaries_offered = 0;
  const Made made = make(folder.path().c_str());
  CHECK(driver.binaries_offered == 0);
  CHECK(made.stats.programs_built == 1);
  CHECK(made.result == kExpected);
  CHECK(made.messages.empty());
}

TEST_CASE("case 66: a damaged binary never reaches the driver") {
  const TempDir folder;
  make(folder.path().c_str());
  const auto entry = entries(folder.path()).at(0);
  const std::string good = read(entry);
  driver.binaries_offered = 0;
  constexpr std::size_t kPlaces = 24;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const std::size_t at = i * (good.size() - 1) / (kPlaces - 1);
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (i % 8)));
    for (const std::string& bytes : {flipped, good.substr(0, at)}) {
      write(entry, bytes);
      const Made made = make(folder.path().c_str());
      CHECK(made.stats.programs_built == 1);
      CHECK(made.result == kExpected);
    }
  }
  CHECK(driver.binaries_offered == 0);
  CHECK(make(folder.path().c_str()).stats.programs_cached == 1);
  CHECK(driver.binaries_offered == 1);
}

TEST_CASE("a driver that refuses the instructions of matrix units gets the text without them, with one warning") {
  // As the runtime tells programs on NVIDIA's devices.
  fb::PlanT plan = vector_plan();
  fb::ProgramT& program = *plan.programs.at(0);
  program.source = "#if OCLC_NV_SM >= 80\nthis is no C\n#else\n" + program.source + "\n#endif\n";
  program.options = "-cl-std=CL1.2 -DOCLC_NV_SM=90";
  const std::vector<std::byte> bytes = finish(plan, {1, 2, 3, 4});
  const TempDir folder;
  for (const bool cached : {false, true}) {
    std::vector<std::string> messages;
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.cache_dir = folder.path().c_str();
    options.message = add_message;
    options.user = &messages;
    const rt::Context context(options);
    rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
    CHECK(run_vector(session) == kExpected);
    CHECK(session.stats().programs_cached == (cached ? 1 : 0));
    REQUIRE(messages.size() == (cached ? 0 : 1));
    if (!cached) CHECK(messages[0].find("refuses the instructions of its matrix units") != std::string::npos);
  }
}
