#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/ir/copy.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/passes/layout/choose_convolution.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Case {
  std::string name;
  Ints x, w;  // x[0] is the value of a symbolic batch
  ConvOptions options;
  bool bias = true;
};

std::vector<Case> cases() {
  return {
      {"one tap", {2, 5, 6, 7}, {9, 5, 1, 1}, {}},
      {"one tap, stride 2", {1, 8, 7, 7}, {16, 8, 1, 1}, {.strides = {2, 2}}},
      {"3x3", {2, 16, 9, 7}, {24, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
      {"3x3 without padding or bias", {1, 7, 8, 8}, {5, 7, 3, 3}, {}, false},
      {"first layer, 7x7 stride 2", {1, 3, 17, 19}, {20, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}},
      {"asymmetric pads", {2, 4, 6, 5}, {17, 4, 3, 2}, {.strides = {1, 2}, .pads = {0, 1, 2, 0}}},
      {"asymmetric pads, 3x3", {2, 4, 6, 5}, {17, 4, 3, 3}, {.pads = {0, 1, 2, 0}}},
      {"dilation", {1, 6, 11, 11}, {8, 6, 3, 3}, {.dilations = {2, 3}, .pads = {2, 3, 2, 3}}},
      {"groups", {2, 12, 5, 6}, {18, 4, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 3}},
      {"depthwise", {1, 20, 9, 8}, {20, 1, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}, .group = 20}},
      {"depthwise with two features a channel", {1, 6, 5, 5}, {12, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 6}},
      {"depthwise 5x5, wide", {2, 24, 7, 9}, {24, 1, 5, 5}, {.pads = {2, 2, 2, 2}, .group = 24}},
      {"depthwise 7x7", {1, 18, 9, 9}, {18, 1, 7, 7}, {.pads = {3, 3, 3, 3}, .group = 18}},
      {"one dimension", {2, 4, 21}, {6, 4, 5}, {.strides = {3}, .pads = {2, 1}}},
      {"one dimension in groups", {2, 4, 21}, {6, 2, 5}, {.group = 2}},
      {"three dimensions", {1, 3, 4, 5, 6}, {8, 3, 2, 3, 3}, {.strides = {1, 2, 1}, .pads = {1, 0, 1, 0, 1, 1}}},
      {"a single position", {3, 10, 3, 3}, {17, 10, 3, 3}, {}},
      {"wide and flat", {1, 33, 1, 40}, {31, 33, 3, 3}, {.pads = {1, 1, 1, 1}}},
  };
}

// relu(conv(x) + r) and the sum before it, so that an epilogue with a second operand is part of each case.
std::unique_ptr<Graph> graph_of(const Case& c, bool symbolic) {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, "layer");
  TensorType type{DType::f32, Shape(c.x.begin(), c.x.end())};
  if (symbolic) type.shape[0] = Expr::symbol("N");
  Value* x = graph->add_input("x", type);
  Value* w = b.constant(random_tensor(DType::f32, c.w, 2), "w");
  Value* bias = c.bias ? b.constant(random_tensor(DType::f32, {c.w[0]}, 3), "bias") : nullptr;
  Value* y = b.conv(x, w, bias, c.options);
  Value* r = graph->add_input("r", y->type);
  Value* sum = b.add(y, r);
  graph->add_output("y", b.relu(sum));
  return graph;
}

std::vector<HostTensor> inputs_of(const Case& c, const Graph& graph) {
  const HostTensor x = random_tensor(DType::f32, c.x, 4);
  const Ints shape = bind_shape(graph.inputs()[1]->type.shape, {{"N", c.x[0]}});
  return {x, random_tensor(DType::f32, shape, 5)};
}

