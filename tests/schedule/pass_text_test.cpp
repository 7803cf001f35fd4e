// Each pass of the table alone, in texts: a schedule in, the pass, a schedule out. Where a pass has nothing to do, all of the
// text stays as it is.
#include <algorithm>

#include "compiler/kernels/parse_schedule.h"
#include "tests/schedule/scheduled.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Pass {
  std::string name, target;
  double error_budget = 1e-5;
  Products products = Products::split;

  // What the pass makes of the schedule.
  std::string of(const std::string& text) const {
    Schedule schedule = parse_schedule(text, find_op);
    REQUIRE(verify(schedule) == "");
    ScheduleContext context{.target = find_target(target), .error_budget = error_budget, .rounds_weights = true};
    context.target.precision.products = products;
    bool runs = false;
    for (const SchedulePass& pass : schedule_passes()) {
      if (pass.name != name) continue;
      REQUIRE(pass.applies(context));
      pass.function(schedule, context);
      runs = true;
    }
    REQUIRE(runs);
    CHECK(verify(schedule) == "");
    return schedule.text();
  }
  // Its steps alone.
  std::string steps_of(const std::string& text) const {
    const std::string made = of(text);
    return made.substr(made.find("entry "));
  }
  bool keeps(const std::string& text) const { return of(text) == parse_schedule(text, find_op).text(); }
};

std::string count_text(std::int64_t n) { return std::to_string(n); }

// y[i] = op(x[i]), n elements.
std::string pointwise(const std::string& name, const std::string& op, int x, int y, std::int64_t n) {
  return "kernel pointwise " + name + " {\n  flops " + count_text(n) + "\n  bytes " + count_text(8 * n) + "\n  axis i < " +
         count_text(n) + "\n  read x0: f32 buffer " + count_text(x) + "\n  write y0: f32 buffer " + count_text(y) +
         "\n  %0: f32 = x0[i]\n  %1: f32 = " + op + "(%0)\n  y0[i] = %1\n}\n";
}

// y[r, c] = sum of a[r, k] b[k, c].
std::string product(const std::string& name, int a, int b, int y, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  const std::string r = count_text(rows), c = count_text(columns), k = count_text(depth);
  return "kernel contraction " + name + " {\n  flops " + count_text(2 * rows * columns * depth) + "\n  bytes " +
         count_text(4 * (rows * depth + depth * columns + rows * columns)) + "\n  axis r < " + r + "\n  axis c < " + c +
         "\n  reduce k < " + k + "\n  read x0: f32 buffer " + count_text(a) + "\n  read x1: f32 buffer " + count_text(b) +
         "\n  write y0: f32 buffer " + count_text(y) + "\n  %0: f32 = x0[" + k + "*r + k]\n  %1: f32 = x1[" + c +
         "*k + c]\n  %2: f32 = mul(%0, %1)\n  %3: f32 = stage 0\n  stage 0: f32 = sum over k of %2\n  y0[" + c +
         "*r + c] = %3\n  gemm: %0 x %1, m (r), n (c), k (k)\n}\n";
}

// Buffers of the kinds i (input), a (arena), o (output) and c (constant), in order.
std::string buffers(const std::string& kinds, std::int64_t elements) {
  std::string out;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const char k = kinds[i];
    const std::string size = "f32[" + count_text(elements) + "]";
    out += "buffer " + count_text(static_cast<std::int64_t>(i)) + " " +
           (k == 'i'   ? "input"
            : k == 'a' ? "arena"
            : k == 'o' ? "output"
                       : "constant") +
           " \"b\": " + size + (k == 'c' ? " = " + size + " random 1" : "") + "\n";
  }
  return out;
}

std::string entry(const std::string& steps) { return "entry g {\n" + steps + "}\n"; }

// A graph's kernels, as lowering makes them for the target.
std::string kernels_of(const std::string& graph, const std::string& target, std::vector<std::string> disabled = {}) {
  return compiled_up_to("kernels", graph, target, std::move(disabled)).schedule.text();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string kTwo = buffers("iao", 64) + pointwise("k", "exp", 0, 1, 64) + pointwise("l", "tanh", 1, 2, 64);

}  // namespace

TEST_CASE("megakernel: kernels one after another are one launch, up to what the host does") {
  const Pass pass{"megakernel", "cpu"};
  CHECK(pass.steps_of(kTwo + entry("  k\n  l\n")) == entry("  megakernel {\n    k\n    l\n  }\n"));
  CHECK(pass.keeps(kTwo + entry("  k\n")));
  const std::string host = "  host unique(1[0][64], write 2[0][64])\n";
  CHECK(pass.keeps(kTwo + entry("  k\n" + host + "  l\n")));
  CHECK(pass.steps_of(kTwo + entry("  k\n  l\n" + host + "  l\n  l\n")) ==
        entry("  megakernel {\n    k\n    l\n  }\n" + host + "  megakernel {\n    l\n    l\n  }\n"));
}

