// A program that has compiled under a locale with decimal commas.
#include <doctest/doctest.h>

#include <clocale>
#include <locale>
#include <string>

#include "compiler/compile.h"
#include "tests/onnx/onnx_model.h"

namespace oclc::locale_test {
namespace {

// Decimal commas, and points between thousands, as in German.
struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

std::string plan_of_a_model() {
  test::Writer w;
  w.input("x", {"N", 1000, 3})
      .output("y")
      .floats("w", {3, 5}, {0.125F, 1e-7F, 3.25F, 1e9F, -0.5F, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1234.5F});
  w.floats("scale", {1}, {1.5F});
  w.node("MatMul", {"x", "w"}, {"p"});
  w.node("Mul", {"p", "scale"}, {"m"});
  test::set_float(w.node("LeakyRelu", {"m"}, {"l"}), "alpha", 0.0125F);
  w.node("Softmax", {"l"}, {"y"});
  CompileOptions options;
  options.target = find_target("cpu");
  const Compiled made = compile(std::shared_ptr<Module>(w.import()), options);
  std::string all(made.plan.metadata.begin(), made.plan.metadata.end());
  for (const GeneratedFile& file : made.plan.files) all += file.source;
  return all;
}

}  // namespace

TEST_CASE("case 108: a locale with decimal commas changes no byte of a plan") {
  const std::string plain = plan_of_a_model();
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  const char* c_locale = std::setlocale(LC_ALL, "de_DE.UTF-8");  // where the system has it
  const std::string other = plan_of_a_model();
  if (c_locale) std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  CHECK(plain.size() > 1000);
  CHECK(other == plain);
}

}  // namespace oclc::locale_test
