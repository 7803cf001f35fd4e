// What a CPU keeps of a row for its later loops, rows that windows read outside the image, and images that lie channels last.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/codegen/loops/kept_values.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

Compiled compiled_for(const PlanCheck& check, const char* target = "cpu-256",
                      std::vector<std::string> disabled = {"megakernel", "loop_kernel"}) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = std::move(disabled);
  return compile(module_of(copy_graph(*check.graph)), options);
}

// Text of the tile functions of all kernels, without the prelude.
std::string tiles_of(const Compiled& c) {
  std::string all;
  for (const GeneratedFile& file : c.plan.files) {
    const auto at = file.source.find("_tile(");
    if (at != std::string::npos) all += file.source.substr(at);
  }
  return all;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

const std::vector<std::string> kVectors = {"cpu", "cpu-256", "cpu-128"};

}  // namespace

TEST_CASE("softmax computes a power once, and computes it again where a row is too long to be kept") {
  for (const std::int64_t length : {1000, 5000}) {
    PlanCheck check;
    check.out("y", check.b.softmax(check.input({64, length})));
    const Compiled c = compiled_for(check);
    const std::string text = tiles_of(c);
    CHECK(count(text, "oclc_exp(") == (length == 1000 ? 1 : 2));
    CHECK((count(text, "float kept0[") == 1) == (length == 1000));
    REQUIRE(c.schedule.kernels.size() == 1);
    CHECK(values_to_keep(c.schedule.kernels[0]).size() == (length == 1000 ? 1 : 0));
  }
}

TEST_CASE("what is computed before a softmax is kept from its first loop on, what is cheap is computed again") {
  PlanCheck dear, cheap;
  dear.out("y", dear.b.softmax(dear.b.erf(dear.input({64, 128}))));
  const auto kept = values_to_keep(compiled_for(dear).schedule.kernels[0]);
  REQUIRE(kept.size() == 2);
  CHECK(std::count_if(kept.begin(), kept.end(), [](const KeptValue& k) { return k.first == 0; }) == 1);
  CHECK(std::count_if(kept.begin(), kept.end(), [](const KeptValue& k) { return k.first == 1; }) == 1);
  cheap.out("y", cheap.b.layer_norm(cheap.input({64, 128}), cheap.input({128}), cheap.input({128})));
  CHECK(values_to_keep(compiled_for(cheap).schedule.kernels[0]).empty());
}

TEST_CASE("rows with kept values are right at every length") {
  PlanCheck check;
  Builder& b = check.b;
  for (const std::int64_t length : {3, 17, 128, 333, 4096, 4100}) {
    const std::string name = std::to_string(length) + ": ";
    check.out(name + "softmax", b.softmax(check.input({5, length})));
    check.out(name + "log softmax of a gate", b.log_softmax(b.sigmoid(check.input({3, length}))));
    check.out(name + "a computed row, its sum and its norm",
              b.layer_norm(b.tanh(check.input({4, length})), check.input({length}), check.input({length})));
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string& target : kVectors) {
    CHECK(check.problem(target, true, 4e-6, wanted) == "");
    CHECK(check.problem(target, false, 4e-6, wanted) == "");
  }
}

TEST_CASE("the largest of a row is found in four vectors side by side, and narrower ones do what is left") {
  PlanCheck check;
  check.out("y", check.b.softmax(check.input({64, 1000})));
  const std::string text = tiles_of(compiled_for(check, "cpu"));
  CHECK(count(text, "s0_lanes3 = oclc_max(s0_lanes3, ") == 1);
  CHECK(count(text, "vload8(0, x0 + ") > 0);
  CHECK(count(text, "x0[") == 0);
  PlanCheck sums;
  sums.out("y", sums.b.reduce("reduce_sum", sums.input({64, 1000}), {1}, false));
  CHECK(count(tiles_of(compiled_for(sums, "cpu")), "lanes3") == 0);
}

TEST_CASE("windows over channels read rows of what is outside instead of testing each vector") {
  PlanCheck check;
  Builder& b = check.b;
  const auto as_planes = [&](Value* x, auto f) { return b.transpose(f(b.transpose(x, {0, 3, 1, 2})), {0, 2, 3, 1}); };
  check.out("depthwise", as_planes(check.input({1, 14, 14, 64}), [&](Value* x) {
              return b.conv(x, b.constant(random_tensor(DType::f32, {64, 1, 3, 3}, 5, -1, 1)), nullptr,
                            {.pads = {1, 1, 1, 1}, .group = 64});
            }));
  check.out("largest", as_planes(check.input({1, 14, 14, 64}), [&](Value* x) {
              return b.max_pool(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}});
            }));
  const Compiled c = compiled_for(check);
  const std::string text = tiles_of(c);
  CHECK(count(text, ": outside0;") > 0);
  CHECK(count(text, "? vload8") == 0);
  // The images lie channels last: nothing moves them.
  for (const Kernel& k : c.schedule.kernels) CHECK_FALSE(k.is_copy);
  // Positions divide a row: no store is conditional.
  CHECK(count(text, "if (") == 0);
  CHECK(count(text, "oclc_prefetch(") > 0);
}

