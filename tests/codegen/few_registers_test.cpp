// Products on CPUs with sixteen vector registers: chains, prefetching and tiles, and the numbers that come out.
#include <fmt/format.h>

#include "compiler/contraction/cpu/winograd.h"
#include "compiler/contraction/prefetch.h"
#include "tests/codegen/plan_check.h"
#include "tests/support/choices.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Places in the generated text that ask for lines beside a tile's results.
std::size_t lines_asked_for(const PlanCheck& check, const std::string& target) {
  CompileOptions options = default_options();
  options.target = find_target(target);
  std::size_t asked = 0;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
    for (std::size_t at = 0; (at = file.source.find("  oclc_prefetch_l2(", at + 1)) != std::string::npos;) ++asked;
  }
  return asked;
}

}  // namespace

TEST_CASE("chains are shorter where sums are careful, with few registers weights are asked for nearby, if at all") {
  const Target &few = find_target("cpu-256"), &many = find_target("cpu");
  for (const Target* target : {&few, &many}) {
    CHECK(longest_chain(*target) == 256);
    Target careful = *target;
    careful.precision.blocked_summation = true;
    CHECK(longest_chain(careful) == kLongestChain);
  }
  for (const std::int64_t rows : {1, 49, 1000}) {
    CAPTURE(rows);
    const PrefetchDistance nearby = prefetch_rows(few, rows, 16), wide = prefetch_rows(many, rows, 32);
    CHECK(nearby.first == (rows == 49 ? 64 : 0));
    CHECK(nearby.later == nearby.first);
    CHECK(wide.first == 64);
    CHECK(wide.later == 16);
  }
}

TEST_CASE("where registers are few, three rows ask for no weights ahead, and twenty do") {
  for (const std::int64_t rows : {3, 20}) {
    PlanCheck check;
    check.out("y", check.b.matmul(check.input({rows, 600}), check.b.constant(random_tensor(DType::f32, {600, 80}, 3, -1, 1))));
    CompileOptions options = default_options();
    options.target = find_target("cpu-256");
    bool asks = false;
    for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files)
      asks = asks || file.source.find("oclc_prefetch(w") != std::string::npos;
    CHECK(asks == (rows == 20));
  }
}

TEST_CASE("few tiles of Winograd take narrow panels of weights where registers are few") {
  Target few = find_target("cpu-256");
  few.compute_units = 2;
  few.local_bytes = 512 << 10;
  for (const std::int64_t tile : {2, 4}) {
    WinogradShape shape;
    shape.tile = tile;
    shape.tiles = tile == 2 ? 16 : 4;
    shape.channels = shape.features = 512;
    const auto tiles = choose_winograd_tiles(shape, few);
    REQUIRE(tiles);
    CHECK(tiles->rows == 4);
    CHECK(tiles->vectors == 2);
  }
}

TEST_CASE("blocks of Winograd's larger tiles grow with the channels on vectors of 512 bits") {
  const auto tiles_on = [](const char* name, std::int64_t tile, std::int64_t tiles, std::int64_t channels) {
    Target target = find_target(name);
    target.compute_units = 2;
    WinogradShape shape;
    shape.tile = tile;
    shape.tiles = tiles;
    shape.channels = shape.features = channels;
    const auto chosen = choose_winograd_tiles(shape, target);
    REQUIRE(chosen);
    CHECK(chosen->local_bytes <= target.local_bytes);
    return *chosen;
  };
  for (const char* name : {"cpu", "cpu-amx"}) {
    CAPTURE(name);
    const WinogradTiles some = tiles_on(name, 4, 49, 128), more = tiles_on(name, 4, 49, 256);
    CHECK(some.local_bytes <= 256 << 10);
    CHECK(some.vectors == 2);
    CHECK(more.local_bytes > 256 << 10);
    CHECK(more.local_bytes <= 512 << 10);
    CHECK(more.vectors == 2);
  }
  // Room for few rows only: panels may be wider.
  CHECK(tiles_on("cpu", 4, 49, 512).vectors == 4);
  CHECK(tiles_on("cpu-amx", 4, 49, 512).tiles == 13);
  // Each of two cores takes half of the panels, which it reads from memory once, and blocks of tiles that fit.
  const WinogradTiles small = tiles_on("cpu", 2, 49, 256), smaller = tiles_on("cpu", 2, 16, 512);
  CHECK(small.tiles == 25);
  CHECK(small.panels * small.vectors * 16 == 128);
  CHECK(smaller.tiles == 8);
  CHECK(smaller.panels * smaller.vectors * 16 == 256);
  CHECK(tiles_on("cpu-amx", 2, 49, 256).tiles == 49);
}

