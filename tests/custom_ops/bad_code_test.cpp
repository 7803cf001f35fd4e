// Files of operators in OpenCL C that are wrong, and what is said about each.
#include "tests/custom_ops/custom_ops.h"

namespace oclc::test {
namespace {

// A function of elements f, with `keys` in its head.
std::string function(const std::string& code, const std::string& keys = "") {
  return head("name = \"my.op\"\nin = [\"x: T[...]\"]\nout = [\"y: T[...]\"]\nattr = { slope = 0.5 }\nscalar = \"f\"\n" +
              keys) +
         code;
}

// A body k over [M, N], with `keys` in its head.
std::string kernel(const std::string& body, const std::string& keys = "") {
  return head(
             "name = \"my.op\"\nin = [\"w: T[M, N]\", \"b: T[N]?\"]\nout = [\"y: T[M, N]\"]\nkernel = \"k\"\neach = [\"M\", "
             "\"N\"]\n" +
             keys) +
         "OP(k) {" + body + "}\n";
}

struct BadCode {
  std::string what, text, error;
};

std::vector<BadCode> bad_code() {
  const std::string good = "STORE(y, ID(0), ID(1), LOAD(w, ID(0), ID(1)));";
  return {
      {"two forms", function("float f(float x) { return x; }\n", "formula = 'y = x'"),
       "op.cl:1:14: wanted a key 'formula', 'scalar' or 'kernel' in the head of my.op, found several"},
      {"a function that is not there", function("float g(float x) { return x; }\n"),
       "op.cl:1:14: wanted a function 'f' in the file, as 'scalar' of my.op says, found none"},
      {"a function's name that is none",
       head("name = \"my.op\"\nin = [\"x: T[...]\"]\nout = [\"y: T[...]\"]\nscalar = \"f(x)\""),
       "op.cl:5:11: wanted 'scalar' as a name in the file's OpenCL C, found 'f(x)'"},
      {"a parameter that is no operand", function("float f(float z) { return z; }\n"),
       "op.cl:9:7: wanted parameters that are called like operands or attributes of my.op, found 'z'"},
      {"an operand without a parameter", function("float f(float slope) { return slope; }\n"),
       "op.cl:9:7: wanted a parameter for each operand of my.op, found none for 'x'"},
      {"a parameter of another type", function("float f(int x) { return x; }\n"), "op.cl:9:7: wanted 'float x', found 'int x'"},
      {"a result of another type", function("int f(float x) { return x; }\n"), "op.cl:9:5: wanted 'float f(..)', found 'int'"},
      {"element types of two widths", function("float f(float x) { return x; }\n", "types = { T = [\"f32\", \"f64\"] }"),
       "op.cl:3:8: wanted types of 'x' that are one type in OpenCL C (f32, f16 and bf16 are float), found f32 and f64"},
      {"named dimensions of a function",
       head("name = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nscalar = \"f\"") + "float f(float x) { return x; }\n",
       "op.cl:3:8: wanted 'x: T[...]', an element of which the function takes, found another form"},
      {"a variable", function("float f(float x) { return x; }\nfloat last;\n"),
       "op.cl:10:1: wanted functions, constants (__constant) and OP(name), found a variable"},
      {"a declaration alone", function("float f(float x);\n"),
       "op.cl:9:1: wanted a function with its body, found a declaration alone"},
      {"another directive", function("#include \"my.h\"\nfloat f(float x) { return x; }\n"),
       "op.cl:9:1: wanted no other directive than #define NAME, found '#include \"my.h\"'"},
      {"a kernel", function("__kernel void f(float x) { }\n"),
       "op.cl:9:1: wanted functions and OP(name), whose kernels are made by the compiler, found '__kernel'"},
      {"brackets that are open", function("float f(float x) { return (x; }\n"),
       "op.cl:9:18: wanted what closes '{', found the end of the file"},
      {"a function twice", function("float f(float x) { return x; }\nfloat f(float x) { return 2 * x; }\n"),
       "op.cl:10:7: wanted one function of a name, found 'f' twice"},
      {"a comment that is open", function("float f(float x) { return x; }\n/* more"),
       "op.cl:10:1: wanted '*/' that ends the comment, found none"},
      {"a body that is not there",
       head("name = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nkernel = \"k\"\neach = [\"N\"]"),
       "op.cl:1:14: wanted OP(k) { .. } in the file, as 'kernel' of my.op says, found none"},
      {"no index space", head("name = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nkernel = \"k\"") + "OP(k) {}\n",
       "op.cl:1:14: wanted a key 'each' in the head of my.op, found none"},
      {"a dimension of no operand in 'each'",
       head("name = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nkernel = \"k\"\neach = [\"P\"]") + "OP(k) {}\n",
       "op.cl:6:10: wanted names that 'in' or 'attr' has in 'each', found 'P'; did you mean 'N'?"},
      {"dimensions without names in a kernel",
       head("name = \"my.op\"\nin = [\"x: T[...]\"]\nout = [\"y: T[...]\"]\nkernel = \"k\"\neach = [\"1\"]") + "OP(k) {}\n",
       "op.cl:3:8: wanted named dimensions of 'x' in a kernel, found '...'"},
      {"get_global_id", kernel("int i = get_global_id(0);" + good),
       "op.cl:9:16: wanted ID(k), the point of the index space, found 'get_global_id'; points are spread over work-items by "
       "the "
       "compiler"},
      {"a dimension of the space that there is not", kernel("STORE(y, ID(0), ID(2), 0.0f);"),
       "op.cl:9:27: wanted ID(k) with k below 2, the dimensions of 'each', found '2'"},
      {"a load of what is no input", kernel("STORE(y, ID(0), ID(1), LOAD(v, ID(0)));"),
       "op.cl:9:36: wanted an input, found 'v'; did you mean 'w'?"},
      {"a store to an input", kernel("STORE(w, ID(0), ID(1), 0.0f);"),
       "op.cl:9:14: wanted an output, found 'w'; did you mean 'y'?"},
      {"too few positions", kernel("STORE(y, ID(0), ID(1), LOAD(w, ID(0)));"),
       "op.cl:9:31: wanted LOAD(w, 2 positions), found 1 behind the name"},
      {"a store without its value", kernel("STORE(y, ID(0), ID(1));"),
       "op.cl:9:8: wanted STORE(y, 2 positions, value), found 2 behind the name"},
      {"a barrier without a group", kernel("BARRIER(); " + good),
       "op.cl:9:8: wanted a key 'group' in the head: how many work-items a barrier joins, found none"},
      {"COUNT of one operand", kernel("int n = COUNT(w); " + good),
       "op.cl:9:22: wanted an operand of variable number, found 'w'"},
      {"local memory without a group", kernel(good, "local = { t = \"float[8]\" }"),
       "op.cl:7:9: wanted a key 'group' beside 'local', found none"},
      {"local memory of another type", kernel(good, "group = [8]\nlocal = { t = \"half[8]\" }"),
       "op.cl:8:16: wanted an array of float, double, int or uint in local memory: \"float[64]\", found 'half[8]'"},
      {"a group that is too large", kernel(good, "group = [64, 64]"),
       "op.cl:7:9: wanted 'group' as a list of integers whose product is 1 to 1024: [1, 64], found others"},
      {"a group of more dimensions", kernel(good, "group = [2, 2, 2]"),
       "op.cl:1:14: wanted a 'group' of at most as many dimensions as 'each', found 3 and 2"},
      {"a reference that does not give the output", kernel(good, "reference = \"z[i] = b[i]\""),
       "op.cl:4:9: wanted a line of the formula that gives 'y', found none"},
      {"a gradient of what is no input", kernel(good, "gradient = { v = \"d_y[i, j]\" }"),
       "op.cl:7:19: wanted gradients of inputs that are not of variable number, found 'v'"},
      {"a gradient without an index of the input's dimension", kernel(good, "gradient = { w = \"sum(i: d_y[i, j])\" }"),
       "op.cl:7:19: wanted an index over M of 'w' in its gradient, where it stands alone: an operand of that dimension has it, "
       "found "
       "none"},
      {"a gradient's operator that is not there", kernel(good, "gradient_op = \"my.other\""),
       "op.cl:7:15: wanted another operator of this file, without a gradient_op of its own, found 'my.other'"},
      {"keys of a kernel beside a function", function("float f(float x) { return x; }\n", "each = [\"1\"]"),
       "op.cl:7:8: wanted 'each' beside 'kernel', found another form of operator"},
      {"keys of code beside a formula",
       head("name = \"my.op\"\nin = [\"x: T[N]\"]\nout = [\"y: T[N]\"]\nformula = 'y[i] = x[i]'\nreference = 'y[i] = x[i]'"),
       "op.cl:6:13: wanted 'reference' beside 'scalar' or 'kernel': a formula says it itself, found another form of operator"},
      {"outputs in place of another shape", kernel(good, "inplace = { y = \"b\" }"),
       "op.cl:7:13: wanted an output and an input of one type and shape, found 'y'"},
  };
}

}  // namespace

TEST_CASE("Operators in OpenCL C that are wrong are refused with file, line and column") {
  const std::vector<BadCode> files = bad_code();
  CHECK(files.size() >= 35);
  for (const BadCode& file : files) {
    INFO(file.what);
    CHECK(error_of([&] { parse_ops(file.text, "op.cl"); }) == file.error);
  }
}

}  // namespace oclc::test