void check_all(const std::string& strategy, const std::string& precision, double tolerance, const std::string& gemm = "own") {
  for (const Case& c : cases()) {
    for (const bool symbolic : {false, true}) {
      CAPTURE(c.name);
      CAPTURE(symbolic);
      const auto graph = graph_of(c, symbolic);
      CompileOptions options = default_options();
      options.conv = strategy;
      options.precision = precision;
      options.gemm = gemm;
      const Difference d = compare_with_reference(*graph, inputs_of(c, *graph), options);
      CHECK(d.max_rel <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("implicit convolutions equal the reference") { check_all("implicit", "fp32", 2e-6); }
TEST_CASE("im2col convolutions equal the reference") { check_all("im2col", "fp32", 2e-6); }
TEST_CASE("direct convolutions equal the reference") { check_all("direct", "fp32", 2e-6); }
TEST_CASE("winograd convolutions equal the reference within the contract fp32") { check_all("winograd", "fp32", 3e-6); }
TEST_CASE("winograd convolutions equal the reference within the contract fast") { check_all("winograd", "fast", 2e-5); }
TEST_CASE("convolutions by the cost model equal the reference") { check_all("auto", "fp32", 3e-6); }

TEST_CASE("winograd convolutions of one launch equal the reference") {
  struct Layer {
    std::string name;
    std::int64_t images, channels, height, width, features;
    ConvOptions options;
    std::int64_t taps = 3;
  };
  const std::vector<Layer> layers = {
      {"padded, whole tiles", 2, 32, 8, 12, 48, {.pads = {1, 1, 1, 1}}},
      {"rests of tiles and of panels", 1, 16, 7, 9, 23, {.pads = {1, 1, 1, 1}}},
      {"without padding", 3, 16, 6, 11, 16, {}},
      {"asymmetric pads", 1, 48, 10, 5, 33, {.pads = {0, 2, 1, 0}}},
      {"one position", 2, 16, 1, 1, 8, {.pads = {1, 1, 1, 1}}},
      {"long sums", 1, 160, 5, 5, 20, {.pads = {1, 1, 1, 1}}},
      {"5x5, padded, rests of tiles and of panels", 2, 32, 9, 11, 23, {.pads = {2, 2, 2, 2}}, 5},
      {"5x5, asymmetric pads, whole tiles", 1, 160, 7, 6, 24, {.pads = {0, 3, 1, 1}}, 5},
  };
  for (const Layer& layer : layers) {
    for (const bool symbolic : {false, true}) {
      for (const std::string precision : {"fp32", "fast"}) {
        CAPTURE(layer.name);
        CAPTURE(symbolic);
        CAPTURE(precision);
        Graph graph;
        Builder b(graph, "layer");
        const Ints image{layer.images, 5, layer.height, layer.width};
        TensorType type{DType::f32, Shape(image.begin(), image.end())};
        if (symbolic) type.shape[0] = Expr::symbol("N");
        // A convolution before it puts channels innermost, one after it reads the result as part of a wider tensor.
        Value* x = graph.add_input("x", type);
        Value* before = b.conv(x, b.constant(random_tensor(DType::f32, {layer.channels, 5, 1, 1}, 1), "v"), nullptr, {});
        Value* w = b.constant(random_tensor(DType::f32, {layer.features, layer.channels, layer.taps, layer.taps}, 2), "w");
        Value* y = b.conv(b.relu(before), w, b.constant(random_tensor(DType::f32, {layer.features}, 3), "bias"), layer.options);
        graph.add_output(
            "y",
            b.relu(b.concat(
                {y, b.conv(y, b.constant(random_tensor(DType::f32, {4, layer.features, 1, 1}, 4), "u"), nullptr, {})}, 1)));
        CompileOptions options = default_options();
        options.conv = "winograd";
        options.precision = precision;
        const Difference d = compare_with_reference(graph, std::vector{random_tensor(DType::f32, image, 5)}, options);
        CHECK(d.max_rel <= (precision == "fast" ? 1e-5 : 3e-6));
        if (options.target.device_class != DeviceClass::cpu) continue;
        options.disabled = {"megakernel"};
        std::string heads;
        for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) heads += file.source;
        CHECK(heads.find("template contraction_winograd_cpu") != std::string::npos);
      }
    }
  }
}

TEST_CASE("an input of many channels is stored channels-last once for the convolutions that read it") {
  for (const bool symbolic : {false, true}) {
    CAPTURE(symbolic);
    Graph graph;
    Builder b(graph, "layers");
    TensorType type{DType::f32, {Expr(2), Expr(48), Expr(16), Expr(16)}};
    if (symbolic) type.shape[0] = Expr::symbol("N");
    Value* x = graph.add_input("x", type);
    Value* first = b.conv(x, b.constant(random_tensor(DType::f32, {48, 48, 3, 3}, 1), "v"), nullptr, {.pads = {1, 1, 1, 1}});
    Value* second = b.conv(x, b.constant(random_tensor(DType::f32, {16, 48, 5, 3}, 2), "w"), nullptr, {.strides = {2, 1}});
    graph.add_output("first", first);
    graph.add_output("second", b.relu(second));
    graph.add_output("beside", b.relu(x));
    CompileOptions options = default_options();
    const Difference d = compare_with_reference(graph, std::vector{random_tensor(DType::f32, {2, 48, 16, 16}, 3)}, options);
    CHECK(d.max_rel <= 3e-6);
    options.target = find_target("cpu");
    options.disabled = {"megakernel"};
    std::string names, heads;
    for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) {
      heads += file.source;
      if (file.source.find("_store: ") != std::string::npos) names += "s";
    }
    CHECK(names == "s");
    CHECK(heads.find("template contraction_winograd_cpu") != std::string::npos);
  }
}

TEST_CASE("convolutions of few channels read a window of the image") {
  const std::vector<Case> layers = {
      {"7x7 stride 2", {2, 3, 37, 41}, {64, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}},
      {"3x3, rests of pixels and of panels", {1, 4, 9, 19}, {21, 4, 3, 3}, {.pads = {1, 1, 1, 1}}},
      {"strides and dilations with common factors",
       {1, 2, 23, 29},
       {8, 2, 3, 5},
       {.strides = {2, 4}, .dilations = {2, 2}, .pads = {2, 4, 2, 4}}},
      {"strides and dilations without",
       {2, 1, 17, 20},
       {16, 1, 4, 2},
       {.strides = {3, 1}, .dilations = {2, 3}, .pads = {1, 2, 3, 0}}},
      {"one row of taps", {1, 3, 5, 30}, {12, 3, 1, 9}, {.pads = {0, 4, 0, 4}}},
      {"pads wider than the taps", {1, 3, 4, 4}, {10, 3, 2, 2}, {.pads = {3, 3, 3, 3}}},
      {"one position", {2, 3, 3, 3}, {33, 3, 3, 3}, {}},
      {"11x11 stride 4", {1, 3, 47, 47}, {24, 3, 11, 11}, {.strides = {4, 4}, .pads = {2, 2, 2, 2}}},
  };
  for (const Case& layer : layers) {
    for (const bool symbolic : {false, true}) {
      for (const bool channels_last : {false, true}) {
        CAPTURE(layer.name);
        CAPTURE(symbolic);
        CAPTURE(channels_last);
        Graph graph;
        Builder b(graph, "layer");
        TensorType type{DType::f32, Shape(layer.x.begin(), layer.x.end())};
        if (symbolic) type.shape[0] = Expr::symbol("N");
        Value* x = graph.add_input("x", type);
        Value* image = channels_last ? b.conv(x, b.constant(random_tensor(DType::f32, {layer.x[1], layer.x[1], 1, 1}, 1), "v"),
                                              nullptr, {})
                                     : x;
        Value* w = b.constant(random_tensor(DType::f32, layer.w, 2), "w");
        graph.add_output(
            "y", b.relu(b.conv(image, w, b.constant(random_tensor(DType::f32, {layer.w[0]}, 3), "bias"), layer.options)));
        CompileOptions options = default_options();
        options.conv = "implicit";
        const Difference d = compare_with_reference(graph, std::vector{random_tensor(DType::f32, layer.x, 4)}, options);
        CHECK(d.max_rel <= 2e-6);
        if (options.target.device_class != DeviceClass::cpu || options.target.vector_width < 4) continue;
        options.disabled = {"megakernel"};
        std::string heads;
        for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) heads += file.source;
        CHECK(heads.find("template contraction_window_cpu") != std::string::npos);
      }
    }
  }
}

TEST_CASE("an implicit convolution takes images of symbolic height, channels outermost") {
  Graph graph;
  Builder b(graph, "layer");
  Value* x = graph.add_input("x", {DType::f32, {Expr(2), Expr(4), Expr::symbol("T"), Expr(9)}});
  Value* w = b.constant(random_tensor(DType::f32, {6, 4, 3, 3}, 1), "w");
  graph.add_output("y", b.conv(x, w, nullptr, {.pads = {1, 1, 1, 1}}));
  CompileOptions options = default_options();
  options.conv = "implicit";
  for (const std::int64_t height : {1, 7}) {
    CAPTURE(height);
    const Difference d = compare_with_reference(graph, std::vector{random_tensor(DType::f32, {2, 4, height, 9}, 2)}, options);
    CHECK(d.max_rel <= 2e-6);
  }
}

TEST_CASE("products by the library equal the reference") {
  // im2col leaves one tap implicit, whose product the library takes too.
  for (const std::string strategy : {"im2col", "winograd"}) check_all(strategy, "fp32", 3e-6, "clblast");
}

TEST_CASE("the library multiplies what has plain operands") {
  const auto launches = [](const Case& c, const std::string& conv) {
    CompileOptions options = default_options();
    options.conv = conv;
    options.gemm = "clblast";
    return compile(module_of(graph_of(c, false)), options).schedule.gemms.size();
  };
  const Case padded{"3x3", {1, 4, 8, 8}, {8, 4, 3, 3}, {.pads = {1, 1, 1, 1}}};
  CHECK(launches(padded, "implicit") == 0);
  CHECK(launches(padded, "im2col") == 1);
  CHECK(launches(padded, "winograd") == 1);
  CHECK(launches({"one tap", {1, 5, 6, 7}, {9, 5, 1, 1}, {}}, "implicit") == 1);
  // The pixels of several images that come channels-first have no single step from row to row.
  CHECK(launches({"one tap", {2, 5, 6, 7}, {9, 5, 1, 1}, {}}, "implicit") == 0);
  CHECK(launches({"groups", {1, 8, 5, 5}, {6, 4, 3, 3}, {.group = 2}}, "im2col") == 1);
  CHECK(launches({"depthwise", {1, 8, 5, 5}, {8, 1, 3, 3}, {.group = 8}}, "im2col") == 0);
}

TEST_CASE("a strategy that a convolution does not allow leaves it implicit") {
  const auto choice = [](const Case& c, const std::string& strategy, const std::string& precision) {
    const auto graph = graph_of(c, false);
    Target target = find_target("cpu");
    target.precision = precision_under(find_contract(precision));
    choose_convolution(*graph, {target, strategy});
    for (const Node* node : graph->nodes()) {
      if (node->op->name == "conv")
        return node->get<std::string>("strategy") + ": " + node->get<std::string>("strategy_reason");
    }
    return std::string("rewritten");
  };
  const Case square{"3x3", {1, 4, 8, 8}, {8, 4, 3, 3}, {}};
  CHECK(choice(square, "winograd", "fp32") == "rewritten");
  CHECK(choice(square, "im2col", "fp32") == "rewritten");
  CHECK(choice(square, "direct", "fp32") == "conv_direct: direct as asked");
  CHECK(choice(square, "winograd", "strict") ==
        "conv_implicit: implicit instead of winograd: the strict contract excludes Winograd");
  for (const Ints& filter : {Ints{8, 4, 4, 4}, Ints{8, 4, 3, 5}})
    CHECK(choice({"other filters", {1, 4, 8, 8}, filter, {}}, "winograd", "fp32") ==
          "conv_implicit: implicit instead of winograd: Winograd needs a filter of 3x3 or 5x5");
  CHECK(choice({"5x5", {1, 4, 8, 8}, {8, 4, 5, 5}, {}}, "winograd", "fp32") ==
        "conv_implicit: implicit instead of winograd: Winograd of 5x5 needs a CPU and channels that fill its vectors");
  CHECK(choice({"stride", {1, 4, 8, 8}, {8, 4, 3, 3}, {.strides = {2, 2}}}, "winograd", "fp32") ==
        "conv_implicit: implicit instead of winograd: Winograd needs stride and dilation 1");
  CHECK(choice({"1x1", {1, 4, 8, 8}, {8, 4, 1, 1}, {}}, "im2col", "fp32") ==
        "conv_implicit: implicit instead of im2col: with one tap the matrix is the input itself");
  CHECK(choice({"depthwise", {1, 4, 8, 8}, {4, 1, 3, 3}, {.group = 4}}, "im2col", "fp32") ==
        "conv_depthwise: depthwise: one input channel a group");
}

TEST_CASE("between planes a convolution is a product of them where that costs less than laying them out") {
  const auto planes = [](const char* target, const Ints& x, const Ints& w) {
    Graph graph;
    Builder b(graph, "layer");
    Value* y = graph.add_input("x", {DType::f32, Shape(x.begin(), x.end())});
    graph.add_output(
        "y", b.conv(y, b.constant(random_tensor(DType::f32, w, 1)), nullptr, {.pads = Ints(2 * (w.size() - 2), w[2] / 2)}));
    choose_convolution(graph, {find_target(target), "auto"});
    const auto& nodes = graph.nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* n) { return n->get_or<std::string>("strategy", "") == "planes"; });
  };
  struct Case {
    Ints x, w;
    bool wide, few;
  };
  const Case cases[] = {
      {{1, 64, 56, 56}, {256, 64, 1, 1}, true, true},     // few terms
      {{1, 128, 14, 14}, {512, 128, 1, 1}, true, true},   // few terms, few positions
      {{1, 512, 14, 14}, {512, 512, 1, 1}, false, true},  // surplus columns
      {{1, 192, 28, 28}, {96, 192, 1, 1}, true, true},    // many positions
      {{1, 192, 28, 28}, {48, 192, 1, 1}, false, true},   // and few results
      {{1, 3, 64, 64}, {32, 3, 3, 3}, true, true},        // few planes
      {{1, 5, 64, 64}, {32, 5, 3, 3}, false, false},      // more
  };
  for (const Case& c : cases) {
    CAPTURE(c.x);
    CAPTURE(c.w);
    CHECK(planes("cpu", c.x, c.w) == c.wide);
    CHECK(planes("cpu-256", c.x, c.w) == c.few);
    CHECK(!planes("cpu-amx", c.x, c.w));
  }
}

