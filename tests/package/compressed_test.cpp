// Metadata that lies compressed in a plan.
#include "runtime/package/compressed.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "runtime/package/container.h"
#include "runtime/package/error.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/temp_dir.h"

namespace oclc::package::compressed_test {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  Bytes out(text.size());
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

std::string refusal(const Bytes& section) {
  try {
    decompressed(section);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::corrupt);
    return error.what();
  }
  return {};
}

// A section that says so many bytes.
Bytes section(std::uint64_t size, std::initializer_list<int> rest) {
  Bytes out(8);
  std::memcpy(out.data(), &size, 8);
  for (const int byte : rest) out.push_back(static_cast<std::byte>(byte));
  return out;
}

TEST_CASE("what is compressed comes back") {
  std::mt19937 random(7);
  std::string kernel;
  for (int i = 0; i < 400; ++i) kernel += "  y[" + std::to_string(i) + "] = fma(a, x[" + std::to_string(i * 3) + "], y[0]);\n";
  std::string noise(5000, ' '), few(5000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  for (char& c : few) c = static_cast<char>('a' + random() % 2);
  for (const std::string& text : {std::string(), std::string("a"), std::string("abcdefgh"), std::string(100000, 'x'), kernel,
                                  noise, few, kernel + noise + kernel}) {
    const Bytes plain = bytes_of(text), shorter = compressed(plain);
    CHECK(decompressed(shorter) == plain);
    CHECK(shorter.size() < plain.size() + 64);
    CHECK(plain.size() / kMostGrowth <= shorter.size());
  }
  CHECK(compressed(bytes_of(kernel)).size() < kernel.size() / 3);
}

TEST_CASE("a section that is not of that form is refused") {
  CHECK(decompressed(section(3, {1, 'a', 2, 1, 0, 0})) == bytes_of("aaa"));
  CHECK(refusal({}) == "the compressed metadata: truncated within its head");
  CHECK(refusal(section(UINT64_MAX, {0, 0})) == "the compressed metadata: more bytes than the section can hold");
  CHECK(refusal(section(3, {})) == "the compressed metadata: truncated within a sequence");
  CHECK(refusal(section(3, {5, 'a'})) == "the compressed metadata: truncated within a sequence");
  CHECK(refusal(section(3, {1, 'a', 0})) == "the compressed metadata: fewer bytes than it says");
  CHECK(refusal(section(3, {1, 'a', 2, 2, 0, 0})) == "the compressed metadata: a distance past the beginning");
  CHECK(refusal(section(3, {1, 'a', 2, 0, 0, 0})) == "the compressed metadata: a distance past the beginning");
  CHECK(refusal(section(2, {1, 'a', 2, 1, 0, 0})) == "the compressed metadata: more bytes than it says");
  CHECK(refusal(section(0, {1, 'a', 0})) == "the compressed metadata: more bytes than it says");
  CHECK(refusal(section(1, {1, 'a', 0, 0})) == "the compressed metadata: bytes after its end");
  CHECK(refusal(section(1, {129, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0, 'a', 0})) ==
        "the compressed metadata: a number of too many bytes");
}

TEST_CASE("random changes of a section are refused or read, and nothing else") {
  const Bytes good = compressed(bytes_of("float a = 1; float b = 1; float c = 1; float d = 1; float ab = 1; float cd = 1;"));
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bad = good;
    for (unsigned k = 0; k <= random() % 3; ++k) bad[random() % bad.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    try {
      const std::size_t found = decompressed(bad).size();
      CHECK(found <= bad.size() * kMostGrowth);
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a plan is compressed where that makes it much smaller, and is the same plan") {
  const test::TempDir dir;
  const auto metadata = test::metadata(test::vector_plan());
  const auto write = [&](const Bytes& constants, MetadataAs as) {
    ConstantSection section;
    section.add(constants);
    write_package(dir / "plan.bin", metadata, section, as);
    const auto package = Package::open(dir / "plan.bin");
    CHECK(std::equal(metadata.begin(), metadata.end(), package->metadata().begin(), package->metadata().end()));
    CHECK(package->constants().size() == constants.size());
    return Package::open(dir / "plan.bin", Residence::copied)->stored_metadata().size();
  };
  CHECK(write(Bytes(64), MetadataAs::it_is) == metadata.size());
  CHECK(write(Bytes(64), MetadataAs::shorter) < metadata.size() * 3 / 4);
  CHECK(write(Bytes(metadata.size() * 16), MetadataAs::shorter) == metadata.size());
}

}  // namespace oclc::package::compressed_test
