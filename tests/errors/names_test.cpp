// Hostile names behind the import: in generated code, plans and dot.
#include <set>

#include "compiler/ir/dot.h"
#include "tests/errors/import_error.h"
#include "tests/support/run_plan.h"

namespace oclc {
namespace {

using test::PlanRunner;
using test::Writer;

// y = exp(x) under whatever things are called.
struct Named {
  std::string input = "x", output = "y", node = "node", symbol = "N";

  PlanRunner compiled() const {
    Writer w;
    w.input(input, {symbol.c_str()}).output(output);
    w.node("Exp", {input}, {output}, node);
    return {w.import(), test::default_options()};
  }
};

// exp(2) by the device.
double second_result(PlanRunner& runner) {
  HostTensor x(DType::f32, {2});
  x.set(0, 1);
  x.set(1, 2);
  return runner.run(std::vector{x}).at(0).at(1);
}

// Every line of the source that holds `text` is a comment as a whole.
bool is_comment_where(const std::string& source, const std::string& text) {
  for (std::size_t at = 0; (at = source.find(text, at)) != std::string::npos; ++at) {
    if (source.compare(source.rfind('\n', at) + 1, 2, "//") != 0) return false;
  }
  return true;
}

TEST_CASE("case 19: names cannot end a comment or begin code in a kernel") {
  const std::vector<std::string> hostile = {
      "*/ } kernel void injected(global int* p) { *p = 1; } /*",
      "line\nkernel void injected(global int* p) { *p = 1; }\n#error injected",
      "ends with a backslash\\",
      "ends with its trigraph?\?/",
      "carriage\rreturn\r\n#error injected",
      "%s%n%d {} \"quoted\" $(reboot)",
      std::string("zero\0#error injected", 20),
      "\xff\xfe\xe2\x80\xa8#error injected",  // no UTF-8; a line separator
  };
  for (const std::string& name : hostile) {
    CAPTURE(name);
    for (const Named& named : {Named{.input = name}, Named{.output = name}, Named{.node = name}, Named{.symbol = name}}) {
      PlanRunner runner = named.compiled();
      for (const GeneratedFile& file : runner.compiled().plan.files) {
        CHECK(file.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
              std::string::npos);
        CHECK(is_comment_where(file.source, "#error"));
        CHECK(is_comment_where(file.source, "void injected"));
      }
      // Names of inputs and outputs end with a NUL in the runtime's interface.
      if ((named.input + named.output).find('\0') == std::string::npos)
        CHECK(second_result(runner) == doctest::Approx(7.389056));
    }
  }
}

TEST_CASE("case 19: names are quoted in dot and in texts") {
  Writer w;
  const std::string name = "a\"b\\c\nd";
  w.input("x", {4}).output("y");
  w.node("Exp", {"x"}, {"y"}, name);
  const auto module = w.import();
  CHECK(print_dot(*module->entries[0]).find("a\\\"b\\\\c") != std::string::npos);
  CHECK(print_dot(*module->entries[0]).find(name) == std::string::npos);
}

TEST_CASE("case 20: kernels of nodes that share a name or are called like a keyword have names of their own") {
  Writer w;
  w.input("x", {5}).output("a").output("b").output("c").output("d").output("e");
  w.node("Exp", {"x"}, {"a"}, "a.b");
  w.node("Tanh", {"x"}, {"b"}, "a_b");
  w.node("Cos", {"x"}, {"c"}, "kernel");
  w.node("Sin", {"x"}, {"d"}, "main");
  w.node("Sqrt", {"x"}, {"e"}, "half");
  CompileOptions options = test::default_options();
  options.disabled = {"fuse"};
  PlanRunner runner(w.import(), options);
  std::set<std::string> names;
  for (const GeneratedFile& file : runner.compiled().plan.files) names.insert(file.name);
  CHECK(names.size() == 5);
  for (const char* reserved : {"kernel", "main", "half"}) CHECK(names.count(reserved) == 0);
  HostTensor x(DType::f32, {5});
  for (std::int64_t i = 0; i < 5; ++i) x.set(i, 0.5);
  const auto found = runner.run(std::vector{x});
  const double wanted[] = {1.6487213, 0.46211716, 0.87758256, 0.47942554, 0.70710678};
  for (std::size_t i = 0; i < 5; ++i) CHECK(found[i].at(0) == doctest::Approx(wanted[i]));
}

}  // namespace
}  // namespace oclc