TEST_CASE("weights of half a megabyte are asked for a panel ahead on vectors of 512 bits, smaller ones rows ahead") {
  for (const std::int64_t columns : {64, 1024}) {
    for (const std::string target : {"cpu", "cpu-256"})
      CHECK(prefetches_panel(find_target(target), 128 * columns * 4) == (target == "cpu" && columns == 1024));
  }
  // Where registers are few, what the second-level cache does not hold.
  const Target& few = find_target("cpu-256");
  CHECK(prefetches_panel(few, few.l2_bytes + 4));
}

TEST_CASE("several register tiles of Winograd ask for the next point's weights, one only rows ahead") {
  for (const std::int64_t channels : {128, 256}) {
    PlanCheck check;
    ConvOptions same;
    same.pads = {1, 1, 1, 1};
    check.out("y",
              check.b.conv(check.b.relu(check.input({1, channels, 14, 14})),
                           check.b.constant(random_tensor(DType::f32, {channels, channels, 3, 3}, 5, -1, 1)), nullptr, same));
    CompileOptions options = default_options();
    options.target = find_target("cpu");
    options.target.compute_units = 2;
    options.conv = "winograd";
    const Compiled compiled = compile(module_of(copy_graph(*check.graph)), options);
    std::string source;
    for (const GeneratedFile& file : compiled.plan.files) source += file.source;
    const auto tiles = tiles_of<WinogradTiles>(compiled.schedule);
    REQUIRE(tiles.size() == 1);
    CHECK((source.find("oclc_prefetch_l2(w + ") != std::string::npos) == (tiles[0].tiles > tiles[0].rows));
  }
}

TEST_CASE("sums longer than a chain, of one row, of few and of many") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](std::int64_t inner, std::int64_t columns) {
    return b.constant(random_tensor(DType::f32, {inner, columns}, 11, -1, 1));
  };
  for (const std::int64_t rows : {1, 20, 150}) {
    const std::string name = std::to_string(rows) + " rows, ";
    check.out(name + "600 terms", b.matmul(check.input({rows, 600}), weights(600, 40)));
    check.out(name + "256 terms", b.matmul(check.input({rows, 256}), weights(256, 16)));
    check.out(name + "a computed operand", b.matmul(b.relu(check.input({rows, 513})), weights(513, 33)));
  }
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
}

TEST_CASE("near rows of a copied block meet all panels, and what their results meet is asked for") {
  PlanCheck check;
  Builder& b = check.b;
  const auto product = [&](std::int64_t rows, std::int64_t inner, std::int64_t columns) {
    return b.matmul(b.relu(check.input({rows, inner})), b.constant(random_tensor(DType::f32, {inner, columns}, 5, -1, 1)));
  };
  check.out("nothing is read beside the sums", product(1000, 40, 96));
  check.out("rows are added", b.add(product(1003, 64, 120), check.input({1003, 120})));
  check.out("a ragged panel", b.mul(b.add(product(500, 33, 75), check.input({500, 75})), check.input({500, 75})));
  check.out("one row for all", b.add(product(900, 48, 64), check.input({64})));
  check.out("batches", b.add(b.matmul(b.relu(check.input({2, 130, 40})), check.input({2, 40, 64})), check.input({2, 130, 64})));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    // The result, alone or beside the operands that lie along the rows.
    CHECK(lines_asked_for(check, target) >= 7);
  }
}

