// Templates compile alone; their expansion, the prelude's pieces and the choice of tiles.
#include <doctest/doctest.h>

#include <cctype>
#include <set>
#include <sstream>
#include <utility>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/text/template_fold.h"
#include "compiler/codegen/text/template_source.h"
#include "compiler/codegen/text/template_text.h"
#include "compiler/contraction/tiling.h"
#include "compiler/support/error.h"
#include "tests/ops/opencl_host.h"

using namespace oclc;

namespace {

constexpr const char* kNoMatrixUnit = R"(
void oclc_mma_first(float* d, const uint* a, uint b0, uint b1) {}
void oclc_mma(float* d, const uint* a, uint b0, uint b1) {}
#define oclc_swap_lanes(to, from, lanes) to = from
)";

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

// The blocks of a prelude, each called by one of the names that it provides, in order.
std::string blocks_of(const std::string& prelude) {
  constexpr std::string_view kGuard = "#define OCLC_HAVE_";
  std::string names;
  std::istringstream lines(prelude);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kGuard)) names += (names.empty() ? "" : " ") + line.substr(kGuard.size());
  }
  return names;
}

}  // namespace

TEST_CASE("every template compiles alone with its defaults") {
  const OpenClHost host;
  const HostTensor x(DType::f32, {16});
  REQUIRE(template_texts().size() >= 6);
  for (const TemplateText& row : template_texts()) {
    if (row.name.starts_with("pieces/")) continue;
    CAPTURE(row.name);
    std::string source = standalone_template(row.name);
    // Inline PTX is for no compiler at hand: its names are declared alone.
    if (row.name.ends_with("mma_gpu") || row.name == "contraction_small_gpu") source = std::string(kNoMatrixUnit) + source;
    if ((row.name.starts_with("contraction") || row.name.starts_with("attention")) && row.name.ends_with("_amx"))
      source = prelude_for(source + " oclc_tiles_multiply_6 oclc_split_6 oclc_parts_6 oclc_digits_multiply") + source;
    if (row.name == "lanes") source = prelude_for("oclc_max oclc_min oclc_store") + source;
    if (row.name == "contraction_unit_gpu")
      source = "#define OCLC_UNITS_EMULATED\n" +
               prelude_for("oclc_xmx_a oclc_xmx_bf16 oclc_exchange_floats oclc_from_bf16 oclc_to_bf16") + source;
    if (row.name.starts_with("matrix_"))
      source = "#define OCLC_UNITS_EMULATED\n" + prelude_for("oclc_from_bf16 oclc_from_f16") + source;
    if (row.name == "half") source = prelude_for("oclc_store") + source;
    if (row.name == "tiles_amx") source = prelude_for("oclc_store oclc_to_bf16") + source;
    if (row.name == "digits_amx") source = prelude_for("oclc_tiles_share") + source;
    if (row.name.ends_with("_cpu") || row.name == "contraction_row_gpu") source = prelude_for(source) + source;
    source +=
        "\n__kernel void run(__global const float* x, __global float* y) { y[get_global_id(0)] = x[get_global_id(0)]; }\n";
    CHECK_NOTHROW(host.run(source, {x}, HostTensor(DType::f32, {16}), 16));
  }
}

// Local memory is what other kernels left there: denormal numbers would make products slow that nobody uses.
TEST_CASE("Winograd's surplus rows do not read what lies in local memory") {
  const OpenClHost host;
  // 25 tiles: the second group has one of the eight rows of its register tile.
  std::string source =
      "#define K 16\n#define N 16\n#define NV 1\n#define OH 10\n#define OW 10\n#define Y_LAST 10\n#define X_LAST 10\n"
      "#define A_Y (12 * K)\n" +
      standalone_template("contraction_winograd_cpu") +
      "__kernel void run(__global const float* a, __global const float* b, __global const float* zero, __global float* c) {\n"
      "  __local float space[LOCAL_FLOATS];\n"
      "  for (int i = 0; i < LOCAL_FLOATS; ++i) space[i] = NAN;\n"
      "  contraction_winograd_tile(a, b, zero, zero, c, 1, space);\n"
      "  for (int i = 0; i < POINTS * MR * PW; ++i)\n"
      "    c[i] = isnan(space[POINTS * TBR * V_PITCH + i / (MR * PW) * (TBR * PW) + i % (MR * PW)]);\n}\n";
  source = prelude_for(source) + source;
  const HostTensor image(DType::f32, {12 * 12 * 16}), weights(DType::f32, {16 * 16 * 16}), zero(DType::f32, {16}),
      found = host.run(source, {image, weights, zero}, HostTensor(DType::f32, {16 * 8 * 16}), 1);
  for (std::int64_t i = 0; i < found.elements(); ++i) REQUIRE(found.at(i) == 0);
}

