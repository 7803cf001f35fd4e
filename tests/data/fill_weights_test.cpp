// The constants come from an independent numpy implementation of the formula in tools/fill_weights/uniform.h.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/process.h"
#include "tools/fill_weights/uniform.h"

namespace {

namespace fs = std::filesystem;
using oclc::test::Folder;
using oclc::test::Outcome;
using oclc::test::run;

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

Outcome fill(const std::string& arguments) { return run(OCLC_BINARY_DIR "/bin/oclc-fill-weights " + arguments); }

std::ptrdiff_t files(const Folder& folder) {
  return std::distance(fs::directory_iterator(folder.path), fs::directory_iterator());
}

std::vector<std::uint32_t> words(const fs::path& file) {
  std::vector<std::uint32_t> all(fs::file_size(file) / sizeof(std::uint32_t));
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(std::uint32_t)));
  REQUIRE(in.good());
  return all;
}

constexpr const char* kTwoTensors = R"({"weights": "w.bin", "bytes": 4194336, "generator": "splitmix64", "tensors": [
  {"name": "a", "offset": 0, "count": 1048578, "seed": 7, "lo": -0.25, "hi": 0.75},
  {"name": "b", "offset": 4194320, "count": 2, "seed": 8, "lo": 1.0, "hi": 2.0}]})";

}  // namespace

TEST_CASE("streams of numbers equal the reference") {
  using namespace oclc::fill;
  const float bound = static_cast<float>(0.2020305097103119);
  CHECK(bits(uniform(1, 0, -bound, bound)) == 0x3e22cdc6u);
  CHECK(bits(uniform(1, 1, -bound, bound)) == 0xbe461320u);
  CHECK(bits(uniform(1, 2, -bound, bound)) == 0xbdf4b15au);
  CHECK(bits(uniform(14, 102760446, -0.05f, 0.05f)) == 0x3b88bd98u);
  CHECK(bits(uniform(9001, 1, -2.0f, 2.0f)) == 0x3fc785d8u);
  const std::array<std::int64_t, 4> tokens{46228, 44713, 20455, 49087};
  for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(integer(9001, i, 50257) == tokens[i]);
}

TEST_CASE("a whole model's weights equal the reference") {
  const Folder out;
  const Outcome outcome = fill(quoted(OCLC_SOURCE_DIR "/tests/models/squeezenet1_1") + " --out " + quoted(out.path));
  CHECK(outcome.text == (out.path / "model.weights").string() + "\n");
  REQUIRE(outcome.status == 0);
  const std::vector<std::uint32_t> all = words(out.path / "model.weights");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) sum += all[i] * static_cast<std::uint64_t>(i + 1);
  CHECK(all.size() == 1235504);
  CHECK(sum == 0xd743d13f999d5832u);
  CHECK(fs::file_size(out.path / "model.onnx") == fs::file_size(OCLC_SOURCE_DIR "/tests/models/squeezenet1_1/model.onnx"));
  CHECK(files(out) == 2);
}

TEST_CASE("tensors land at their offsets, across pieces, with zeros between them") {
  const Folder folder;
  folder.add("weights.json", kTwoTensors);
  REQUIRE(fill(quoted(folder.path)).status == 0);
  const std::vector<std::uint32_t> all = words(folder.path / "w.bin");
  REQUIRE(all.size() == 1048584);
  CHECK(all[1048575] == 0x3e00d5f8u);
  CHECK(all[1048576] == 0x3f0b6644u);
  CHECK(all[1048577] == 0x3e0210a8u);
  CHECK(all[1048578] == 0);
  CHECK(all[1048579] == 0);
  CHECK(all[1048581] == 0x3ff5ba62u);
  CHECK(all[1048583] == 0);
}

TEST_CASE("check keeps a file of the right size and replaces any other") {
  const Folder folder;
  folder.add("weights.json", kTwoTensors);
  const fs::path weights = folder.path / "w.bin";
  std::ofstream(weights) << "short";
  REQUIRE(fill("--check " + quoted(folder.path)).status == 0);
  REQUIRE(fs::file_size(weights) == 4194336);
  std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary) << "KEPT";
  REQUIRE(fill("--check " + quoted(folder.path)).status == 0);
  CHECK(words(weights)[0] == 0x5450454bu);
  REQUIRE(fill(quoted(folder.path)).status == 0);
  CHECK(words(weights)[0] != 0x5450454bu);
}

TEST_CASE("a recipe that does not fit is refused and nothing is written") {
  const Folder folder;
  const auto refused = [&](const std::string& recipe, const std::string& reason) {
    folder.add("weights.json", recipe);
    const Outcome outcome = fill(quoted(folder.path));
    CHECK(outcome.status == 3);
    CHECK_MESSAGE(outcome.text.find(reason) != std::string::npos, outcome.text);
    CHECK(files(folder) == 1);
  };
  const std::string head = R"({"weights": "w.bin", "generator": "splitmix64", "bytes": )";
  refused(head + R"(8, "tensors": [{"name": "a", "offset": 4, "count": 2, "seed": 1, "lo": 0, "hi": 1}]})",
          "tensor 'a' leaves the file of 8 bytes");
  refused(head + R"(8, "tensors": [{"name": "a", "offset": 0, "count": 4611686018427387905, "seed": 1, "lo": 0, "hi": 1}]})",
          "tensor 'a' leaves the file of 8 bytes");
  refused(R"({"weights": "../w", "generator": "splitmix64", "bytes": 8, "tensors": []})",
          "wants a plain file name, found '../w'");
  refused(R"({"weights": "w", "generator": "other", "bytes": 8, "tensors": []})", "wanted generator splitmix64");
  refused("{", "parse error");
}

TEST_CASE("wrong usage and missing files have their exit codes") {
  const Folder folder;
  CHECK(fill("").status == 2);
  CHECK(fill("--wrong " + quoted(folder.path)).status == 2);
  CHECK(fill(quoted(folder.path)).status == 6);
  folder.add("weights.json", kTwoTensors);
  CHECK(fill(quoted(folder.path) + " --out /dev/null/x").status == 6);
  CHECK(fill("--help").status == 0);
}