TEST_CASE("loop_kernel: a loop of short kernels is one kernel, with the kernels around it") {
  const Pass pass{"loop_kernel", "gpu"};
  CHECK(pass.steps_of(kTwo + entry("  k\n  loop t < 100 {\n    l\n  }\n")) ==
        entry("  loop_kernel {\n    k\n    loop t < 100 {\n      l\n    }\n  }\n"));
  CHECK(pass.keeps(kTwo + entry("  k\n  l\n")));
  CHECK(pass.keeps(kTwo + entry("  k\n  loop t < 100 {\n    host unique(1[0][64], write 2[0][64])\n    l\n  }\n")));
}

TEST_CASE("fuse_pointwise: short kernels over one space are one") {
  const Pass pass{"fuse_pointwise", "gpu"};
  const std::string apart = buffers("ioo", 64) + pointwise("k", "exp", 0, 1, 64) + pointwise("l", "tanh", 0, 2, 64);
  CHECK(pass.steps_of(apart + entry("  k\n  l\n")) == entry("  k  // , \n"));
  CHECK(has(pass.of(apart + entry("  k\n  l\n")), "  %2: f32 = x"));
  CHECK(pass.keeps(kTwo + entry("  k\n  l\n")));  // the second reads what the first writes
  CHECK(pass.keeps(buffers("ioo", 64) + pointwise("k", "exp", 0, 1, 64) + pointwise("l", "tanh", 0, 2, 32) +
                   entry("  k\n  l\n")));
}

TEST_CASE("fuse_in_work_group: short kernels that need one another run in one work-group") {
  const Pass pass{"fuse_in_work_group", "gpu"};
  CHECK(pass.steps_of(kTwo + entry("  k\n  l\n")) == entry("  work_group chain_slice < 64 {\n    k\n    l\n  }\n"));
  CHECK(pass.keeps(buffers("ioo", 64) + pointwise("k", "exp", 0, 1, 64) + pointwise("l", "tanh", 0, 2, 64) +
                   entry("  k\n  l\n")));
  CHECK(pass.keeps(kTwo + entry("  k\n  host unique(1[0][64], write 2[0][64])\n  l\n")));
}

TEST_CASE("horizontal_fusion: kernels that need nothing of one another are one launch") {
  const Pass pass{"horizontal_fusion", "gpu"};
  const std::string apart = buffers("ioo", 64) + pointwise("k", "exp", 0, 1, 64) + pointwise("l", "tanh", 0, 2, 32);
  CHECK(pass.steps_of(apart + entry("  k\n  l\n")) == entry("  k\n  beside l\n"));
  CHECK(pass.keeps(kTwo + entry("  k\n  l\n")));
}

TEST_CASE("parallel_loops: loops that need nothing of one another are a core's each") {
  Pass pass{"parallel_loops", "cpu"};
  const auto two = [](int second_reads) {
    return buffers("icaaoo", 65536) + product("k", 0, 1, 2, 8, 256, 256) + product("l", second_reads, 1, 3, 8, 256, 256) +
           entry("  loop t < 20 {\n    k\n  }\n  loop u < 20 {\n    l\n  }\n");
  };
  CHECK(pass.steps_of(two(0)) ==
        entry("  parallel_loops < 20 {\n    loop t < 20 {\n      k\n    }\n    loop u < 20 {\n      l\n    }\n  }\n"));
  CHECK(pass.keeps(two(2)));
}

TEST_CASE("split_k: few results of long sums are sums of parts") {
  const auto one = [](std::int64_t rows, std::int64_t depth) {
    return buffers("iio", rows * depth + depth * 128) + product("k", 0, 1, 2, rows, 128, depth) + entry("  k\n");
  };
  CHECK(Pass{"split_k", "h200"}.steps_of(one(128, 65536)) == "entry g {\n  k_parts  // partial sums of \n  k\n}\n");
  CHECK(Pass{"split_k", "h200"}.keeps(one(4096, 64)));
  CHECK(Pass{"split_k", "cpu"}.keeps(one(4096, 64)));
}

