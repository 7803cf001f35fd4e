// Contractions on GPUs' matrix units of 16-bit operands: what each lane holds and computes there, in plain C, and without a
// unit.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "compiler/codegen/codegen.h"
#include "tests/codegen/plan_check.h"
#include "tests/process.h"
#include "tests/runtime/cached_run.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

CompileOptions unit_options(const char* target, const char* precision) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.target.flops = 1e8;      // nothing is too small for the unit
  options.target.work_group = 64;  // small tiles compile soon
  options.precision = precision;
  return options;
}

// With the unit's arithmetic and with that of any device; so many kernels are of the unit's template.
void check_on_units(const PlanCheck& check, const char* precision, double tolerance, int wanted_kernels) {
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const char* target : {"xe", "rdna3"}) {
    for (const char* use : {"emulate", "0"}) {
      CAPTURE(target);
      CAPTURE(use);
      const Setting setting("OCLC_UNITS", use);
      PlanRunner runner(module_of(copy_graph(*check.graph)), unit_options(target, precision));
      const std::string source = runner.source();
      int kernels = 0;
      for (std::size_t at = source.find("contraction_unit_gpu"); at != source.npos;
           at = source.find("contraction_unit_gpu", at + 1))
        ++kernels;
      CHECK(kernels >= wanted_kernels);
      CHECK(oclc::difference(runner.run(check.inputs, check.symbols), wanted, tolerance) == "");
    }
  }
}

Value* conv3x3(PlanCheck& check) {
  Builder& b = check.b;
  Value* weights = b.constant(random_tensor(DType::f32, {64, 32, 3, 3}, 5, -1, 1));
  return b.relu(
      b.conv(check.input({2, 32, 9, 11}), weights, b.constant(random_tensor(DType::f32, {64}, 6)), {.pads = {1, 1, 1, 1}}));
}

Value* attention(PlanCheck& check) {
  Builder& b = check.b;
  Value* scores = b.mul(b.matmul(check.input({3, 70, 32}), check.input({3, 66, 32}), false, true), 0.176776695);
  return b.matmul(b.softmax(scores), check.input({3, 66, 48}));
}

}  // namespace

TEST_CASE("products, a convolution and attention on units are within the contracts") {
  for (const auto& [precision, tolerance] : {std::pair{"fp32", 5e-6}, {"fast", 2e-5}}) {
    CAPTURE(precision);
    PlanCheck check;
    Builder& b = check.b;
    check.out("sgemm", b.matmul(check.input({130, 100}), b.constant(random_tensor(DType::f32, {100, 72}, 3, -1, 1))));
    check.out("left transposed", b.matmul(b.transpose(check.input({48, 68}), {1, 0}), check.input({48, 40})));
    check.out("convolution", conv3x3(check));
    check.out("attention", attention(check));
    check_on_units(check, precision, tolerance, 4);
  }
}

TEST_CASE("halves in memory are multiplied as they are") {
  PlanCheck check;
  Value *a = check.input(DType::f16, {70, 64}), *w = check.b.constant(random_tensor(DType::f16, {64, 64}, 3, -1, 1));
  check.out("product", check.b.matmul(check.b.cast(a, DType::f32), check.b.cast(w, DType::f32)));
  check_on_units(check, "fp32", 1e-6, 1);
}

TEST_CASE("the strict contract leaves units alone") {
  for (const char* target : {"xe", "rdna3"}) {
    PlanCheck check;
    check.out("product", check.b.matmul(check.input({64, 64}), check.input({64, 64})));
    const auto compiled = compile(module_of(copy_graph(*check.graph)), unit_options(target, "strict"));
    CHECK(count_of(compiled.schedule, StrategyId::mma_bf16) == 0);
    CHECK(choices_of(compiled.schedule).size() == 1);
  }
}

// What a compiler for the device makes of a kernel's text, where there is one on the machine.
TEST_CASE("compilers for the devices find the units' instructions in the text") {
  if (std::system("clang-16 --version >/dev/null 2>&1") != 0) return;
  struct Device {
    const char *target, *precision, *arguments, *declarations, *wanted;
  };
  const Device devices[] = {
      {"rdna3", "fast", "-target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -S", "", "v_wmma_f32_16x16x16_bf16"},
      {"xe", "fp32", "-target spir64 -Dcl_intel_subgroup_matrix_multiply_accumulate=1 -S -emit-llvm",
       "float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 c);\n",
       "intel_sub_group_bf16_bf16_matrix_mad_k16Dv8_sDv8_iDv8_f("}};
  for (const Device& device : devices) {
    CAPTURE(device.target);
    PlanCheck check;
    check.out("product", check.b.matmul(check.input({256, 64}), check.input({64, 128})));
    const auto compiled = compile(module_of(copy_graph(*check.graph)), unit_options(device.target, device.precision));
    const Folder folder;
    folder.add("kernel.cl", device.declarations + compiled.plan.files.at(0).source);
    const std::string out = (folder.path / "out").string();
    const Outcome made = run("clang-16 -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -w -O2 " +
                             std::string(device.arguments) + " " + (folder.path / "kernel.cl").string() + " -o " + out);
    CHECK(made.text == "");
    std::ifstream file(out);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(text.find(device.wanted) != text.npos);
  }
}