TEST_CASE("macros of a template are numbers, made of its parameters") {
  TemplateValues values;
  values.parameters = {{"M", "35"}, {"N", "64"}, {"K", "20"}, {"MR", "5"}, {"NV", "2"}, {"VW", "8"}};
  CHECK(expand_macro("contraction_cpu", "PW", values) == "16");
  CHECK(expand_macro("contraction_cpu", "ROW_TILES", values) == "7");
  CHECK_THROWS_AS(expand_tile_body("no_such_template", values), InternalError);
}

TEST_CASE(
    "every template's defaults are legal values that its body has in their places, and every piece is included somewhere") {
  std::set<std::string> included;
  for (const TemplateText& row : template_texts()) {
    for (std::size_t at = row.text.find("//@include "); at != std::string_view::npos;
         at = row.text.find("//@include ", at + 1)) {
      const std::size_t begin = at + 11;
      included.insert("pieces/" + std::string(row.text.substr(begin, row.text.find_first_of(" \n", begin) - begin)));
    }
    if (row.name.starts_with("pieces/")) continue;
    CAPTURE(row.name);
    const TemplateSource source = read_template(row.name);
    if (row.text.find("//@kernel ") != row.text.npos) {
      const std::string body = expand_tile_body(row.name, {});
      CHECK(body.find("//@") == std::string::npos);
      CHECK(body.find('$') == std::string::npos);
      const std::set<std::string> words = words_of(body);
      for (const TemplateParameter& p : source.parameters) CHECK_MESSAGE(words.count(p.name) == 0, p.name);
    }
    for (const TemplateParameter& p : source.parameters) {
      TemplateValues values;
      values.parameters[p.name] = p.arguments.empty() ? p.value : "convert_float";
      CHECK_NOTHROW(expand_tile_body(row.name, values));
    }
  }
  for (const TemplateText& row : template_texts()) {
    CAPTURE(row.name);
    if (row.name.starts_with("pieces/")) CHECK(included.count(std::string(row.name)) == 1);
  }
}

namespace {

constexpr std::string_view kSmall = R"(// Two sums.
//@param SIZE 4 {1..8, name} STEP 2 {1..SIZE step 2}  elements, and from one to the next
//@param TYPE float {float, int} FROM(v) v {expr}  what they are
#define LAST (SIZE - 1)
void small_tile(__global TYPE* y) {
  //@hole FIRST
  y[0] = 0;
  //@end
  //@lines MORE
#if STEP > 1
  y[LAST] = FROM(y[STEP]);
#endif
}
)";

std::string small(TemplateValues values) { return expand_tile_text({"small", kSmall}, values); }