TEST_CASE("quantize_weights, strassen: marks on products whose weights or sizes pay, within the contract") {
  const auto one = [](std::int64_t rows, std::int64_t n, char weights = 'c') {
    return buffers(std::string("i") + weights + "o", n * n) + product("k", 0, 1, 2, rows, n, n) + entry("  k\n");
  };
  CHECK(has(Pass{"quantize_weights", "cpu"}.of(one(1, 4096)), "  quantized_2"));
  CHECK(Pass{"quantize_weights", "cpu"}.keeps(one(4096, 4096)));
  CHECK(Pass{"quantize_weights", "cpu"}.keeps(one(1, 64)));
  CHECK(has(Pass{"strassen", "cpu", 1e-3}.of(one(1024, 768, 'i')), "  strassen: %0 x %1, m (r), n (c), k (k)\n"));
  CHECK(Pass{"strassen", "cpu", 0}.keeps(one(1024, 768, 'i')));
  CHECK(Pass{"strassen", "cpu"}.keeps(one(64, 64)));
}

TEST_CASE("attention: product, softmax and product are one step on units that have a template for it") {
  const auto graph = [](const std::string& between) {
    return "graph g(%q: f32[8, 256, 64], %k: f32[8, 64, 256], %v: f32[8, 256, 64]) {\n"
           "  %0 = matmul(%q, %k) {trans_a=0, trans_b=0}\n  %1 = " +
           between + "\n  %2 = matmul(%1, %v) {trans_a=0, trans_b=0}\n  return y=%2\n}\n";
  };
  const std::string text = kernels_of(graph("softmax(%0) {axis=2}"), "h200");
  CHECK(has(Pass{"attention", "h200"}.steps_of(text), "  attention {\n"));
  CHECK(Pass{"attention", "h200"}.keeps(kernels_of(graph("tanh(%0)"), "h200")));
  CHECK(Pass{"attention", "h200"}.keeps(kernels_of(graph("softmax(%0) {axis=1}"), "h200")));
}

TEST_CASE("fuse_over_batch, fuse_row_tiles: large values between kernels stay in a cache, in loops") {
  const auto graph = [](int images, int side) {
    const std::string n = std::to_string(images), s = std::to_string(side);
    return "graph g(%x: f32[" + n + ", 64, " + s + ", " + s +
           "]) {\n  %w = constant f32[64, 64, 3, 3] random 1\n  %v = constant f32[64, 64, 1, 1] random 2\n"
           "  %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n  %1 = relu(%0)\n"
           "  %2 = conv(%1, %v) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}\n  return y=%2\n}\n";
  };
  CHECK(has(Pass{"fuse_over_batch", "cpu"}.steps_of(kernels_of(graph(16, 56), "cpu")), "  loop image_0 < 16"));
  CHECK(Pass{"fuse_over_batch", "cpu"}.keeps(kernels_of(graph(1, 56), "cpu")));
}

TEST_CASE("fuse_row_tiles: rows of a large value are made and read tile by tile") {
  const auto graph = [](int height) {
    const std::string h = std::to_string(height), piece = ", sizes=(" + h + ", 64, 96), steps=[1, 1, 1]}\n";
    return "graph g(%x: f32[" + h + ", 64, 8]) {\n  %w = constant f32[8, 96] random 1\n" +
           "  %0 = matmul(%x, %w) {trans_a=0, trans_b=0}\n  %1 = relu(%0)\n"
           "  %2 = pad(%1) {after=(1, 0, 0), before=(1, 0, 0), mode=\"constant\", value=0.0}\n"
           "  %3 = slice(%2) {starts=(0, 0, 0)" +
           piece + "  %4 = slice(%2) {starts=(2, 0, 0)" + piece +
           "  %5 = add(%3, %4)\n  %6 = reduce_sum(%5) {axes=[2], keepdims=0}\n  return y=%6\n}\n";
  };
  const Pass pass{"fuse_row_tiles", "cpu"};
  const std::string made = pass.steps_of(kernels_of(graph(224), "cpu"));
  CHECK(has(made, "  loop row_tile_0 < "));
  CHECK(has(made, " in 4 slots row_tile_0_place {\n"));
  CHECK(pass.keeps(kernels_of(graph(8), "cpu")));
}

TEST_CASE("pack_b: a kernel packs the right operand that a GPU's tiles read") {
  const auto two = [](char kind, std::int64_t n) {
    return buffers(std::string("i") + kind + "o", n * n) + product("k", 0, 1, 2, n, n, n) + entry("  k\n");
  };
  CHECK(has(Pass{"pack_b", "h200"}.steps_of(two('i', 2048)), "entry g {\n  k"));
  CHECK_FALSE(Pass{"pack_b", "h200"}.keeps(two('i', 2048)));
  CHECK(Pass{"pack_b", "h200"}.keeps(two('c', 2048)));
  CHECK(Pass{"pack_b", "h200"}.keeps(two('i', 32)));
}

