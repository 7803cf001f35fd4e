// Operator files that are wrong, and what is said about each.
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

struct BadFile {
  std::string what;
  std::string text;
  std::string error;
};

std::vector<BadFile> bad_files() {
  return {
      {"no head", "float f(float x) { return x; }\n", "op.cl:1:1: wanted a comment that begins '/*! oclc-op 1', found none"},
      {"another version", "/*! oclc-op 2\n*/\n", "op.cl:1:13: wanted version 1 of the format, found '2'"},
      {"a head without an end", "/*! oclc-op 1\nname = \"my.op\"\n", "op.cl:1:1: wanted '*/' that ends the head, found none"},
      {"code outside of heads",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i]'\n*/\nfloat g(float "
       "x) { return x; }\n",
       "op.cl:7:1: wanted comments alone outside of heads: a formula needs no OpenCL C, found code"},
      {"no TOML", "/*! oclc-op 1\nname = my.op\n*/\n",
       "op.cl:2:8: wanted a head in TOML, found Error while parsing value: could not determine value type"},
      {"a letter that only looks like one", "/*! oclc-op 1\n# \u00e4\nname = \"my.\u00e4\"\ngroup = [1, 6\u0324\n*/\n",
       "op.cl:4:14: wanted a head in TOML, found a character that is not ASCII, outside of texts and comments"},
      {"an unknown key",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformul = \"y[i] = x[i]\"\n*/\n",
       "op.cl:5:1: wanted a key of oclc-op 1 (name, in, out, types, attr, where, formula, scalar, kernel, each, group, local, "
       "flops, bytes, gradient, gradient_op, reference, inplace, ragged), found 'formul'; did you mean 'formula'?"},
      {"no name", "/*! oclc-op 1\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\n\n*/\n",
       "op.cl:1:14: wanted a key 'name' in the head, found none"},
      {"a name without a domain", "/*! oclc-op 1\nname = \"op\"\n*/\n",
       "op.cl:2:9: wanted a name of letters, digits, '_' and '-' with a domain before its last dot: domain.Name, found 'op'"},
      {"ONNX's own domain", "/*! oclc-op 1\nname = \"ai.onnx.Relu\"\n*/\n",
       "op.cl:2:9: wanted a domain of your own, found 'ai.onnx'"},
      {"a name of other characters", "/*! oclc-op 1\nname = \"my.a b\"\n*/\n",
       "op.cl:2:9: wanted a name of letters, digits, '_' and '-' with a domain before its last dot: domain.Name, found 'my.a "
       "b'"},
      {"no operands", "/*! oclc-op 1\nname = \"my.op\"\nout = [\"y: T[]\"]\nformula = \"y = 1\"\n*/\n",
       "op.cl:1:14: wanted a key 'in' in the head of my.op, found none"},
      {"no outputs", "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nformula = \"y = x\"\n*/\n",
       "op.cl:1:14: wanted a key 'out' in the head of my.op, found none"},
      {"no formula", "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\n\n*/\n",
       "op.cl:1:14: wanted a key 'formula', 'scalar' or 'kernel' in the head of my.op, found none"},
      {"an operand without dimensions",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T\"]\nout = [\"y: T[]\"]\nformula = \"y = x\"\n*/\n",
       "op.cl:3:12: wanted '[', found the end"},
      {"an operand without a type",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x\"]\nout = [\"y: T[]\"]\nformula = \"y = x\"\n*/\n",
       "op.cl:3:9: wanted ':', found the end"},
      {"dots in the middle",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N, ...]\"]\nout = [\"y: T[]\"]\nformula = \"y = x\"\n*/\n",
       "op.cl:3:16: wanted \"...\" before all other dimensions, or a dimension, found '...'"},
      {"an optional output",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]?\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:4:9: wanted output 'y' without '?' and '*', found 'y: T[N]?'"},
      {"an operand behind those of variable number",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]*\", \"z: T[N]\"]\nout = [\"y: T[N]\"]\nformula = \"y[i] = "
       "z[i]\"\n*/\n",
       "op.cl:3:20: wanted the operand of variable number as the last, found 'z' behind it"},
      {"one name twice",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\", \"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:3:19: wanted a name for each operand, output and attribute, found 'x' twice"},
      {"a type that nothing declares",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: float[N]\"]\nout = [\"y: T[N]\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:3:8: wanted an element type, or a name of those in 'types', for 'x', found 'float'"},
      {"an element type that there is not",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\ntypes = { T = [\"f32\", \"f8\"] }\nformula = "
       "\"y[i] = x[i]\"\n*/\n",
       "op.cl:5:24: wanted an element type (f32, f64, f16, bf16, bool, i8 .. i64, u8 .. u64), found 'f8'"},
      {"types that are no table",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\ntypes = \"f32\"\nformula = \"y[i] = "
       "x[i]\"\n*/\n",
       "op.cl:5:9: wanted 'types' as a table: { T = [\"f32\", \"f16\"] }, found a text"},
      {"an attribute of another kind",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nattr = { a = { b = 1 } }\nformula = \"y[i] = "
       "x[i]\"\n*/\n",
       "op.cl:5:10: wanted attribute 'a' as a number, a text or a list of numbers, found a table"},
      {"a required attribute of no kind",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nattr = { a = \"real!\" }\nformula = \"y[i] = "
       "x[i]\"\n*/\n",
       "op.cl:5:14: wanted float!, int!, text!, floats! or ints!, found 'real!'"},
      {"a dimension that nothing binds",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[P]\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:4:14: wanted names that 'in' or 'attr' has in a dimension of 'y', found 'P'; did you mean 'N'?"},
      {"a condition on an operand",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nwhere = [\"x > 1\"]\nformula = \"y[i] = "
       "x[i]\"\n*/\n",
       "op.cl:5:11: wanted names that 'in' or 'attr' has in 'where', found 'x'; did you mean 'N'?"},
      {"a broken dimension",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N\"]\nout = [\"y: T[N]\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:3:14: wanted ',', found the end"},
      {"an unknown name",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i] + alpha'\n*/\n",
       "op.cl:5:26: wanted an operand, an attribute, a dimension, a result of a line above, or an index that is on the left or "
       "summed over, found 'alpha'"},
      {"a name that is nearly one",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nattr = { alpha = 1.0 }\nformula = \"y[i] = "
       "x[i] * alhpa\"\n*/\n",
       "op.cl:6:26: wanted an operand, an attribute, a dimension, a result of a line above, or an index that is on the left or "
       "summed over, found 'alhpa'; did you mean 'alpha'?"},
      {"an index that is neither on the left nor summed",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[j]'\n*/\n",
       "op.cl:5:21: wanted an operand, an attribute, a dimension, a result of a line above, or an index that is on the left or "
       "summed over, found 'j'; did you mean 'i'?"},
      {"an unknown function",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = tahn(x[i])'\n*/\n",
       "op.cl:5:19: wanted a function, found 'tahn'; did you mean 'tan'?"},
      {"a function of too few arguments",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = pow(x[i])'\n*/\n",
       "op.cl:5:19: wanted 2 arguments of pow(), found 1"},
      {"too few positions",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N, N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i]'\n*/\n",
       "op.cl:5:19: wanted 2 indices of 'x', found 1"},
      {"an operand without its positions",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = 2 * x'\n*/\n",
       "op.cl:5:23: wanted an index of 'x', which has one dimension, found none"},
      {"an index twice on the left",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N, N]\"]\nformula = 'y[i, i] = x[i]'\n*/\n",
       "op.cl:5:17: wanted each index once, found 'i' twice"},
      {"an index called like an operand",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[x] = x[x]'\n*/\n",
       "op.cl:5:14: wanted an index that nothing else is called, found 'x'"},
      {"a sum over an index of the left",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = sum(i: x[i])'\n*/\n",
       "op.cl:5:19: wanted each index once, found 'i' twice"},
      {"an output that no line gives",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\", \"z: T[N]\"]\nformula = \"y[i] = x[i]\"\n*/\n",
       "op.cl:4:20: wanted a line of the formula that gives 'z', found none"},
      {"an output twice",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i]; y[i] = 2'\n*/\n",
       "op.cl:5:25: wanted one line for each result, found 'y' twice"},
      {"a line that gives an operand",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'x[i] = 2'\n*/\n",
       "op.cl:5:12: wanted an output or a new name on the left, found 'x', which is given"},
      {"a computed position without +=",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i + 1] = x[i]'\n*/\n",
       "op.cl:5:16: wanted an index on the left, found 'i + 1'; positions that are computed need '+='"},
      {"a bracket that is open",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = (x[i] + 1'\n*/\n",
       "op.cl:5:28: wanted ')', found the end"},
      {"an operator without its right side",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i] * '\n*/\n",
       "op.cl:5:26: wanted a number, a name or '(', found the end"},
      {"a sign of no formula",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i] @ 2'\n*/\n",
       "op.cl:5:24: wanted a formula, found '@'"},
      {"a number of no form",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = 1.5.2 * x[i]'\n*/\n",
       "op.cl:5:22: wanted the line's end or an operator, found '.2'"},
      {"has() of an operand that is always there",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = has(x) ? x[i] : 0'\n*/\n",
       "op.cl:5:19: wanted an optional operand in has(), found 'has(x)'"},
      {"a sum without indices",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = sum(x[i])'\n*/\n",
       "op.cl:5:19: wanted a function, found 'sum'; did you mean 'sum'?"},
      {"brackets behind a number",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nattr = { a = 1.0 }\nformula = \"y[i] = "
       "a[i]\"\n*/\n",
       "op.cl:6:19: wanted a list or an operand before '[', found the attribute 'a'"},
      {"a formula too deep",
       "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = " + std::string(300, '-') +
           "x[i]'\n*/\n",
       "op.cl:5:218: wanted at most 200 operators inside one another, found more; give a part of the formula a line of its "
       "own"},
      {"text as a number", "/*! oclc-op 1\nname = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 3\n*/\n",
       "op.cl:5:11: wanted 'formula' as text in quotes, found an integer"},
  };
}

}  // namespace

TEST_CASE("Operator files that are wrong are refused with file, line and column") {
  const std::vector<BadFile> files = bad_files();
  CHECK(files.size() >= 40);
  for (const BadFile& file : files) {
    INFO(file.what);
    CHECK(error_of([&] { parse_ops(file.text, "op.cl"); }) == file.error);
  }
}

}  // namespace oclc::test