TEST_CASE("Winograd of 5x5 filters stays within the contract's error") {
  Graph graph;
  Builder b(graph, "layers");
  Value* y = graph.add_input("x", {DType::f32, {Expr(1), Expr(3), Expr(14), Expr(14)}});
  y = b.conv(y, b.constant(random_tensor(DType::f32, {16, 3, 1, 1}, 1)), nullptr, {});
  for (unsigned i = 0; i < 64; ++i)
    y = b.relu(b.conv(y, b.constant(random_tensor(DType::f32, {16, 16, 5, 5}, i)), nullptr, {.pads = {2, 2, 2, 2}}));
  graph.add_output("y", y);
  choose_convolution(graph, {find_target("cpu"), "winograd"});
  int large = 0, refused = 0;
  for (const Node* node : graph.nodes()) {
    if (node->op->name != "conv" || node->inputs[1]->type.shape[2] == Expr(1)) continue;
    const auto& reason = node->get<std::string>("strategy_reason");
    large += reason == "winograd F(2x2,5x5) as asked" ? 1 : 0;
    refused += reason == "implicit instead of winograd: its rounding errors exceed the contract's" ? 1 : 0;
  }
  CHECK(large >= 4);
  CHECK(refused >= 1);
  CHECK(large + refused == 64);
}

