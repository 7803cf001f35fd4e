// Sizes that nothing bounds before the plan runs: read by the host, and memory had then. The reference and a device agree, for
// one plan and several inputs, and with what is given when sizes are known.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/copy.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::run_time_sizes_test {

using oclc_onnx::TensorProto;
using Sizes = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

HostTensor tensor(DType dtype, Sizes shape, const Numbers& values) {
  HostTensor t(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

HostTensor ints(const Numbers& values) { return tensor(DType::i64, {static_cast<std::int64_t>(values.size())}, values); }

Numbers elements(const HostTensor& t) {
  Numbers out;
  for (std::int64_t i = 0; i < t.elements(); ++i) out.push_back(t.at(i));
  return out;
}

// Imported once; every run is checked against the reference.
class Both {
 public:
  explicit Both(const Writer& w, const std::string& disabled = {})
      : module_(w.import()), runner_(module_of(copy_graph(*module_->entries[0])), options(disabled)) {
    REQUIRE(verify(*module_->entries[0]) == "");
  }

  std::vector<HostTensor> operator()(const std::vector<HostTensor>& inputs) {
    const auto wanted = evaluate(*module_->entries[0], inputs);
    auto found = runner_.run(inputs);
    REQUIRE(found.size() == wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(found[i].shape() == wanted[i].shape());
      CHECK(difference(found[i], wanted[i]).max_rel < 1e-5);
    }
    return found;
  }

  // What a run that fails says.
  std::string failure(const std::vector<HostTensor>& inputs) {
    try {
      runner_.run(inputs);
    } catch (const rt::Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  static CompileOptions options(const std::string& disabled) {
    CompileOptions o = default_options();
    if (!disabled.empty()) o.disabled.push_back(disabled);
    return o;
  }
  std::unique_ptr<Module> module_;
  PlanRunner runner_;
};

bool names(const std::string& text, const std::string& node, const std::string& found) {
  INFO(text);
  return text.find("node '" + node + "'") != std::string::npos && text.find("found " + found) != std::string::npos;
}

Writer range(int type) {
  Writer w;
  w.input("start", {}, type).input("limit", {}, type).input("step", {}, type).output("y").output("sum");
  w.node("Range", {"start", "limit", "step"}, {"y"}, "count");
  w.node("ReduceSum", {"y"}, {"sum"}, "add up");
  return w;
}

TEST_CASE("Range between inputs, of whole numbers") {
  for (const char* disabled : {"", "fuse"}) {
    Both both(range(TensorProto::INT64), disabled);
    const auto run = [&](double start, double limit, double step) {
      return elements(
          both({tensor(DType::i64, {}, {start}), tensor(DType::i64, {}, {limit}), tensor(DType::i64, {}, {step})})[0]);
    };
    CHECK(run(0, 5, 1) == Numbers{0, 1, 2, 3, 4});
    CHECK(run(7, -2, -4) == Numbers{7, 3, -1});
    CHECK(run(1, 2, 10) == Numbers{1});
    CHECK(run(5, 5, 1).empty());
    CHECK(run(5, 2, 1).empty());
    CHECK(run(0, 3000, 1).size() == 3000);  // more memory than any run before
    CHECK(run(2, 4, 1) == Numbers{2, 3});
    const HostTensor zero = tensor(DType::i64, {}, {0});
    CHECK(names(both.failure({zero, tensor(DType::i64, {}, {9}), zero}), "count", "-1"));
    CHECK(run(0, 3, 2) == Numbers{0, 2});  // the session goes on
  }
}

TEST_CASE("Range between inputs, of floats") {
  Both both(range(TensorProto::FLOAT));
  const auto run = [&](double start, double limit, double step) {
    return elements(
        both({tensor(DType::f32, {}, {start}), tensor(DType::f32, {}, {limit}), tensor(DType::f32, {}, {step})})[0]);
  };
  CHECK(run(0, 1, 0.25) == Numbers{0, 0.25, 0.5, 0.75});
  CHECK(run(3, 0.5, -1) == Numbers{3, 2, 1});
  CHECK(run(0, -1, 1).empty());
  const auto one = [](double value) { return tensor(DType::f32, {}, {value}); };
  CHECK(names(both.failure({one(0), one(NAN), one(1)}), "count", "-1"));
  CHECK(both.failure({one(0), one(1e30), one(1e-3)}).find("node 'count': wanted a size from 0 to") != std::string::npos);
}

TEST_CASE("a size that no device has memory for is an error, and the session goes on") {
  Both both(range(TensorProto::INT64));
  const auto inputs = [](double limit) {
    return std::vector{tensor(DType::i64, {}, {0}), tensor(DType::i64, {}, {limit}), tensor(DType::i64, {}, {1})};
  };
  const std::string text = both.failure(inputs(0x1p39));
  CHECK(text.find("bytes") != std::string::npos);
  CHECK(text.find("device") != std::string::npos);
  CHECK(elements(both(inputs(3))[0]) == Numbers{0, 1, 2});
}

TEST_CASE("shapes of tensors from nothing, and repeats, from inputs") {
  Writer w;
  w.input("shape", {2}, TensorProto::INT64).input("x", {2, 3}).output("zeros").output("tiled").output("sum");
  w.node("ConstantOfShape", {"shape"}, {"zeros"}, "fill");
  w.node("Tile", {"x", "shape"}, {"tiled"}, "repeat");
  w.node("ReduceSum", {"tiled"}, {"sum"}, "add up");
  Both both(w);
  const HostTensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  auto y = both({ints({2, 3}), x});
  CHECK(y[0].shape() == Sizes{2, 3});
  CHECK(y[1].shape() == Sizes{4, 9});
  CHECK(elements(y[2]) == Numbers{126});
  CHECK(both({ints({0, 4}), x})[1].shape() == Sizes{0, 12});
  CHECK(both({ints({1, 1}), x})[1].shape() == Sizes{2, 3});
  CHECK(names(both.failure({ints({-2, 3}), x}), "fill", "-2"));
}

TEST_CASE("Expand to a shape from an input") {
  Writer w;
  w.input("x", {3, 1}).input("shape", {3}, TensorProto::INT64).output("y");
  w.node("Expand", {"x", "shape"}, {"y"}, "widen");
  Both both(w);
  const HostTensor x = tensor(DType::f32, {3, 1}, {1, 2, 3});
  CHECK(both({x, ints({2, 1, 4})})[0].shape() == Sizes{2, 3, 4});
  CHECK(both({x, ints({1, 3, 0})})[0].shape() == Sizes{1, 3, 0});
  CHECK(names(both.failure({x, ints({2, 2, 4})}), "widen", "-1"));
}

TEST_CASE("Reshape to a shape from an input") {
  Writer w;
  w.input("x", {"N", 6}).input("shape", {2}, TensorProto::INT64).output("y").output("z");
  w.node("Reshape", {"x", "shape"}, {"y"}, "fold");
  w.ints("six", {1}, {6}).ints("open", {1}, {-1});
  w.node("Size", {"x"}, {"size"}, "size");
  w.node("Gather", {"shape", "zero"}, {"first"}, "first").set_name("first");
  w.ints("zero", {1}, {0});
  w.node("Concat", {"first", "open"}, {"half"}, "half known");
  set_int(*w.graph().mutable_node(w.graph().node_size() - 1), "axis", 0);
  w.node("Reshape", {"x", "half"}, {"z"}, "fold half");
  Both both(w);
  const HostTensor x = random_tensor(DType::f32, {4, 6}, 3, -1, 1);
  for (const Numbers& shape : {Numbers{3, 8}, Numbers{0, -1}, Numbers{2, -1}, Numbers{24, 1}}) {
    const auto y = both({x, ints(shape)});
    CHECK(elements(y[0]) == elements(x));
    CHECK(elements(y[1]) == elements(x));
  }
  CHECK(names(both.failure({x, ints({5, 5})}), "fold", "-1"));
  CHECK(names(both.failure({x, ints({7, -1})}), "fold", "-1"));
  CHECK(both({random_tensor(DType::f32, {1, 6}, 3, -1, 1), ints({2, 3})})[0].shape() == Sizes{2, 3});
}

TEST_CASE("what is cut off, put around and kept of a triangle, from inputs") {
  Writer w(18);
  w.input("x", {5, 4})
      .input("from", {2}, TensorProto::INT64)
      .input("to", {2}, TensorProto::INT64)
      .input("k", {}, TensorProto::INT64);
  w.input("pads", {4}, TensorProto::INT64).output("cut").output("back").output("wide").output("lower");
  w.ints("axes", {2}, {1, 0}).ints("steps", {2}, {1, -2});
  w.node("Slice", {"x", "from", "to", "axes"}, {"cut"}, "cut");
  w.node("Slice", {"x", "from", "to", "axes", "steps"}, {"back"}, "cut backwards");
  w.node("Pad", {"x", "pads"}, {"wide"}, "pad");
  set_int(w.node("Trilu", {"x", "k"}, {"lower"}, "triangle"), "upper", 0);
  const HostTensor x = random_tensor(DType::f32, {5, 4}, 4, -1, 1);
  for (const char* disabled : {"", "fuse"}) {
    Both both(w, disabled);
    for (const auto& [from, to] :
         {std::pair(Numbers{0, 4}, Numbers{2, 0}), {{-3, -1}, {9, -9}}, {{3, 0}, {1, 5}}, {{1, 9}, {4, 1}}}) {
      const HostTensor pads = ints({1, 0, 2, 1}), k = tensor(DType::i64, {}, {from[0]});
      const auto found = both({x, ints(from), ints(to), k, pads});
      ImportOptions options;
      options.constants = {{"from", ints(from)}, {"to", ints(to)}, {"pads", pads}, {"k", k}};
      const auto wanted = evaluate(*w.import(options)->entries[0], std::vector{x});
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(found[i].shape() == wanted[i].shape());
        CHECK(elements(found[i]) == elements(wanted[i]));
      }
    }
    CHECK(names(both.failure({x, ints({0, 0}), ints({1, 1}), tensor(DType::i64, {}, {0}), ints({0, -4, 0, 0})}), "pad", "-4"));
  }
}

TEST_CASE("a depth and a k from inputs") {
  Writer w;
  w.input("at", {3}, TensorProto::INT64).input("n", {1}, TensorProto::INT64).input("x", {2, 5}).output("hot").output("best");
  w.floats("values", {2}, {0, 1});
  w.node("OneHot", {"at", "n", "values"}, {"hot"}, "one hot");
  w.node("TopK", {"x", "n"}, {"best", "where"}, "best of");
  Both both(w);
  const HostTensor x = random_tensor(DType::f32, {2, 5}, 4, 0, 1);
  CHECK(both({ints({0, 1, -1}), ints({4}), x})[0].shape() == Sizes{3, 4});
  CHECK(both({ints({0, 1, -1}), ints({2}), x})[1].shape() == Sizes{2, 2});
  CHECK(names(both.failure({ints({0, 1, -1}), ints({6}), x}), "best of", "6"));
}

// One plan whose sizes or scales are an input, beside plans that know them.
void check_resize(const std::string& mode, const std::string& coordinates, const std::string& nearest, bool exclude) {
  CAPTURE(mode);
  CAPTURE(coordinates);
  for (const bool by_scale : {false, true}) {
    CAPTURE(by_scale);
    Writer w(18);
    w.input("x", {1, 2, 5, 4}).output("y");
    const int type = by_scale ? TensorProto::FLOAT : TensorProto::INT64;
    w.input("to", {2}, type);
    NodeProto& node =
        by_scale ? w.node("Resize", {"x", "", "to"}, {"y"}, "zoom") : w.node("Resize", {"x", "", "", "to"}, {"y"}, "zoom");
    set_text(node, "mode", mode);
    set_text(node, "coordinate_transformation_mode", coordinates);
    set_text(node, "nearest_mode", nearest);
    set_int(node, "exclude_outside", exclude ? 1 : 0);
    set_list(node, "axes", {2, 3});
    Both both(w);
    const HostTensor x = random_tensor(DType::f32, {1, 2, 5, 4}, 7, -1, 1);
    for (const Numbers& to :
         by_scale ? std::vector<Numbers>{{2, 1.5}, {0.5, 1}} : std::vector<Numbers>{{10, 3}, {2, 9}, {1, 4}}) {
      const HostTensor given = by_scale ? tensor(DType::f32, {2}, to) : ints(to);
      const HostTensor found = both({x, given})[0];
      ImportOptions options;
      options.constants["to"] = given;
      const auto known = w.import(options);
      CHECK(difference(found, evaluate(*known->entries[0], std::vector{x})[0]).max_abs < 2e-5);
    }
    CHECK(names(both.failure({x, by_scale ? tensor(DType::f32, {2}, {-1, 2}) : ints({-1, 2})}), "zoom", "-1"));
  }
}

TEST_CASE("Resize to sizes and by scales from inputs") {
  for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    check_resize("linear", coordinates, "floor", false);
    check_resize("cubic", coordinates, "floor", false);
  }
  for (const char* nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    check_resize("nearest", "half_pixel", nearest, false);
  check_resize("cubic", "half_pixel", "floor", true);
}

// As the specification has it, region by region, bin by bin.
double bin_of_region(const HostTensor& x, const double* roi, std::int64_t channel, std::int64_t bin_y, std::int64_t bin_x,
                     bool average) {
  constexpr std::int64_t kHigh = 9, kWide = 8, kBins = 2;
  const double height = (roi[3] - roi[1]) / kBins, width = (roi[2] - roi[0]) / kBins;
  const auto ny = static_cast<std::int64_t>(std::ceil(height)), nx = static_cast<std::int64_t>(std::ceil(width));
  double sum = 0, most = -INFINITY;
  for (std::int64_t iy = 0; iy < ny; ++iy) {
    for (std::int64_t ix = 0; ix < nx; ++ix) {
      double y =
          roi[1] - 0.5 + (static_cast<double>(bin_y) + (static_cast<double>(iy) + 0.5) / static_cast<double>(ny)) * height;
      double z =
          roi[0] - 0.5 + (static_cast<double>(bin_x) + (static_cast<double>(ix) + 0.5) / static_cast<double>(nx)) * width;
      double parts[4] = {};
      if (y >= -1 && y <= kHigh && z >= -1 && z <= kWide) {
        y = std::clamp(y, 0.0, kHigh - 1.0);
        z = std::clamp(z, 0.0, kWide - 1.0);
        const auto top = static_cast<std::int64_t>(y), left = static_cast<std::int64_t>(z);
        const double ty = y - static_cast<double>(top), tx = z - static_cast<double>(left);
        const auto at = [&](std::int64_t row, std::int64_t column) {
          return x.at((channel * kHigh + std::min(row, kHigh - 1)) * kWide + std::min(column, kWide - 1));
        };
        parts[0] = at(top, left) * (1 - ty) * (1 - tx), parts[1] = at(top, left + 1) * (1 - ty) * tx;
        parts[2] = at(top + 1, left) * ty * (1 - tx), parts[3] = at(top + 1, left + 1) * ty * tx;
      }
      for (const double part : parts) sum += part, most = std::max(most, part);
    }
  }
  if (nx * ny == 0) return 0;
  return average ? sum / static_cast<double>(nx * ny) : most;
}

TEST_CASE("RoiAlign takes as many samples as a bin has pixels") {
  for (const bool average : {true, false}) {
    Writer w;
    w.input("x", {1, 2, 9, 8}).input("rois", {"R", 4}).input("image", {"R"}, TensorProto::INT64).output("y");
    NodeProto& node = w.node("RoiAlign", {"x", "rois", "image"}, {"y"}, "align");
    set_int(node, "output_height", 2);
    set_int(node, "output_width", 2);
    set_int(node, "sampling_ratio", 0);
    set_text(node, "mode", average ? "avg" : "max");
    Both both(w);
    const HostTensor x = random_tensor(DType::f32, {1, 2, 9, 8}, 2, -1, 1);
    const Numbers regions{0, 0, 7, 8, 1, 2, 3, 4.5, 2, 2, 2, 2, 5, 1, 11, 12};
    for (const std::int64_t count : {4, 2}) {
      const HostTensor y = both({x, tensor(DType::f32, {count, 4}, Numbers(regions.begin(), regions.begin() + 4 * count)),
                                 HostTensor(DType::i64, {count})})[0];
      for (std::int64_t i = 0; i < y.elements(); ++i) {
        const double wanted =
            bin_of_region(x, &regions[static_cast<std::size_t>(i / 8 * 4)], i / 4 % 2, i / 2 % 2, i % 2, average);
        CHECK(std::abs(y.at(i) - wanted) < 1e-5);
      }
    }
  }
}

GraphProto& graph_of(NodeProto& node, const std::string& name) {
  return *attribute(node, name, AttributeProto::GRAPH).mutable_g();
}

NodeProto& add(GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs) {
  NodeProto& node = *graph.add_node();
  Writer::fill(node, op, inputs, outputs);
  return node;
}

// Doubles x `n` times, or until its first element is 100 or more: the last x, all of them as rows, and all of them one behind
// another.
Writer collecting(bool counted, bool conditional) {
  Writer w;
  w.input("x", {2}).input("n", {}, TensorProto::INT64).output("last").output("line").output("rows");
  w.floats("hundred", {}, {100}).floats("begin", {1}, {-1});
  NodeProto& loop = w.node("Loop", {counted ? "n" : "", "", "x", "begin"}, {"last", "line", "rows"}, "repeat");
  GraphProto& body = graph_of(loop, "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("now");
  body.add_input()->set_name("so_far");
  add(body, "Add", {"now", "now"}, {"next"});
  add(body, "ReduceMin", {"next"}, {"least"});
  set_int(*body.mutable_node(1), "keepdims", 0);
  add(body, "Less", {"least", "hundred"}, {"small"});
  set_int(add(body, "Concat", {"so_far", "next"}, {"longer"}), "axis", 0);
  add(body, "Identity", {"next"}, {"row"});
  for (const char* name : {conditional ? "small" : "go", "next", "longer", "row"}) body.add_output()->set_name(name);
  return w;
}

TEST_CASE("loops collect results of as many trips as an input, a condition or both say") {
  for (const char* disabled : {"", "fuse"}) {
    for (const bool counted : {true, false}) {
      for (const bool conditional : {true, false}) {
        if (!counted && !conditional) continue;
        CAPTURE(counted);
        CAPTURE(conditional);
        Both both(collecting(counted, conditional), disabled);
        for (const double n : {4.0, 0.0, 11.0, 1.0, -3.0}) {
          const auto y = both({tensor(DType::f32, {2}, {1, 3}), tensor(DType::i64, {}, {n})});
          const double trips = std::min(counted ? std::max(n, 0.0) : 1e9, conditional ? 7.0 : 1e9);
          CHECK(y[2].shape() == Sizes{static_cast<std::int64_t>(trips), 2});
          CHECK(y[1].elements() == 1 + 2 * static_cast<std::int64_t>(trips));
          CHECK(y[0].at(0) == std::pow(2, trips));
        }
        if (counted && conditional) {  // exporters say so where there is no limit
          HostTensor most(DType::i64, {});
          most.set_int(0, INT64_MAX);
          CHECK(both({tensor(DType::f32, {2}, {1, 3}), most})[2].shape() == Sizes{7, 2});
        }
      }
    }
  }
}

TEST_CASE("what depends on a size read may decide another, in a body too") {
  Writer w;
  w.input("n", {}, TensorProto::INT64).output("odd").output("total");
  w.ints("zero", {}, {0}).ints("one", {}, {1}).ints("two", {}, {2}).ints("three", {}, {3});
  w.node("Range", {"zero", "n", "one"}, {"all"}, "count");
  w.node("Mod", {"all", "two"}, {"rest"}, "rest");
  w.node("NonZero", {"rest"}, {"odd"}, "odd ones");
  // total = sum over three trips of 0 + 1 + .. + (n + trip - 1)
  GraphProto& body = graph_of(w.node("Loop", {"three", "", "zero"}, {"total"}, "repeat"), "body");
  set_type(*body.add_input(), "at", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  body.add_input()->set_name("sum");
  add(body, "Size", {"odd"}, {"odds"});
  add(body, "Add", {"n", "sum"}, {"limit"});
  add(body, "Range", {"zero", "limit", "one"}, {"numbers"});
  set_int(add(body, "ReduceSum", {"numbers"}, {"added"}), "keepdims", 0);
  add(body, "Mod", {"added", "three"}, {"next"});
  for (const char* name : {"go", "next"}) body.add_output()->set_name(name);
  for (const char* disabled : {"", "fuse"}) {
    Both both(w, disabled);
    for (const double n : {5.0, 1.0, 1000.0, 0.0})
      CHECK(both({tensor(DType::i64, {}, {n})})[0].shape() == Sizes{1, static_cast<std::int64_t>(n / 2)});
  }
}

TEST_CASE("products and rows over a size read") {
  Writer w;
  w.input("n", {1}, TensorProto::INT64).input("w", {4, 3}).output("y").output("soft");
  w.ints("four", {1}, {4}).ints("zero", {}, {0}).ints("one", {}, {1});
  set_int(w.node("Concat", {"n", "four"}, {"shape"}, "shape"), "axis", 0);
  w.floats("half", {1}, {0.5f});
  w.node("Expand", {"half", "shape"}, {"a"}, "widen");
  w.node("MatMul", {"a", "w"}, {"y"}, "product");
  set_int(w.node("Softmax", {"y"}, {"soft"}, "soft"), "axis", 0);
  for (const char* disabled : {"", "fuse"}) {
    Both both(w, disabled);
    const HostTensor weights = random_tensor(DType::f32, {4, 3}, 4, -1, 1);
    for (const double n : {3.0, 130.0, 1.0, 0.0})
      CHECK(both({ints({n}), weights})[1].shape()[0] == static_cast<std::int64_t>(n));
  }
}

TEST_CASE("outputs without a largest size are read when a run is done") {
  Writer w = range(TensorProto::INT64);
  PlanRunner runner(module_of(copy_graph(*w.import()->entries[0])), default_options());
  const auto scalar = [](double v) { return tensor(DType::i64, {}, {v}); };
  const std::vector inputs{scalar(0), scalar(4), scalar(1)};  // which later runs read too
  runner.run(inputs);
  rt::Session& session = runner.session();
  CHECK(session.shape(0, OCLC_OUTPUT, "y") == Sizes{4});
  CHECK(session.bytes(0, OCLC_OUTPUT, "y") == 32);
  std::int64_t room[8] = {}, sum[1] = {};
  session.set_output(0, "sum", sum, {1});
  session.run(0);
  CHECK(sum[0] == 6);
  session.read_output(0, "y", room, sizeof room);
  CHECK(room[3] == 3);
  CHECK_THROWS_WITH_AS(session.read_output(0, "y", room, 16), doctest::Contains("takes 32 bytes, found room for 16"),
                       rt::Error);
  // Bound memory of enough bytes is filled, memory of too few an error that says what to do.
  session.set_output(0, "y", room, {8});
  session.run(0);
  CHECK(room[2] == 2);
  session.set_output(0, "y", room, {3});
  CHECK_THROWS_WITH_AS(session.run(0), doctest::Contains("leave it unbound"), rt::Error);
  CHECK_THROWS_AS(session.read_output(0, "none", room, 16), rt::Error);
}

}  // namespace oclc::test::run_time_sizes_test
