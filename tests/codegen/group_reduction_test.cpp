// Reductions and rows whose terms the work-items of a group share.
#include <fmt/format.h>

#include "compiler/codegen/loops/group_reduction.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Launches {
  int shared = 0, in_vectors = 0, others = 0;  // in_vectors: of those that are shared
};

// Of a GPU, by whether the work-items of a group share the terms of their sums.
Launches launches_of(const PlanCheck& check, const std::vector<std::string>& disabled = {}) {
  CompileOptions options = default_options();
  options.target = find_target("gpu");
  options.disabled = disabled;
  const Compiled compiled = compile(module_of(copy_graph(*check.graph)), options);
  Launches found;
  for (const Kernel& kernel : compiled.schedule.kernels) {
    const auto shared = generate_group_reduction(kernel, options.target);
    if (!shared) {
      ++found.others;
      continue;
    }
    // It is what code generation takes.
    CHECK(generate(kernel, compiled.schedule.buffers, options.target).source == shared->source);
    ++found.shared;
    found.in_vectors += shared->schedule.ends_with(", vectors") ? 1 : 0;
  }
  return found;
}

}  // namespace

TEST_CASE("groups share long reductions: sums, extremes, products, rows, several results a group, ragged ends") {
  PlanCheck check;
  Builder& b = check.b;
  for (const Ints& shape : {Ints{1, 64}, Ints{3, 65}, Ints{7, 1023}, Ints{1000, 300}, Ints{4, 4099}}) {
    Value* x = check.input(shape);
    const auto name = [&](const char* what) { return fmt::format("{} of {}", what, fmt::join(shape, "x")); };
    for (const std::int64_t axis : {0, 1}) {
      check.out(name("sum") + (axis ? " of rows" : " of columns"), b.reduce("reduce_sum", x, {axis}, false));
      check.out(name("max") + (axis ? " of rows" : " of columns"), b.reduce("reduce_max", x, {axis}, true));
    }
    check.out(name("sum of all"), b.reduce("reduce_sum", b.mul(x, x), {0, 1}, false));
    check.out(name("softmax"), b.softmax(x));
    check.out(name("log softmax"), b.call("log_softmax", {x}, {{"axis", std::int64_t{1}}}));
  }
  check.check(2e-6, false);
}

TEST_CASE("groups share rows and sums of unknown length") {
  for (const std::int64_t length : {1, 3, 70, 700}) {
    PlanCheck check;
    Builder& b = check.b;
    check.symbols = {{"T", length}};
    Value* x = check.input(random_tensor(DType::f32, {5, length}, 1), {"", "T"});
    check.out("softmax", b.softmax(x));
    check.out("sum", b.reduce("reduce_sum", x, {1}, false));
    check.out("max of columns", b.reduce("reduce_max", b.transpose(x, {1, 0}), {0}, false));
    check.check(2e-6, false);
    const Launches launches = launches_of(check);
    CHECK(launches.shared == 3);
    CHECK(launches.others == 0);
  }
}

TEST_CASE("neighbouring results or terms of a group are vectors, whatever stands between them, ragged ones are not") {
  PlanCheck check;
  Builder& b = check.b;
  for (const std::int64_t columns : {64, 66}) {
    Value* x = check.input({9, 70, columns});
    const auto name = [&](const char* what) { return fmt::format("{}, {} columns", what, columns); };
    Value* mean = b.reduce("reduce_mean", x, {0, 1}, true);
    Value* centred = b.sub(x, mean);
    check.out(name("variance of columns"), b.reduce("reduce_mean", b.mul(centred, centred), {0, 1}, false));
    check.out(name("extremes of columns"),
              b.sub(b.reduce("reduce_max", x, {0, 1}, false), b.reduce("reduce_min", x, {0, 1}, false)));
    check.out(name("softmax"), b.softmax(b.mul(x, mean)));
    check.out(name("products of rows"), b.reduce("reduce_prod", b.add(b.mul(x, x), 0.7), {2}, false));
  }
  check.check(5e-6, false);
  const Launches launches = launches_of(check, {"fuse_in_work_group"});
  CHECK(launches.in_vectors > 2);
  CHECK(launches.shared - launches.in_vectors > 2);
}

TEST_CASE(
    "a product of one row is a sum that groups share: transposed, batched, over a sum of unknown length, with an epilogue") {
  PlanCheck check;
  check.symbols = {{"T", 37}};
  Builder& b = check.b;
  check.out("product", b.relu(b.matmul(check.input({1, 300}), check.input({300, 132}))));
  check.out("ragged", b.matmul(check.input({1, 301}), check.input({301, 131})));
  check.out("transposed", b.matmul(check.input({1, 768}), check.input({77, 768}), false, true));
  check.out("batch", b.matmul(check.input({3, 1, 64}), check.input({3, 64, 40})));
  Value* keys = check.input(random_tensor(DType::f32, {3, 37, 64}, 1), {"", "T", ""});
  Value* scores = b.softmax(b.matmul(check.input({3, 1, 64}), b.transpose(keys, {0, 2, 1})));
  check.out("unknown length", b.matmul(scores, keys));
  check.check(2e-6, false);
  const Launches launches = launches_of(check);
  CHECK(launches.shared == 6);  // softmax is computed by the groups of the product behind it
  CHECK(launches.others == 0);
}
