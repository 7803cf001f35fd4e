// Heads, formulas and bodies that are almost right: each is read, and built where it can be, or refused with a CompileError.
#include <chrono>
#include <cstdlib>
#include <random>

#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

const char* const kSeeds[] = {
    R"OP(/*! oclc-op 1
name = "my.rule"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]?"]
out = ["delta: T[M, N]"]
types = { T = ["f32", "f16"] }
attr = { alpha = 1e-3, taps = [1, 2], mode = "a", n = 3 }
where = ["M >= 1 && N % 4 != 5"]
formula = "delta[i,j] = alpha * (has(post) ? post[i] : 1) * w[i,j] * pre[j]"
*/)OP",
    R"OP(/*! oclc-op 1
name = "my.layer"
in = ["x: T[..., K]", "w: T[N, K]", "at: i64[N]"]
out = ["y: T[..., N]", "s: T[2 * K + 1]"]
formula = '''
h[n] = sum(k: x[k] * w[n, k]) - max(k, n2: w[n2, k])
y[n] = h[n] > 0 ? -h[n] : w[at[n], 0] # a comment
s[at[n]] += pad(w, 0)[n + 1, n] + mean(k: w[n, k])
'''
*/)OP",
    R"OP(/*! oclc-op 1
name = "my.act"
in = ["xs: T[...]*"]
out = ["y: T[...]"]
formula = "y = softplus(fma(sum(n: xs[n]), 2.5, 1)) / len(xs) + f32(1 == 2)"
*/)OP",
    R"OP(/*! oclc-op 1
name = "my.scalar"
in = ["x: T[...]", "s: T[]"]
out = ["y: T[...]"]
attr = { slope = 0.1, taps = [0.5, 1.5], n = 2 }
scalar = "bent"
reference = "y = x > 0 ? x : slope * x + s"
gradient = { x = "d_y * (x > 0 ? 1 : slope)" }
flops = "3"
*/
// A constant, and two functions.
#define BEND 1.0f
float of(float x) { return x * BEND; }
float bent(float x, float s, float slope) { return x > 0.0f ? of(x) : fma(slope, x, s); }
)OP",
    R"OP(/*! oclc-op 1
name = "my.kernel"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]?"]
out = ["delta: T[M, N]"]
types = { T = ["f32", "f64"] }
attr = { alpha = 1e-6 }
kernel = "rule"
each = ["M", "N + 0"]
group = [1, 64]
local = { t = "float[64]" }
flops = "3 * M * N"
bytes = "default"
inplace = { delta = "w" }
ragged = true
reference = "delta[i, j] = alpha * w[i, j] * pre[j]"
*/
OP(rule) {
  const int i = ID(0), j = ID(1);
  LOCAL(t)[get_local_id(0)] = LOAD(pre, j);
  BARRIER();
  if (i < SIZE(M)) STORE(delta, i, j, alpha * LOAD(w, i, j) * LOCAL(t)[get_local_id(0)]);  /* not "*/" */
}
)OP"};

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

std::string mutated(std::mt19937& random) {
  std::string text = kSeeds[random() % std::size(kSeeds)];
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
  std::string text;
  try {
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
      text = mutated(random);
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
