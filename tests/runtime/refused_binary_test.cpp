// Binaries of programs that come back from the cache, seen from the driver's side: this program stands in for the driver's
// clCreateProgramWithBinary.
#include <CL/cl.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "runtime/package/package.h"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace {

int binaries_offered = 0;    // to the driver
cl_int answer = CL_SUCCESS;  // what the driver says of them; CL_SUCCESS: what it really says

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) cl_program clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                                                       const cl_device_id* devices,
                                                                                       const std::size_t* lengths,
                                                                                       const unsigned char** binaries,
                                                                                       cl_int* status, cl_int* code) {
  ++binaries_offered;
  if (answer != CL_SUCCESS) {
    *code = answer;
    return nullptr;
  }
  static const auto real =
      reinterpret_cast<decltype(&clCreateProgramWithBinary)>(dlsym(RTLD_NEXT, "clCreateProgramWithBinary"));
  return real(context, count, devices, lengths, binaries, status, code);
}

TEST_CASE("case 65: a binary that the driver refuses is built from source, with one warning") {
  const TempDir folder;
  make(folder.path().c_str());
  const auto entry = entries(folder.path()).at(0);
  for (const auto& [code, text] : {std::pair{CL_INVALID_BINARY, "CL_INVALID_BINARY (-42)"},
                                   std::pair{CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY (-6)"}}) {
    binaries_offered = 0;
    answer = code;
    const Made made = make(folder.path().c_str());
    answer = CL_SUCCESS;
    CHECK(binaries_offered == 1);
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
  const std::string driver = rt::Context().device().driver;
  const std::size_t at = bytes.find('\n' + driver + '\n');
  REQUIRE(at != std::string::npos);
  ++bytes[at + driver.size()];
  constexpr std::size_t kHash = 8, kHashed = 16;  // positions in the file
  const std::uint64_t hash = package::hash64(std::as_bytes(std::span(bytes)).subspan(kHashed));
  std::memcpy(bytes.data() + kHash, &hash, sizeof hash);
  write(entry, bytes);
  binaries_offered = 0;
  const Made made = make(folder.path().c_str());
  CHECK(binaries_offered == 0);
  CHECK(made.stats.programs_built == 1);
  CHECK(made.result == kExpected);
  CHECK(made.messages.empty());
}

TEST_CASE("case 66: a damaged binary never reaches the driver") {
  const TempDir folder;
  make(folder.path().c_str());
  const auto entry = entries(folder.path()).at(0);
  const std::string good = read(entry);
  binaries_offered = 0;
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
  CHECK(binaries_offered == 0);
  CHECK(make(folder.path().c_str()).stats.programs_cached == 1);
  CHECK(binaries_offered == 1);
}
