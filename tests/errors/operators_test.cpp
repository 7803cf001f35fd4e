// Operators whose attributes and operands do not fit, by numbered cases.
#include <cmath>
#include <functional>

#include "tests/errors/import_error.h"

namespace oclc {
namespace {

using namespace oclc::test;  // NOLINT: this file is about models

// A model of one node 'n' that reads x[2, 4, 8, 8] and what `more` adds.
Writer one_node(const std::string& op, const std::vector<std::string>& inputs,
                const std::function<void(NodeProto&)>& attributes) {
  Writer w;
  w.input("x", {2, 4, 8, 8}).output("y");
  w.floats("weights", {4, 4, 3, 3}, std::vector<float>(144, 1));
  w.ints("ones", {2}, {-1, -1}).ints("thirds", {2}, {3, -1}).ints("large", {2}, {7, 7});
  w.ints("begin", {1}, {0})
      .ints("end", {1}, {2})
      .ints("axis", {1}, {0})
      .ints("none", {1}, {0})
      .ints("lowest", {1}, {INT64_MIN});
  attributes(w.node(op, inputs, {"y"}, "n"));
  return w;
}

void nothing(NodeProto&) {}

TEST_CASE("case 42: windows, groups and shapes that can not be") {
  const auto list = [](const char* name, std::vector<std::int64_t> values) {
    return [name, values](NodeProto& n) { set_list(n, name, values); };
  };
  const std::vector<std::string> conv{"x", "weights"};
  CHECK_FAILS(failure_of(one_node("Conv", conv, list("strides", {0, 1}))),
              "node 'n' (Conv): wanted numbers from 1 to 1048576 as attribute 'strides', found 0", 3);
  CHECK_FAILS(failure_of(one_node("Conv", conv, list("dilations", {1, -1}))),
              "node 'n' (Conv): wanted numbers from 1 to 1048576 as attribute 'dilations', found -1", 3);
  CHECK_FAILS(failure_of(one_node("Conv", conv, list("kernel_shape", {2, 2}))),
              "node 'n' (Conv): wanted attribute 'kernel_shape' as the weights have it, [3, 3], found [2, 2]", 3);
  CHECK_FAILS(failure_of(one_node("Conv", conv, [](NodeProto& n) { set_int(n, "group", 0); })),
              "node 'n' (Conv): wanted a group of at least 1, found 0", 3);
  CHECK_FAILS(failure_of(one_node("MaxPool", {"x"}, list("kernel_shape", {0, 1}))),
              "node 'n' (MaxPool): wanted numbers from 1 to 1048576 as attribute 'kernel_shape', found 0", 3);
  CHECK_FAILS(failure_of(one_node("Transpose", {"x"}, list("perm", {0, 1, 2, 2}))),
              "node 'n' (Transpose): wanted a permutation of 4 axes, found [0, 1, 2, 2]", 3);
  CHECK_FAILS(failure_of(one_node("Reshape", {"x", "ones"}, nothing)),
              "node 'n' (Reshape): wanted at most one -1 in the new shape, found [-1, -1]", 3);
  CHECK_FAILS(failure_of(one_node("Slice", {"x", "begin", "end", "axis", "none"}, nothing)),
              "node 'n' (Slice): wanted a step other than 0, found 0", 3);
  CHECK_FAILS(failure_of(one_node("Slice", {"x", "begin", "end", "axis", "lowest"}, nothing)),
              "node 'n' (Slice): wanted a step other than 0, found -9223372036854775808", 3);
  CHECK_FAILS(failure_of(one_node("Softmax", {"x"}, [](NodeProto& n) { set_int(n, "axis", 4); })),
              "node 'n' (Softmax): wanted an axis from -4 to 3, found axis 4", 3);
  CHECK_FAILS(failure_of(one_node("Split", {"x", "large"}, nothing)),
              "node 'n' (Split): wanted 1 sizes, one per output, found 2", 3);
}

TEST_CASE("Groups of a ConvTranspose divide its channels, whatever a symbol is") {
  Writer w;
  w.input("x", {1, "C", 5, 5}).input("weights", {"C", 2, 3, 3}).output("y");
  set_int(w.node("ConvTranspose", {"x", "weights"}, {"y"}, "n"), "group", 4);
  CHECK_FAILS(failure_of(w),
              "node 'n' (ConvTranspose): wanted a number of features that 4 groups are known to divide, found f32[C, 2, 3, 3]; "
              "give the sizes: --dim C=..",
              4);
}

TEST_CASE("case 48: shapes that do not broadcast") {
  Writer w;
  w.input("x", {2, 3}).input("y", {4, 3}).output("z");
  w.node("Add", {"x", "y"}, {"z"}, "sum");
  CHECK_FAILS(failure_of(w), "node 'sum' (Add): wanted shapes that broadcast, found [2, 3] and [4, 3] (2 against 4)", 3);
}

TEST_CASE("A zero point is of the type of its numbers") {
  const auto refusal = [](const std::string& op, const std::vector<std::string>& inputs) {
    Writer w;
    w.input("x", {1, 1, 4, 4}, TensorProto::UINT8)
        .input("w", {1, 1, 4, 4}, TensorProto::INT8)
        .input("u", {}, TensorProto::UINT8);
    w.floats("scale", {}, {1}).ints("far", {}, {INT64_MAX}).output("y");
    w.node(op, inputs, {"y"}, "n");
    return failure_of(w);
  };
  const std::string wanted = "a zero point of type u8, as its numbers are, found i64[]";
  CHECK_FAILS(refusal("ConvInteger", {"x", "w", "far"}), "node 'n' (ConvInteger): wanted " + wanted, 3);
  CHECK_FAILS(refusal("MatMulInteger", {"x", "w", "far"}), "node 'n' (MatMulInteger): wanted " + wanted, 3);
  CHECK_FAILS(refusal("QLinearConv", {"x", "scale", "u", "w", "scale", "far", "scale", "u"}),
              "node 'n' (QLinearConv): wanted a zero point of type i8, as its numbers are, found i64[]", 3);
  CHECK_FAILS(refusal("DequantizeLinear", {"x", "scale", "far"}), "node 'n' (DequantizeLinear): wanted " + wanted, 3);
}

TEST_CASE("Frequencies and places far outside of what integers hold are ends, and what no kernel covers is refused") {
  Writer w(17);
  w.ints("count", {}, {4}).ints("length", {}, {16}).ints("rate", {}, {8000}).output("y");
  w.floats("low", {}, {0}).floats("high", {}, {3e38F});
  w.node("MelWeightMatrix", {"count", "length", "rate", "low", "high"}, {"y"}, "n");
  CHECK(w.refusal() == "");
  const auto crop = [](const std::vector<float>& roi, float scale, bool antialias) {
    Writer r(18);
    r.input("x", {1, 1, 4, 4}).output("y").floats("roi", {2}, roi).floats("scales", {1}, {scale});
    NodeProto& n = r.node("Resize", {"x", "roi", "scales"}, {"y"}, "n");
    set_text(n, "mode", "linear");
    set_text(n, "coordinate_transformation_mode", "tf_crop_and_resize");
    set_list(n, "axes", {3});
    set_int(n, "antialias", antialias);
    return r;
  };
  CHECK(crop({1e37F, 2e37F}, 4e-37F, false).refusal() == "");
  CHECK_FAILS(failure_of(crop({0, INFINITY}, 1, false)), "node 'n' (Resize): wanted finite numbers as roi, found inf", 3);
  CHECK_FAILS(failure_of(crop({0, 1e9F}, 1e-9F, true)),
              "node 'n' (Resize): wanted at most 4194304 weights along an axis, found 3 sums of 2000000058 elements", 4);
}

}  // namespace
}  // namespace oclc
