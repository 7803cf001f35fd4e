// Binaries that a plan holds: taken when asked for, and of no weight otherwise.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "runtime/package/container.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/driver_standin.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A plan file, and what a start from it is like.
struct BinariesFixture {
  TempDir folder;
  std::string file = folder.path() + "/plan.bin";

  BinariesFixture() { write(std::string(reinterpret_cast<const char*>(plain.data()), plain.size())); }

  std::string bytes() const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file, std::ios::binary | std::ios::trunc) << text; }

  void add_binaries() const {
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.for_binaries = 1;
    const rt::Context context(options);
    const rt::Plan plan = rt::Plan::load(file);
    rt::Session session(plan, context);
    run_vector(session);
    context.write_binaries(plan, file);
  }

  Made start(bool use_binaries) const {
    Made made;
    oclc_context_options options = OCLC_INIT(oclc_context_options);
    options.use_binaries = use_binaries;
    options.message = add_message;
    options.user = &made.messages;
    const rt::Context context(options);
    rt::Session session(rt::Plan::load(file), context);
    made.result = run_vector(session);
    made.stats = session.stats();
    for (const oclc_build_info& b : session.builds()) made.from_plan += b.from_plan, made.from_cache += b.cached;
    return made;
  }

  // Compiled, with this one note.
  void check_compiled(const std::string& why) const {
    const Made made = start(true);
    CHECK(made.result == kExpected);
    CHECK(made.stats.programs_built == 1);
    REQUIRE(made.messages.size() == 1);
    CHECK_MESSAGE(made.messages[0].find(file + ": the plan's binaries are not used, its programs are compiled: " + why) == 0,
                  made.messages[0]);
  }

  std::vector<std::byte> plain = vector_plan_bytes();
};

// Replaces the bytes from `at` on and makes all checksums right again.
std::string with_section(std::string text, const std::function<void(std::string& section)>& change) {
  package::SectionRow row{};
  const std::size_t at = sizeof(package::Header) + 2 * sizeof row;
  std::memcpy(&row, text.data() + at, sizeof row);
  std::string section = text.substr(row.offset, row.bytes);
  change(section);
  text.replace(row.offset, row.bytes, section);
  row.hash = package::hash64(std::as_bytes(std::span(section)));
  std::memcpy(text.data() + at, &row, sizeof row);
  package::Header header{};
  std::memcpy(&header, text.data(), sizeof header);
  header.header_hash = 0;
  std::memcpy(text.data(), &header, sizeof header);
  header.header_hash = package::hash64(std::as_bytes(std::span(text)).first(header.header_bytes));
  std::memcpy(text.data(), &header, sizeof header);
  return text;
}

}  // namespace

TEST_CASE("a plan with binaries of its device compiles nothing where they are asked for") {
  const Setting no_cache("OCLC_CACHE", "0");
  const BinariesFixture f;
  f.add_binaries();
  const Made taken = f.start(true), not_asked = f.start(false);
  CHECK(taken.result == kExpected);
  CHECK(taken.stats.programs_built == 0);
  CHECK(taken.stats.programs_cached == 1);
  CHECK(taken.from_plan == 1);
  CHECK(taken.from_cache == 0);
  CHECK(taken.messages.empty());
  CHECK(not_asked.result == kExpected);
  CHECK(not_asked.from_plan == 0);
  CHECK(not_asked.stats.programs_built == 1);
  CHECK(not_asked.messages.empty());
  const Setting by_environment("OCLC_USE_BINARIES", "1");
  CHECK(f.start(false).stats.programs_built == 0);
  // Written again, they replace those of this device; the plan is as it was.
  const std::string once = f.bytes();
  f.add_binaries();
  CHECK(package::Package::open(f.file)->binaries()->rows()->size() == 1);
  CHECK(package::Package::open(f.file)->metadata().size() == package::Package::from_memory(f.plain)->metadata().size());
}

TEST_CASE("binaries of another driver or processor, or damaged ones, are not offered to the driver, and said once") {
  const Setting no_cache("OCLC_CACHE", "0");
  const BinariesFixture f;
  f.add_binaries();
  const std::string good = f.bytes(), version = rt::Context().device().driver;
  driver.binaries_offered = 0;
  f.write(with_section(good, [&](std::string& section) {
    const std::size_t at = section.find('\n' + version + '\n');
    REQUIRE(at != section.npos);
    ++section[at + version.size()];
  }));
  f.check_compiled("they are of other devices, drivers or options than this one ('");
  // Of a processor with other instructions.
  if (const std::string first = "\nsse4_2 "; good.find(first) != good.npos) {
    f.write(with_section(good, [&](std::string& section) { section.replace(section.find(first), first.size(), "\nsse4_1 "); }));
    f.check_compiled("they are of other devices, drivers or options than this one ('");
  }
  f.write(with_section(good, [](std::string& section) { std::fill(section.begin(), section.end(), '\xff'); }));
  f.check_compiled("their section is no table of binaries");
  std::string flipped = good;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  f.write(flipped);
  f.check_compiled("the checksum of their section differs");
  CHECK(driver.binaries_offered == 0);
  f.write(good.substr(0, good.size() - 1));
  CHECK_THROWS_AS(rt::Plan::load(f.file), rt::Error);
}

TEST_CASE("binaries that the driver refuses are compiled, with one note") {
  const Setting no_cache("OCLC_CACHE", "0");
  const BinariesFixture f;
  f.add_binaries();
  driver.answer = CL_INVALID_BINARY;
  f.check_compiled("the driver does not take that of program 'vector': CL_INVALID_BINARY (-42)");
  driver.answer = CL_SUCCESS;
}

TEST_CASE("binaries are written by a context that was made for it, or not at all") {
  const BinariesFixture f;
  const std::string before = f.bytes();
  const rt::Context context;
  const rt::Plan plan = rt::Plan::load(f.file);
  try {
    context.write_binaries(plan, f.file);
    FAIL("nothing thrown");
  } catch (const rt::Error& error) {
    CHECK(error.status() == OCLC_E_ARGUMENT);
    CHECK(std::string(error.what()) == "oclc_plan_write_binaries: wanted a context made with for_binaries");
  }
  CHECK(f.bytes() == before);
}
