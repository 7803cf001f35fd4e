// Products and convolutions of integers that are floats: exact on every target, under every contract.
#include "tests/codegen/plan_check.h"

namespace oclc::test {
namespace {

HostTensor integers(const Ints& shape, int most, int seed) {
  HostTensor t(DType::f32, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.set(i, static_cast<double>((i * 7919 + seed * 104729 + i * i % 31) % (2 * most + 1) - most));
  return t;
}

Value* of_integers(Value* product) {
  product->producer->attributes["integers"] = std::int64_t{1};
  return product;
}

TEST_CASE("sums of products of integers below 2^24 are exact, whatever computes them") {
  PlanCheck check;
  const auto x = [&](const Ints& shape) { return check.input(integers(shape, 255, static_cast<int>(check.inputs.size()))); };
  const auto w = [&](const Ints& shape) { return check.b.constant(integers(shape, 127, 3)); };
  check.out("product", of_integers(check.b.matmul(x({65, 500}), w({500, 130}))));
  check.out("row", of_integers(check.b.matmul(x({1, 512}), w({512, 200}))));
  check.out("run time", of_integers(check.b.matmul(x({40, 250}), x({250, 48}))));
  check.out("window",
            of_integers(check.b.conv(x({1, 32, 20, 20}), w({48, 32, 3, 3}), nullptr, {{1, 1}, {1, 1}, {1, 1, 1, 1}, 1})));
  check.out("steps",
            of_integers(check.b.conv(x({2, 16, 17, 19}), w({33, 16, 3, 3}), nullptr, {{2, 2}, {1, 1}, {1, 1, 1, 1}, 1})));
  check.out("groups",
            of_integers(check.b.conv(x({1, 32, 9, 9}), w({32, 8, 3, 3}), nullptr, {{1, 1}, {1, 1}, {1, 1, 1, 1}, 4})));
  check.out("few channels",
            of_integers(check.b.conv(x({1, 3, 30, 30}), w({16, 3, 7, 7}), nullptr, {{2, 2}, {1, 1}, {3, 3, 3, 3}, 1})));
  const auto wanted = evaluate(*check.graph, check.inputs);
  for (const std::string target : {"cpu", "cpu-256", "cpu-amx", "gpu"}) {
    for (const std::string precision : {"strict", "fp32", "fast", "bf16"}) {
      if (target == "gpu" && precision != "fp32") continue;
      CHECK(check.problem(target, true, 0, wanted, precision) == "");
    }
  }
}

// Channels-first results of 8 bits: 32 and 48 features fill vectors, whose bytes are stored one by one, 33 and 5 do not.
TEST_CASE("integer convolutions whose results are bytes are exact, and bytes that lie apart are computed as vectors") {
  for (const bool with_sign : {false, true}) {
    PlanCheck check;
    for (const std::int64_t features : {32, 48, 33, 5}) {
      Value* x = check.input(integers({2, 32, 9, 7}, 127, static_cast<int>(features)));
      Value* y = of_integers(check.b.conv(x, check.b.constant(integers({features, 32, 1, 1}, 63, 3)), nullptr, {}));
      y = check.b.unary("round", check.b.mul(y, 0.015625));
      y = check.b.max(check.b.min(y, check.b.scalar(DType::f32, with_sign ? 127 : 255)),
                      check.b.scalar(DType::f32, with_sign ? -128 : 0));
      check.out(std::to_string(features), check.b.cast(y, with_sign ? DType::i8 : DType::u8));
    }
    const auto wanted = evaluate(*check.graph, check.inputs);
    for (const std::string target : {"cpu", "cpu-256", "cpu-amx", "gpu"}) {
      CHECK(check.problem(target, true, 0, wanted) == "");
      CompileOptions options = default_options();
      options.target = find_target(target);
      options.disabled = {"megakernel"};
      for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
        CAPTURE(file.source);
        const bool whole =
            file.source.find("out_c<32") != std::string::npos || file.source.find("out_c<48") != std::string::npos;
        CHECK((file.source.find("bytes[l]") != std::string::npos) == (whole && target != "gpu"));
      }
    }
  }
}

}  // namespace
}  // namespace oclc::test