TEST_CASE("a data gradient of a 5x5 filter is Winograd's, its filters transformed by a launch") {
  Graph graph;
  Builder b(graph, "layer");
  const Ints dy{2, 32, 9, 10}, weights{32, 24, 5, 5};
  Value* y = b.relu(b.conv(graph.add_input("y", {DType::f32, Shape(dy.begin(), dy.end())}),
                           b.constant(random_tensor(DType::f32, {32, 32, 1, 1}, 1)), nullptr, {}));
  Value* w = graph.add_input("w", {DType::f32, Shape(weights.begin(), weights.end())});
  graph.add_output("dx", b.call("conv_transpose", {y, w},
                                {{"strides", Ints{1, 1}},
                                 {"dilations", Ints{1, 1}},
                                 {"pads", Ints{2, 2, 2, 2}},
                                 {"group", std::int64_t{1}},
                                 {"output_shape", Shape{Expr(9), Expr(10)}}}));
  CompileOptions options = default_options();
  options.conv = "winograd";
  const std::vector inputs{random_tensor(DType::f32, dy, 2), random_tensor(DType::f32, weights, 3)};
  CHECK(compare_with_reference(graph, inputs, options).max_rel <= 3e-6);
  options.target = find_target("cpu");
  options.disabled = {"megakernel"};
  std::string heads;
  for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) heads += file.source;
  CHECK(heads.find("F(2x2, 5x5)") != std::string::npos);
  CHECK(heads.find("transformed filters") != std::string::npos);
}