TEST_CASE("short sums of many rows are done row by row, which ask for what lies evenly beside results that do not") {
  const auto asked_by = [](bool spread, std::int64_t terms, std::int64_t rows) {
    PlanCheck check;
    Builder& b = check.b;
    // Rows of every second position alone have something added: no even step from row to row.
    Value* y = b.matmul(check.input({4, rows / 4, terms}), check.input({terms, 256}));
    if (spread) {
      Value* half = b.reshape(check.input({4, rows / 8, 256}), {4, rows / 8, 1, 256});
      Value* twice = b.pad(half, {0, 0, 0, 0}, {0, 0, 1, 0}, 0);
      y = b.add(y, b.reshape(twice, {4, rows / 4, 256}));
    }
    check.out("y", b.mul(y, check.input({4, rows / 4, 256})));
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    for (const std::string target : {"cpu", "cpu-256"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
    return lines_asked_for(check, "cpu");
  };
  CHECK(asked_by(false, 64, 2048) == 2);
  CHECK(asked_by(true, 64, 2048) == 2);
  CHECK(asked_by(false, 64, 64) == 0);
}

TEST_CASE("where registers are few, panels of the right operand are copied beside a copy of rows that are neighbours") {
  PlanCheck check;
  Builder& b = check.b;
  const auto product = [&](Value* a, Value* w) { return b.matmul(a, w, true, false); };
  check.out("a ragged block of rows", product(check.input({300, 140}), check.input({300, 48})));
  check.out("batches, a computed operand", product(b.relu(check.input({3, 270, 20})), check.input({3, 270, 64})));
  check.out("one vector of columns", product(check.input({1600, 64}), check.input({1600, 8})));
  check.out("a panel with a ragged end", product(check.input({40, 64}), check.input({40, 72})));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CompileOptions options = default_options();
    options.target = find_target(target);
    const auto tiles = tiles_of<FmaTiles>(compile(module_of(copy_graph(*check.graph)), options).schedule);
    const bool copies = std::any_of(tiles.begin(), tiles.end(), [](const FmaTiles& t) { return t.copies_panels; });
    CHECK(copies == (target == "cpu-256"));
  }
}

TEST_CASE("chunks of both operands of run time are copied") {
  PlanCheck check;
  Builder& b = check.b;
  const auto in = [&](const Ints& shape, const std::vector<std::string>& names = {}) {
    return check.input(DType::f32, shape, -1, 1, names);
  };
  check.out("neighbouring rows, a ragged block", b.matmul(in({300, 140}), in({300, 48}), true, false));
  check.out("batches, a computed operand", b.matmul(b.relu(in({3, 270, 52})), in({3, 270, 64}), true, false));
  check.out("blocks of neighbouring rows that are no vectors", b.matmul(in({541, 1012}), in({541, 184}), true, false));
  check.out("rows that are copied a few at a time, over several chunks", b.matmul(in({333, 530}), in({187, 530}), false, true));
  check.out("a panel with a ragged end", b.matmul(in({130, 64}), in({130, 72}), true, false));
  check.out("rows that fill no last vector", b.matmul(b.relu(in({300, 143})), in({300, 48}), true, false));
  check.out("ragged columns", b.matmul(in({600, 56}), in({600, 51}), true, false));
  check.out("columns of terms", b.matmul(b.relu(in({61, 1100})), in({83, 1100}), false, true));
  check.out("columns of few terms", b.matmul(in({61, 67}), in({83, 67}), false, true));
  check.out("computed operands", b.relu(b.matmul(b.relu(in({70, 2050})), b.exp(in({2050, 264})))));
  check.out("as many terms and rows as samples", b.matmul(in({201, 56}, {"N", ""}), in({201, 64}, {"N", ""}), true, false));
  check.out("as many rows as samples", b.matmul(in({201, 56}, {"N", ""}), in({56, 64})));
  check.out("rows in place, a ragged tile", b.relu(b.matmul(in({131, 300}), in({300, 256}))));
  check.out("batches of rows in place", b.matmul(in({2, 50, 1030}), in({2, 1030, 128})));
  check.out("few rows of many terms", b.matmul(in({67, 800}), in({800, 520})));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("parts of taps", b.conv(in({2, 232, 6, 7}), in({264, 232, 3, 3}), nullptr, same));
  check.out("several taps at a time", b.conv(in({1, 48, 12, 11}), in({260, 48, 7, 7}), nullptr, same));
  check.symbols = {{"N", 201}};
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CompileOptions options = default_options();
    options.target = find_target(target);
    const Compiled compiled = compile(module_of(copy_graph(*check.graph)), options);
    std::string source;
    for (const GeneratedFile& file : compiled.plan.files) source += file.source;
    // Where registers are many, 333 rows share copied panels of all terms.
    CHECK(count_of(compiled.schedule, StrategyId::chunks) == (options.target.has.tall_tiles ? 14 : 15));
    // Those of several chunks ask for the next one, but for several taps of an image.
    std::size_t asking = 0;
    for (std::size_t at = 0; (at = source.find("int multiplied = 0", at + 1)) != std::string::npos;) ++asking;
    CHECK(asking == (target == "cpu-256" ? 11 : 13));
  }
}

TEST_CASE("row tiles ask for the next panel of weights, which the second-level cache does not hold where registers are few") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](const Ints& shape) { return b.constant(random_tensor(DType::f32, shape, 11, -1, 1)); };
  check.out("rows that fill no tile", b.matmul(check.input({130, 96}), weights({96, 1600})));
  check.out("as many rows as samples", b.matmul(check.input(DType::f32, {130, 96}, -1, 1, {"N", ""}), weights({96, 1440})));
  ConvOptions half;
  half.strides = {2, 2};
  check.out("several taps", b.conv(b.relu(check.input({1, 64, 27, 27})), weights({256, 64, 3, 3}), nullptr, half));
  check.symbols = {{"N", 130}};
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CompileOptions options = default_options();
    options.target = find_target(target);
    int asking = 0;
    for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files)
      asking += file.source.find("oclc_prefetch_l2(w + ahead") != std::string::npos ? 1 : 0;
    CHECK(asking > 0);
  }
}

