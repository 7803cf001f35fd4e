// Heads, formulas and bodies that are almost right: each is read, and built where it can be, or refused with a CompileError.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

// Whole files, which the fuzzer begins with as well, in the order of their names.
std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const char* name : {"kernel", "layer", "rule", "scalar", "stack"}) {
    std::ifstream file(fmt::format("{}/tests/fuzz/targets/seeds/operators/{}.cl", OCLC_SOURCE_DIR, name));
    REQUIRE(file);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Pieces that mean something.
const char* const kPieces[] = {"[",
                               "]",
                               "(",
                               ")",
                               "...",
                               "sum(k: ",
                               "max(",
                               "has(",
                               "len(",
                               "pad(",
                               "x",
                               "w[i, j]",
                               "+=",
                               "=",
                               "? ",
                               ": ",
                               "*/",
                               "'''",
                               "\"",
                               "\n",
                               "1e99",
                               "-",
                               "!",
                               "9999999999",
                               "0",
                               "/ 0",
                               "% 0",
                               "T",
                               "i64",
                               "f32(",
                               "LOAD(",
                               "STORE(",
                               "OP(",
                               "ID(9)",
                               "kernel = \"rule\"\n",
                               "group = [0]\n",
                               "get_global_id(0)",
                               "#include",
                               "N",
                               "M",
                               ", ",
                               "*",
                               "?",
                               "int!\"",
                               "{ ",
                               " }",
                               "[1e3]",
                               "#",
                               "\\u0041",
                               "\xff"};

std::string mutated(const std::vector<std::string>& wholes, std::mt19937& random) {
  std::string text = wholes[random() % wholes.size()];
  for (auto n = 1 + random() % 2; n > 0; --n) {
    const std::size_t at = random() % (text.size() + 1), length = std::min<std::size_t>(random() % 12, text.size() - at);
    switch (random() % 4) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[random() % std::size(kPieces)]);
        break;
      case 2:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 40));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random() % 128);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("Mutated heads and formulas are read or refused") {
  const char* given = std::getenv("OCLC_FUZZ_SECONDS");
  const char* seed = std::getenv("OCLC_FUZZ_SEED");
  const double seconds = given ? std::atof(given) : 1;
  std::mt19937 random(seed ? static_cast<unsigned>(std::atoi(seed)) : 1);
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t tried = 0, read = 0, built = 0;
  const std::vector<std::string> wholes = seeds();
  std::string text;
  try {
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
      text = mutated(wholes, random);
      ++tried;
      try {
        const CustomOps ops = parse_ops(text, "op.cl");
        ++read;
        std::string sizes;
        for (const std::string& name : ops.names()) {
          custom::example(*ops.find(name), DType::f32, static_cast<unsigned>(random() % 100), sizes);
          ++built;
        }
      } catch (const CompileError& error) {
        if (error.parts().wanted.find("op.cl:") == std::string::npos)
          FAIL_CHECK("no place: ", std::string(error.what()), "\n", text);
      }
    }
  } catch (const std::exception& error) {
    FAIL_CHECK(std::string(error.what()), " of\n", text);
  }
  MESSAGE(tried, " texts, ", read, " read, ", built, " built");
  CHECK(read > 0);
  CHECK(built > 0);
}

}  // namespace oclc::test