TEST_CASE("forward with weights of run time Winograd has the small window alone") {
  for (const std::int64_t size : {3, 5}) {
    CAPTURE(size);
    Graph graph;
    Builder b(graph, "layer");
    const Ints image{2, 32, 9, 10}, weights{24, 32, size, size};
    Value* x = b.relu(b.conv(graph.add_input("x", {DType::f32, Shape(image.begin(), image.end())}),
                             b.constant(random_tensor(DType::f32, {32, 32, 1, 1}, 1)), nullptr, {}));
    Value* w = graph.add_input("w", {DType::f32, Shape(weights.begin(), weights.end())});
    const std::int64_t pad = size / 2;
    graph.add_output("y", b.conv(x, w, nullptr, {.pads = {pad, pad, pad, pad}}));
    CompileOptions options = default_options();
    options.conv = "winograd";
    const std::vector inputs{random_tensor(DType::f32, image, 2), random_tensor(DType::f32, weights, 3)};
    CHECK(compare_with_reference(graph, inputs, options).max_rel <= 2e-6);
    options.target = find_target("cpu");
    options.disabled = {"megakernel"};
    std::string heads;
    for (const GeneratedFile& file : compile(module_of(copy_graph(graph)), options).plan.files) heads += file.source;
    CHECK((heads.find("F(2x2, 3x3)") != std::string::npos) == (size == 3));
    CHECK((heads.find("transformed filters") != std::string::npos) == (size == 3));
    CHECK(heads.find("5x5)") == std::string::npos);
    const auto choice = [&](const char* target) {
      const auto copy = copy_graph(graph);
      choose_convolution(*copy, {find_target(target), "winograd"});
      return copy->outputs()[0].second->producer->get<std::string>("strategy_reason");
    };
    CHECK(choice("cpu") == (size == 3 ? "winograd F(2x2,3x3) as asked"
                                      : "implicit instead of winograd: its rounding errors exceed the contract's"));
    CHECK(choice("h200") ==
          "implicit instead of winograd: Winograd needs constant weights, or a CPU and channels that are "
          "innermost and fill its vectors");
  }
}

