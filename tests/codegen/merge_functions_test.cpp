#include "compiler/codegen/launches/merge_functions.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace oclc {
namespace {

std::vector<MergedFunction> merged(const std::vector<std::string>& bodies) {
  std::vector<std::string> names, texts;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    names.push_back("k_" + std::to_string(i) + "_tile");
    texts.push_back("void " + names.back() + "(__global const float* x0, __global float* y0, const int tile) {\n" + bodies[i] +
                    "\n}\n");
  }
  return merge_functions(names, texts);
}

bool merges(const std::string& a, const std::string& b) { return merged({a, b}).size() == 1; }

TEST_CASE("functions that differ in constants are merged") {
  const auto list = merged({"  const int i = tile * 64;  // of 64\n  y0[i] = x0[i + 64] * 1.5f + 8;", "  y0[tile] = 2;",
                            "  const int i = tile * 32;\n  y0[i] = x0[i + 32] * 0.25f + 8;"});
  REQUIRE(list.size() == 1);
  CHECK(list[0].members == std::vector<std::size_t>{0, 2});
  CHECK(list[0].text ==
        "void k_0_tile_merged(__global const float* x0, __global float* y0, const int tile, const int constant0, const float "
        "constant1) {\n"
        "  const int i = tile * constant0;\n"
        "  y0[i] = x0[i + constant0] * constant1 + 8;\n"
        "}\n");
  CHECK(list[0].macros ==
        "#define k_0_tile(x0, y0, tile) k_0_tile_merged(x0, y0, tile, 64, 1.5f)\n"
        "#define k_2_tile(x0, y0, tile) k_0_tile_merged(x0, y0, tile, 32, 0.25f)\n");
}

TEST_CASE("constants that have to be literals are not parameters") {
  CHECK(merges("const float8 v = vload8(0, x0 + tile * 3);", "const float8 v = vload8(0, x0 + tile * 5);"));
  CHECK_FALSE(merges("float8 acc[3];", "float8 acc[4];"));
  CHECK_FALSE(merges("float8 acc[2 * 3];", "float8 acc[2 * 4];"));
  CHECK_FALSE(merges("y0[0] = x0[3];", "y0[0] = x0[4];"));
  CHECK_FALSE(merges("#pragma unroll 2\nfor (;;) {}", "#pragma unroll 4\nfor (;;) {}"));
  CHECK_FALSE(merges("SOME_MACRO(3);", "SOME_MACRO(4);"));
  CHECK_FALSE(merges("oclc_terms(acc, 4, 2, p[i * 3], p[i * 3 + 1], w, 16, 9);",
                     "oclc_terms(acc, 6, 2, p[i * 3], p[i * 3 + 1], w, 16, 9);"));
  CHECK(merges("oclc_terms(acc, 4, 2, p[i * 3], p[i * 3 + 1], w, 16, 9);",
               "oclc_terms(acc, 4, 2, p[i * 5], p[i * 5 + 1], w, 24, 7);"));
  CHECK_FALSE(merges("enum { n = 3 };", "enum { n = 4 };"));
  CHECK_FALSE(merges("const int n = 3;\nfloat acc[n];", "const int n = 4;\nfloat acc[n];"));
  CHECK_FALSE(merges("switch (tile) { case 1: break; }", "switch (tile) { case 2: break; }"));
  CHECK_FALSE(merges("const ulong n = 1ul;", "const ulong n = 2ul;"));
  CHECK_FALSE(merges("const long n = 3000000000;", "const long n = 3;"));
  CHECK_FALSE(merges("y0[0] = tile * 3;", "y0[0] = tile * 3.0f;"));
}

const std::vector<std::string> kNames = {"k_0_tile", "k_1_tile"};

TEST_CASE("definitions that the preprocessor chooses from are merged together") {
  const auto either = [](const std::string& name, const std::string& a, const std::string& b) {
    return "#if OCLC_NV_SM >= 80\nvoid " + name + "(__global float* y0) { y0[get_local_id(0)] = 3 * " + a +
           "; }\n#else\nvoid " + name + "(__global float* y0) { y0[0] = 2 + " + b + "; }\n#endif\n";
  };
  const auto list = merge_functions(kNames, {either(kNames[0], "4", "5"), either(kNames[1], "6", "7")});
  REQUIRE(list.size() == 1);
  CHECK(list[0].name == "k_0_tile_merged");
  CHECK(
      list[0].text ==
      "#if OCLC_NV_SM >= 80\nvoid k_0_tile_merged(__global float* y0, const int constant0, const int constant1) { "
      "y0[get_local_id(0)] = 3 * constant0; }\n#else\nvoid k_0_tile_merged(__global float* y0, const int constant0, const int "
      "constant1) { y0[0] = 2 + constant1; }\n#endif\n");
  REQUIRE(list[0].constants.size() == 2);
  CHECK(list[0].constants[1].type == "int");
  CHECK(list[0].constants[1].name == "constant1");
  CHECK(list[0].constants[1].values == std::vector<std::string>{"5", "7"});
  CHECK(merge_functions(kNames, {either(kNames[0], "4", "5"), either(kNames[1], "6", "7.0f")}).empty());
}

TEST_CASE("what is more than one definition keeps its text") {
  const auto two = [](const std::string& name, const std::string& number) {
    return "float of_" + name + "(float x) { return x * " + number + "; }\nvoid " + name + "(const int tile) {}\n";
  };
  CHECK(merge_functions(kNames, {two(kNames[0], "3.0f"), two(kNames[1], "4.0f")}).empty());
  const auto defined = [](const std::string& name, const std::string& number) {
    return "void " + name + "(const int tile) {\n#define N " + number + "\n}\n";
  };
  CHECK(merge_functions(kNames, {defined(kNames[0], "3"), defined(kNames[1], "3")}).empty());
}

}  // namespace
}  // namespace oclc