std::string refusal(const TemplateText& row, TemplateValues values) {
  try {
    expand_tile_text(row, values);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(TemplateValues values) { return refusal({"small", kSmall}, std::move(values)); }

bool ends_with(const std::string& text, std::string_view end) { return text.ends_with(end); }

}  // namespace

TEST_CASE("a parameter keeps its default, or is one of the values that its template declares") {
  CHECK(small({}) == "  y[0] = 0;\n  y[3] = y[2];\n");
  CHECK(small({{{"SIZE", "8"}, {"STEP", "3"}, {"FROM", "half_of"}}, {{"FIRST", "y[1] = 2;\n"}}}) ==
        "  y[1] = 2;\n  y[7] = half_of(y[3]);\n");
  // A bound that is known when the kernel runs is none.
  CHECK(small({{{"SIZE", "count"}, {"STEP", "11"}}, {}}) == "  y[0] = 0;\n  y[(count - 1)] = y[11];\n");
  CHECK(ends_with(refusal({{{"SIZE", "9"}}, {}}), "template small: wanted SIZE in {1..8, name}, found 9"));
  CHECK(ends_with(refusal({{{"SIZE", "0"}}, {}}), "wanted SIZE in {1..8, name}, found 0"));
  CHECK(ends_with(refusal({{{"SIZE", "2 * n"}}, {}}), "wanted SIZE in {1..8, name}, found 2 * n"));
  CHECK(ends_with(refusal({{{"STEP", "5"}}, {}}), "wanted STEP in {1..SIZE step 2}, found 5"));
  CHECK(ends_with(refusal({{{"SIZE", "8"}, {"STEP", "4"}}, {}}), "wanted STEP in {1..SIZE step 2}, found 4"));
  CHECK(ends_with(refusal({{{"TYPE", "half"}}, {}}), "template small: wanted TYPE in {float, int}, found half"));
}

TEST_CASE("lines stand where a template wants some, and names that are pasted together are expanded") {
  CHECK(small({{}, {{"MORE", "y[1] = 1;\n"}}}) == "  y[0] = 0;\n  y[1] = 1;\n  y[3] = y[2];\n");
  const std::string_view text =
      "//@param N 4 {1, 4}\n#define JOIN_(x, y) x##y\n#define JOIN(x, y) JOIN_(x, y)\n#define FLOATS_1 float\n"
      "#define FLOATS_4 float4\nvoid t_tile() {\n  JOIN(FLOATS_, N) a = f(JOIN(b, N));\n}\n";
  CHECK(expand_tile_text({"t", text}, {}) == "  float4 a = f(b4);\n");
  CHECK(expand_tile_text({"t", text}, {{{"N", "1"}}, {}}) == "  float a = f(b1);\n");
}

TEST_CASE("a piece has the texts that it is included with, each for all places of its letter") {
  const std::string_view text =
      "void t_tile() {\n  //@include zeros T=float4 X=\"sum\" R=2 C=\"n + 1\"\n  //@include zeros T=int X=counts R=3 C=4\n}\n";
  CHECK(expand_tile_text({"t", text}, {}) ==
        "  float4 sum[2][n + 1];\n  #pragma unroll\n  for (int i = 0; i < 2; ++i)\n    #pragma unroll\n"
        "    for (int j = 0; j < n + 1; ++j) sum[i][j] = 0.0f;\n"
        "  int counts[3][4];\n  #pragma unroll\n  for (int i = 0; i < 3; ++i)\n    #pragma unroll\n"
        "    for (int j = 0; j < 4; ++j) counts[i][j] = 0.0f;\n");
}

TEST_CASE("unknown parameters, holes and pieces, and declarations that say too little, are internal errors") {
  CHECK(ends_with(refusal({{{"SIZES", "4"}}, {}}), "template small has no parameter SIZES"));
  CHECK(ends_with(refusal({{}, {{"LAST", ""}}}), "template small has no hole LAST"));
  const auto text = [](std::string_view line) { return refusal({"t", line}, {}); };
  CHECK(ends_with(text("//@include no_such_piece\n"), "no template pieces/no_such_piece, included by t"));
  CHECK(ends_with(text("//@include zeros X=acc\n"),
                  "template pieces/zeros is included with other texts than its line //@with declares"));
  CHECK(ends_with(text("//@include store_four X=acc\n"),
                  "template pieces/store_four is included with other texts than its line //@with declares"));
  CHECK(ends_with(text("//@include zeros T=\"float\n"),
                  "wanted X=TEXT or X=\"TEXT\" for each $X of a piece: //@include zeros T=\"float"));
  CHECK(ends_with(text("//@include zeros float\n"),
                  "wanted X=TEXT or X=\"TEXT\" for each $X of a piece: //@include zeros float"));
  CHECK(ends_with(text("//@with X\nf($X, $Y);\n"), "template t is included with other texts than its line //@with declares"));
  CHECK(ends_with(text("//@param SIZE 4\n"), "a parameter of a template without legal values: //@param SIZE 4"));
  CHECK(ends_with(text("//@param SIZE {1}\n"), "without name, default or legal values: //@param SIZE {1}"));
  CHECK(ends_with(text("#elif 1\n"), "template t has a line that none takes: #elif 1"));
  CHECK(ends_with(text("//@param SIZE 4 {1..}\n"), "template t has no tile function"));
  CHECK(ends_with(
      refusal({"t", "//@param SIZE 4 {1..}\n#define SIZE 2\nvoid t_tile() {\n  f(SIZE);\n}\n"}, {{{"SIZE", "3"}}, {}}),
      "template t defines its parameter SIZE"));
}

TEST_CASE("values of a family are told apart, and one that no template of it takes is an internal error") {
  TemplateValues values;
  values.parameters = {{"TM", "8"}, {"WM", "32"}, {"BM", "64"}};
  values.holes = {{"EPILOGUE", "f(v);\n"}};
  const std::vector<std::string_view> family = {"contraction_gpu", "contraction_mma_gpu"};
  CHECK(values_of("contraction_gpu", values, family).parameters ==
        std::map<std::string, std::string>{{"BM", "64"}, {"TM", "8"}});
  CHECK(values_of("contraction_mma_gpu", values, family).parameters ==
        std::map<std::string, std::string>{{"BM", "64"}, {"WM", "32"}});
  values.parameters["TMM"] = "8";
  CHECK_THROWS_WITH_AS(values_of("contraction_gpu", values, family),
                       doctest::Contains("none of contraction_gpu, contraction_mma_gpu has a parameter TMM"), InternalError);
  values.parameters.erase("TMM");
  values.holes["EPILOG"] = "";
  CHECK_THROWS_WITH_AS(values_of("contraction_gpu", values, family), doctest::Contains("has a hole EPILOG"), InternalError);
}

TEST_CASE("operations on known numbers are folded, and nothing that has effects or is not of int") {
  const auto folded = [](const std::string& expression) {
    const std::string text = fold_known("  y = " + expression + ";\n");
    REQUIRE(text.starts_with("  y = "));
    return text.substr(6, text.size() - 8);
  };
  CHECK(folded("tile / (1 * 4) % 1 * 8") == "0");
  CHECK(folded("min(960, 0 + 256) - 7 / 2") == "253");
  CHECK(folded("x * 1 + 0 + 32 - 1") == "x + 31");
  CHECK(folded("x + 4 - 4") == "x");
  CHECK(folded("a[i * 1 + 0].s0 + f(g + 0, 3 - 1)") == "a[i].s0 + f(g, 2)");
  CHECK(folded("5 == 0 || first") == "0 || first");
  CHECK(folded("5 == 0 || a < b") == "a < b");
  CHECK(folded("(1 && a < b) && 0 == 0") == "(a < b)");
  CHECK(folded("0 ? a + b : c ? d : e") == "c ? d : e");
  CHECK(folded("(long)(row) * ((784 + 16 - 1) / 16)") == "(long)row * 49");
  CHECK(folded("(float4)(0) + -(2 - 3)") == "(float4)0 + -(-1)");
  // Effects, types and overflows.
  CHECK(folded("0 * f(x)") == "0 * f(x)");
  CHECK(folded("f(x) && 0") == "f(x) && 0");
  CHECK(folded("x * 1.0f + 0.0f + 2u * 3u") == "x * 1.0f + 0.0f + 2u * 3u");
  CHECK(folded("65536 * 65536 + 1 / 0") == "65536 * 65536 + 1 / 0");
  CHECK(folded("*p * 1 - *q") == "*p - *q");
}

TEST_CASE("branches on known conditions are what is taken, with no trace of the rest") {
  CHECK(fold_known("  if (2 > 1) {\n    a = 1;\n  } else {\n    a = 2;\n  }\n") == "  a = 1;\n");
  CHECK(fold_known("  if (2 < 1)\n    a = 1;\n  else if (b)\n    a = 2;\n") == "  if (b)\n    a = 2;\n");
  CHECK(fold_known("  x = 1;\n  // Why it stops.\n  if (49 % 7 != 0 && n >= 49) break;\n  y = 2;\n") == "  x = 1;\n  y = 2;\n");
  CHECK(fold_known("  #pragma unroll\n  for (int i = 0; i < n; ++i)\n    if (0) y[i] = 1;\n  z = 1;\n") == "  z = 1;\n");
  CHECK(fold_known("  if (f(x))\n    if (0) y = 1;\n") == "  if (f(x)) ;\n");
  CHECK(fold_known("  for (; f(x);)  // Why.\n    if (1) {\n      a = 1;\n    }\n") ==
        "  for (; f(x);)  // Why.\n  {\n    a = 1;\n  }\n");
  // A name that stands elsewhere keeps its scope.
  CHECK(fold_known("  if (1) {\n    const int a = 1;\n    f(a);\n  }\n") == "  const int a = 1;\n  f(a);\n");
  const std::string twice = "  {\n    const int a = 1;\n    f(a);\n  }\n  g(a);\n";
  CHECK(fold_known("  if (1) {\n    const int a = 1;\n    f(a);\n  }\n  g(a);\n") == twice);
}

TEST_CASE("loops of one trip are their body, loops of none are gone, and others stay") {
  CHECK(fold_known("  #pragma unroll\n  for (int i = 0; i < 1; ++i)\n    for (int j = 0; j < 4; ++j) a[i][j] = v.i;\n") ==
        "  for (int j = 0; j < 4; ++j) a[0][j] = v.i;\n");
  CHECK(fold_known("  for (int k = 0; k < 64; k += 64) {\n    const int end = min(64, k + 64);\n    f(k, end);\n  }\n") ==
        "  const int end = 64;\n  f(0, end);\n");
  CHECK(fold_known("  for (int k = 8; k <= 7; ++k) f(k);\n  g();\n") == "  g();\n");
  for (const char* kept :
       {"  for (int k = 0; k < 65; k += 64) f(k);\n", "  for (int k = 0; k < n; ++k) f(k);\n",
        "  for (int k = 0; k < 1; ++k) {\n    if (x) break;\n    f(k);\n  }\n",
        "  for (int k = 0; k < 1; ++k) {\n    if (x) continue;\n    f(k);\n  }\n",
        "  for (int k = 0; k < 1; ++k) {\n    f(k);\n    k = g();\n  }\n",
        "  for (int k = 0; k < 1; ++k) {\n    const int k = g();\n    f(k);\n  }\n", "  for (; k < 1; ++k) f(k);\n"})
    CHECK(fold_known(kept) == kept);
  // A loop inside that is left is left alone.
  CHECK(fold_known("  for (int i = 0; i < 1; ++i)\n    for (int j = i; j < n; ++j) {\n      if (x) break;\n    }\n") ==
        "  for (int j = 0; j < n; ++j) {\n    if (x) break;\n  }\n");
}

TEST_CASE("a text that cannot be read as statements stays as it is") {
  for (const char* text :
       {"  if (1) {\n    a = 1 * 2;\n", "  a = (1 * 2;\n", "#if A\n  a = 1 * 2;\n#endif\n", "  do f(); while (1 * 2);\n"})
    CHECK(fold_known(text) == text);
}

TEST_CASE("the prelude holds what a source calls, and what that calls, and no more") {
  CHECK(prelude_for("y[0] = x[0] + 1;") == "");
  const std::string lanes = prelude_for("s = oclc_lanes_max(v);");
  CHECK(blocks_of(lanes) == "OCLC_DOUBLE oclc_max oclc_lanes_larger");
  CHECK(prelude_for("my_oclc_erf(x)") == "");
}

TEST_CASE("tiles fit the registers and cover the product") {
  for (const char* name : {"cpu", "cpu-256", "cpu-128"}) {
    const Target& target = find_target(name);
    for (const std::int64_t rows : {1, 3, 49, 196, 12544}) {
      for (const std::int64_t columns : {1, 17, 64, 1000}) {
        const ContractionShape shape{1, rows, columns, 256, 1024};
        const ContractionTiles t = choose_tiles(shape, target);
        CHECK(t.rows * t.vectors + t.vectors + 1 <= target.vector_registers);
        CHECK(t.rows >= 1);
        CHECK(t.rows <= 12);
        CHECK(t.row_tiles >= 1);
        CHECK(t.panels >= 1);
        // No work-item is without work.
        CHECK((t.row_tiles - 1) * t.rows < rows);
        CHECK((t.panels - 1) * t.vectors * target.vector_width < columns);
        if (rows == 1) CHECK(t.rows == 1);
      }
    }
  }
}