TEST_CASE("with few registers a large window is not taken where its weights come from memory for few tiles") {
  for (const Expr& images : {Expr(1), Expr(8), Expr::symbol("N")}) {
    CAPTURE(images.text());
    Graph graph;
    Builder b(graph, "layers");
    Value* x = graph.add_input("x", {DType::f32, {images, Expr(8), Expr(13), Expr(13)}});
    Value* y = b.conv(x, b.constant(random_tensor(DType::f32, {384, 8, 1, 1}, 1)), nullptr, {});
    y = b.conv(y, b.constant(random_tensor(DType::f32, {256, 384, 3, 3}, 2)), nullptr, {.pads = {1, 1, 1, 1}});
    graph.add_output("y", y);
    choose_convolution(graph, {find_target("cpu-256"), "auto"});
    CHECK(y->producer->get<std::string>("strategy") == (images == Expr(1) ? "conv_winograd_2" : "conv_winograd_4"));
  }
}

TEST_CASE("matrix units that multiply in parts take Winograd for many channels and tiles, and compute what it computes") {
  const auto choice = [](std::int64_t images, std::int64_t channels, std::int64_t size, const char* target,
                         Contract contract = Contract::fp32) {
    Graph graph;
    Builder b(graph, "layer");
    Value* x = graph.add_input("x", {DType::f32, {Expr(images), Expr(channels), Expr(size), Expr(size)}});
    Value* w = b.constant(random_tensor(DType::f32, {channels, channels, 3, 3}, 1));
    graph.add_output("y", b.relu(b.conv(x, w, nullptr, {.pads = {1, 1, 1, 1}})));
    Target row = find_target(target);
    row.precision = precision_under(contract);
    choose_convolution(graph, {row, "auto"});
    return graph.outputs()[0].second->producer->inputs[0]->producer->get<std::string>("strategy_reason");
  };
  const auto takes_winograd = [](const std::string& reason) { return reason.starts_with("winograd F(4x4,3x3)"); };
  CHECK(takes_winograd(choice(16, 256, 56, "h200")));
  CHECK(takes_winograd(choice(64, 512, 28, "h200")));
  CHECK(takes_winograd(choice(64, 512, 7, "h200")));
  // Transforms that cost what they save; few tiles; rounded operands, whose rounding the transforms enlarge.
  CHECK(!takes_winograd(choice(64, 64, 224, "h200")));
  CHECK(!takes_winograd(choice(1, 512, 14, "h200")));
  CHECK(!takes_winograd(choice(16, 256, 56, "h200", Contract::tf32)));
  CHECK(!takes_winograd(choice(16, 256, 56, "h200", Contract::strict)));
  for (const bool symbolic : {false, true}) {
    const auto graph = graph_of({"3x3", {2, 32, 9, 10}, {40, 32, 3, 3}, {.pads = {1, 1, 1, 1}}}, symbolic);
    const std::vector inputs{random_tensor(DType::f32, {2, 32, 9, 10}, 4), random_tensor(DType::f32, {2, 40, 9, 10}, 5)};
    CompileOptions options = default_options();
    options.target = find_target("h200");
    options.conv = "winograd";
    std::string all;
    for (const GeneratedFile& file : compile(module_of(copy_graph(*graph)), options).plan.files) all += file.source;
    CHECK(all.find("winograd_output") != std::string::npos);
    CHECK(compare_with_reference(*graph, inputs, options).max_rel <= 2e-6);
  }
}
