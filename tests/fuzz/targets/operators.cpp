// What libFuzzer calls: an operator file that is almost right is read, its operators are used once, and each is right or
// refused with a CompileError that says where. Run by tools/fuzz.
//
// A text that begins with "F " is formulas alone, one with "K " a body in OpenCL C alone, one with "S " a function of elements:
// they get a head that names operands of many kinds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compiler/support/error.h"
#include "frontends/op/custom_op.h"

namespace {

constexpr std::string_view kOperands = R"(name = "my.op"
in = ["w: T[M, N]", "x: T[N]", "y: T[M]", "at: i64[N]", "s: T[]", "b: T[N]?", "xs: T[N]*"]
attr = { alpha = 0.5, n = 3, taps = [0.25, 0.5], steps = [1, 2], mode = "a" }
)";

std::string file_of(std::string_view text) {
  if (text.size() < 2 || text[1] != ' ') return std::string(text);
  const std::string rest(text.substr(2)), begin = "/*! oclc-op 1\n";
  switch (text[0]) {
    case 'F':
      return begin + std::string(kOperands) + "out = [\"z: T[M, N]\", \"v: T[N]\"]\nformula = '''\n" + rest + "\n'''\n*/\n";
    case 'K':
      return begin + std::string(kOperands) +
             "out = [\"z: T[M, N]\"]\nkernel = \"k\"\neach = [\"M\", \"N\"]\nlocal = { t = \"float[n * 4]\" }\n*/\nOP(k) {" +
             rest + "}\n";
    case 'S':
      return begin +
             "name = \"my.op\"\nin = [\"x: T[...]\", \"s: T[]\", \"i: i32[...]?\"]\nout = [\"z: T[...]\"]\n"
             "attr = { alpha = 0.5, n = 3 }\nscalar = \"f\"\n*/\n" +
             rest;
    default:
      return std::string(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = file_of({reinterpret_cast<const char*>(data), size});
  unsigned seed = 0;
  for (const char c : text) seed = seed * 31 + static_cast<unsigned char>(c);
  try {
    const oclc::CustomOps ops = oclc::parse_ops(text, "op.cl");
    std::string sizes;
    for (const std::string& name : ops.names())
      oclc::custom::example(*ops.find(name), seed % 3 == 0 ? oclc::DType::f16 : oclc::DType::f32, seed % 100, sizes);
  } catch (const oclc::CompileError& error) {
    if (error.parts().wanted.find("op.cl:") != std::string::npos) return 0;
    std::fprintf(stderr, "no place: %s\n", error.what());
    std::abort();
  }
  return 0;
}