TEST_CASE("transform_filters: filters that a plan is given are transformed by a kernel before Winograd's convolution") {
  const auto graph = [](const std::string& weights, const std::string& constant) {
    return "graph g(%x: f32[1, 64, 56, 56]" + weights + ") {\n" + constant +
           "  %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n  return y=%0\n}\n";
  };
  const Pass pass{"transform_filters", "cpu"};
  const std::string given = kernels_of(graph(", %w: f32[64, 64, 3, 3]", ""), "cpu");
  REQUIRE(has(given, "  conv_winograd_"));
  CHECK(has(pass.steps_of(given), "_filter  // transformed filters of conv\n"));
  CHECK(pass.keeps(kernels_of(graph("", "  %w = constant f32[64, 64, 3, 3] random 1\n"), "cpu")));
}

TEST_CASE("small_gemm: few rows of a layer are marked on units that take them") {
  const auto one = [](std::int64_t rows, std::int64_t n, bool along_sum = true) {
    std::string made = product("k", 0, 1, 2, rows, n, n);
    if (along_sum) made.replace(made.find("*k + c]"), 7, "*c + k]");
    return buffers("ico", n * n) + made + entry("  k\n");
  };
  const Pass pass{"small_gemm", "h200"};
  CHECK(pass.keeps(one(49, 160, false)));
  CHECK(has(pass.of(one(49, 160)), "  small_gemm: %0 x %1, m (r), n (c), k (k)\n"));
  CHECK(pass.keeps(one(4096, 4096)));
}

TEST_CASE("transpose_weights: a sum reads a constant in the order of its terms") {
  const auto one = [](char kind) {
    std::string sums = product("k", 0, 1, 2, 1, 512, 512);
    sums.replace(sums.find("contraction"), 11, "reduce");
    sums.erase(sums.find("  gemm"), std::string("  gemm: %0 x %1, m (r), n (c), k (k)\n").size());
    return buffers(std::string("i") + kind + "o", 512 * 512) + sums + entry("  k\n");
  };
  const Pass pass{"transpose_weights", "gpu"};
  CHECK(has(pass.of(one('c')), "  %1: f32 = x1[512*c + k]\n"));
  CHECK(pass.keeps(one('i')));
}

TEST_CASE("pool_products: a product stores the largest of each window") {
  const auto graph = [](int stride) {
    const std::string s = std::to_string(stride);
    return "graph g(%x: f32[1, 512, 14, 14]) {\n  %w = constant f32[128, 512, 3, 3] random 1\n"
           "  %0 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}\n  %1 = relu(%0)\n"
           "  %2 = max_pool(%1) {ceil_mode=0, dilations=[1, 1], kernel=[2, 2], pads=[0, 0, 0, 0], strides=[" +
           s + ", " + s + "]}\n  return y=%2\n}\n";
  };
  const auto shares = [](std::string text) {
    text.insert(text.find("}\nkernel reduce"), "  terms shared by 4 work-groups\n");
    return text;
  };
  const Pass pass{"pool_products", "h200", 0, Products::rounded};
  const std::string shared = shares(kernels_of(graph(2), "h200"));
  CHECK(has(pass.of(shared), "  largest of windows of 1 x 2 x 2\n"));
  CHECK(pass.keeps(kernels_of(graph(2), "h200")));
  CHECK(pass.keeps(shares(kernels_of(graph(1), "h200"))));
}

TEST_CASE("forward_copies, inline_row_statistics: sums read what a copy read, and compute a row's statistics themselves") {
  const std::string copied =
      "graph g(%x: f32[64, 32]) {\n  %0 = slice(%x) {sizes=(64, 16), starts=(0, 4), steps=[1, 1]}\n  %1 = reduce_sum(%0) "
      "{axes=[1], keepdims=0}\n"
      "  return y=%1\n}\n";
  const std::string text = kernels_of(copied, "gpu", {"fuse"});
  REQUIRE(has(text, "  copy\n"));
  CHECK_FALSE(has(Pass{"forward_copies", "gpu"}.of(text), "  copy\n"));
  CHECK(Pass{"forward_copies", "gpu"}.keeps(kTwo + entry("  k\n  l\n")));
  const std::string normed =
      "graph g(%x: f32[32, 48], %v: f32[48]) {\n  %0 = softmax(%x) {axis=1}\n  %1 = mul(%0, %v)\n"
      "  %2 = reduce_sum(%1) {axes=[1], keepdims=0}\n  return y=%2\n}\n";
  const std::string rows = kernels_of(normed, "gpu");
  REQUIRE(has(rows, "kernel row "));
  CHECK_FALSE(has(Pass{"inline_row_statistics", "gpu"}.of(rows), "kernel row "));
  CHECK(Pass{"inline_row_statistics", "gpu"}.keeps(kTwo + entry("  k\n  l\n")));
}