TEST_CASE("column sums of two passes, and of three sums, take a strip of vectors at a time") {
  PlanCheck check;
  Builder& b = check.b;
  const auto variance = [&](std::int64_t rows, std::int64_t columns) {
    Value* x = check.input({rows, columns});
    Value* deviation = b.sub(x, b.reduce("reduce_mean", x, {0}, true));
    return b.reduce("reduce_mean", b.mul(deviation, deviation), {0}, false);
  };
  check.out("two passes", variance(600, 64));
  check.out("terms that are no multiple of a part", variance(331, 128));
  check.out("few terms", variance(40, 256));
  check.out("a ragged end", variance(300, 77));
  Value *x = check.input({500, 64}), *y = check.input({500, 64});
  int sums = 0;
  for (Value* sum : {x, b.mul(x, y), b.mul(y, y)})
    check.out(fmt::format("sum {} of three", ++sums), b.reduce("reduce_sum", sum, {0}, false));
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
  CompileOptions options = default_options();
  options.target = find_target("cpu-256");
  options.target.compute_units = 2;
  int strips = 0, asking = 0;
  for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) {
    strips += file.source.find("for (; strip + 32 <= ") != std::string::npos;
    // 16 rows of 64 columns ahead.
    asking += file.source.find(" + 1024);") != std::string::npos;
  }
  CHECK(strips >= 1);
  CHECK(asking >= 1);
}

TEST_CASE("convolutions between planes are products with the weights on the left, packed where registers are few") {
  PlanCheck check;
  Builder& b = check.b;
  const auto weights = [&](const Ints& shape) { return b.constant(random_tensor(DType::f32, shape, 11, -1, 1)); };
  const auto one_tap = [&](Value* x, std::int64_t features) {
    return b.conv(x, weights({features, x->type.shape[1].value(), 1, 1}), weights({features}), {});
  };
  check.out("a ragged tile and ragged columns, in chunks of terms", b.relu(one_tap(check.input({1, 530, 7, 7}), 151)));
  check.out("images, one behind the other", one_tap(b.relu(one_tap(check.input({2, 40, 9, 16}), 64)), 50));
  check.out("as many images as wanted, and an addition",
            b.add(one_tap(check.input(DType::f32, {3, 24, 12, 10}, -1, 1, {"N", "", "", ""}), 72),
                  check.input(DType::f32, {3, 72, 12, 10}, -1, 1, {"N", "", "", ""})));
  check.out("few features of whole panels", one_tap(check.input({1, 60, 16, 32}), 16));
  check.out("few features of others", one_tap(check.input({1, 60, 14, 14}), 40));
  ConvOptions margins;
  margins.pads = {1, 0, 2, 1};
  check.out("windows of few planes",
            b.relu(b.conv(check.input({2, 3, 9, 53}), weights({49, 3, 3, 2}), weights({49}), margins)));
  margins.dilations = {2, 3};
  check.out("windows with gaps", b.conv(check.input({1, 4, 11, 64}), weights({64, 4, 3, 3}), nullptr, margins));
  ConvOptions half;
  half.strides = {2, 2};
  check.out("windows that jump", b.conv(check.input({1, 3, 9, 99}), weights({64, 3, 3, 3}), nullptr, half));
  Value* pixels = one_tap(check.input({1, 40, 9, 9}), 56);
  check.out("channels innermost for what follows", b.conv(pixels, weights({48, 56, 3, 3}), nullptr, half));
  check.symbols = {{"N", 3}};
  const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
  for (const std::string target : {"cpu", "cpu-256", "cpu-128"}) {
    CHECK(check.problem(target, true, 1e-6, wanted) == "");
    CHECK(check.problem(target, false, 1e-6, wanted) == "");
    CompileOptions options = default_options();
    options.target = find_target(target);
    std::string source;
    for (const GeneratedFile& file : compile(module_of(copy_graph(*check.graph)), options).plan.files) source += file.source;
    int tiles = 0;
    for (std::size_t at = 0; (at = source.find("float* p = weights + (size_t)m0", at)) != std::string::npos; ++at) ++tiles;
    CHECK(tiles == (target == "cpu-256" ? 6 : 0));
  }
}