TEST_CASE("windows ask for lines of a point 2 KiB ahead, in all rows that the window above did not read") {
  PlanCheck check;
  Builder& b = check.b;
  Value* x = b.transpose(check.input({1, 14, 14, 64}), {0, 3, 1, 2});
  check.out("largest", b.transpose(b.max_pool(x, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}), {0, 2, 3, 1}));
  const std::string text = tiles_of(compiled_for(check, "cpu"));
  // The last tap is a row and a pixel after the point; four points, of two pixels each, are 512 floats.
  constexpr int kRow = 14 * 64, kLast = kRow + 64 + 512;
  for (const int place : {kLast, kLast - 64, kLast - kRow, kLast - kRow - 64})
    CHECK(count(text, fmt::format(" + {});\n", place)) > 0);
  CHECK(count(text, fmt::format(" + {});\n", kLast - 2 * kRow)) == 0);
}

TEST_CASE("rows ask for whole rows some 4 KiB ahead, and long ones that are read once do not") {
  const auto text = [](std::int64_t elements, bool softmax) {
    PlanCheck check;
    Value* x = check.input({64, elements});
    check.out("y", softmax ? check.b.softmax(x) : check.b.reduce("reduce_sum", x, {1}, false));
    return tiles_of(compiled_for(check, "cpu"));
  };
  CHECK(count(text(128, true), " + 1024);\n") > 0);
  CHECK(count(text(1000, true), " + 2000);\n") > 0);
  CHECK(count(text(49, false), " + 1029);\n") > 0);
  CHECK(count(text(1024, false), "oclc_prefetch(") == 0);
}

TEST_CASE("windows are right at all edges, strides, sizes and kinds") {
  PlanCheck check;
  Builder& b = check.b;
  for (const std::int64_t size : {5, 7, 14, 15}) {
    for (const std::int64_t kernel : {3, 5}) {
      for (const std::int64_t stride : {1, 2}) {
        const Ints pads(4, kernel / 2);
        const std::string name = fmt::format("{}x{}, {}x{}, stride {}: ", size, size, kernel, kernel, stride);
        const auto image = [&] { return b.transpose(check.input({2, size, size + 1, 24}), {0, 3, 1, 2}); };
        Value* weights = b.constant(random_tensor(DType::f32, {24, 1, kernel, kernel}, 5, -1, 1));
        check.out(name + "depthwise", b.sigmoid(b.conv(image(), weights, b.constant(random_tensor(DType::f32, {24}, 6, -1, 1)),
                                                       {.strides = {stride, stride}, .pads = pads, .group = 24})));
        if (kernel == 5) continue;
        check.out(name + "largest",
                  b.max_pool(image(), {.kernel = {kernel, kernel}, .strides = {stride, stride}, .pads = pads}));
        check.out(name + "average",
                  b.avg_pool(b.relu(image()), {.kernel = {kernel, kernel}, .strides = {stride, stride}, .pads = pads}));
      }
    }
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "gpu"}) {
    CHECK(check.problem(target, true, 2e-6, wanted) == "");
    CHECK(check.problem(target, false, 2e-6, wanted) == "");
  }
}

TEST_CASE("without keep_nchw a depthwise convolution of planes has its image laid out, and vectors of channels") {
  PlanCheck check;
  Builder& b = check.b;
  check.out("planes", b.conv(check.input({2, 32, 12, 16}), b.constant(random_tensor(DType::f32, {32, 1, 3, 3}, 5, -1, 1)),
                             nullptr, {.strides = {1, 1}, .pads = {1, 1, 1, 1}, .group = 32}));
  const Compiled c = compiled_for(check, "cpu-256", {"megakernel", "loop_kernel", "keep_nchw"});
  REQUIRE(c.schedule.kernels.size() == 2);
  CHECK(c.schedule.kernels[0].is_copy);
  CHECK(count(tiles_of(c), "vload8(0, p") > 0);
  check.check();
}