TEST_CASE("prefetch_weights: launches that share terms prefetch weights that a product of one row packs soon after") {
  const std::string shares = "  terms shared by 4 work-groups\n}\n";
  std::string first = product("k", 0, 1, 2, 128, 128, 4096), row = product("l", 2, 3, 4, 1, 512, 24576);
  first.replace(first.size() - 2, 2, shares);
  row.replace(row.find("contraction"), 11, "reduce");
  row.erase(row.find("  gemm"), std::string("  gemm: %0 x %1, m (r), n (c), k (k)\n").size());
  row.replace(row.find("x1[512*k + c]"), 13, "x1[24576*c + k]");
  const std::string text = buffers("icaco", 24576 * 512) + first + row + entry("  k\n  l\n");
  const Pass pass{"prefetch_weights", "h200", 0, Products::rounded};
  CHECK(has(pass.steps_of(text), "  k prefetches l from byte "));
  CHECK(pass.keeps(buffers("icaco", 24576 * 512) + product("k", 0, 1, 2, 128, 128, 4096) + row + entry("  k\n  l\n")));
}

TEST_CASE("ragged_groups: many kernels of one text and several sizes that do not need each other are one group") {
  // Kernel k reads buffer k, or what the one before gave, and writes a buffer of its own; the last computes `op`.
  const auto text = [](int count, const std::string& op, bool chained) {
    const auto n = static_cast<std::size_t>(count);
    std::string all = buffers(std::string(n, 'i') + std::string(n, 'a'), 8192), steps;
    for (int k = 0; k < count; ++k) {
      const std::string name = "k" + count_text(k);
      all += pointwise(name, k == count - 1 ? op : "relu", chained && k > 0 ? k + count - 1 : k, k + count, 100 * k + 1);
      steps += "  " + name + "\n";
    }
    return all + entry(steps);
  };
  for (const auto& [target, fewest] : {std::pair("cpu", 8), std::pair("h200", 25)}) {
    const Pass pass{"ragged_groups", target};
    std::string steps;
    for (int k = 0; k < fewest; ++k) steps += "    k" + count_text(k) + "\n";
    CHECK(pass.steps_of(text(fewest, "relu", false)) == "entry g {\n  ragged {\n" + steps + "  }\n}\n");
    CHECK(pass.keeps(text(fewest - 1, "relu", false)));
    CHECK(pass.keeps(text(fewest, "exp", false)));
    CHECK(pass.keeps(text(fewest, "relu", true)));
  }
}

TEST_CASE("ragged_groups: what a group waits for is done before it, and what reads it behind it") {
  std::string all = buffers("iiiiiiiiaaaaaaaaaa", 4096), steps;
  for (int k = 0; k < 8; ++k) all += pointwise("k" + count_text(k), "relu", k == 3 ? 17 : k, k + 8, 16 * k + 4);
  all += pointwise("first", "exp", 0, 17, 4096) + pointwise("last", "tanh", 8, 16, 4);
  for (const char* name : {"k0", "last", "k1", "k2", "first", "k3", "k4", "k5", "k6", "k7"})
    steps += "  " + std::string(name) + "\n";
  CHECK(Pass{"ragged_groups", "cpu"}.steps_of(all + entry(steps)) ==
        "entry g {\n  first\n  ragged {\n    k0\n    k1\n    k2\n    k3\n    k4\n    k5\n    k6\n    k7\n  }\n  last\n}\n");
}

TEST_CASE("ragged_groups: kernels of one text that are never ready together stay as they are") {
  // Eight kernels in four pairs, the host's work between them.
  std::string all = buffers("iiiiiiiiaaaaaaaa", 4096), steps;
  for (int k = 0; k < 8; ++k) {
    all += pointwise("k" + count_text(k), "relu", k, k + 8, 16 * k + 4);
    steps += "  k" + count_text(k) + "\n";
    if (k % 2 == 1) steps += "  host unique(" + count_text(k + 8) + "[0][4], write " + count_text(k + 8) + "[4][4])\n";
  }
  CHECK(Pass{"ragged_groups", "cpu"}.keeps(all + entry(steps)));
}
