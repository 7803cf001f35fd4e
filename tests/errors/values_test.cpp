// Values, sizes and amounts at their limits, by numbered cases: results on the device, or the error's text.
#include <cmath>
#include <limits>

#include "compiler/ops/reference/evaluate.h"
#include "tests/errors/import_error.h"
#include "tests/support/run_plan.h"

namespace oclc {
namespace {

using namespace oclc::test;  // NOLINT: this file is about models

HostTensor floats(std::vector<std::int64_t> shape, const std::vector<double>& values, DType dtype = DType::f32) {
  HostTensor t(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return t;
}

HostTensor ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values, DType dtype = DType::i64) {
  HostTensor t(dtype, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<std::int64_t>(i), values[i]);
  return t;
}

std::vector<double> list(const HostTensor& t) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < t.elements(); ++i) values.push_back(t.at(i));
  return values;
}

std::vector<HostTensor> on_device(const Writer& w, const std::vector<HostTensor>& inputs) {
  return PlanRunner(std::shared_ptr<Module>(w.import()), default_options()).run(inputs);
}

// The reference's results, which must be those of the device.
std::vector<HostTensor> both(const Writer& w, const std::vector<HostTensor>& inputs) {
  const auto module = w.import();
  std::vector<HostTensor> wanted = evaluate(*module->entries[0], inputs);
  const auto found = on_device(w, inputs);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    REQUIRE(found[i].type() == wanted[i].type());
    for (std::int64_t k = 0; k < wanted[i].elements(); ++k) {
      CAPTURE(k);
      const double a = found[i].at(k), b = wanted[i].at(k);
      CHECK_MESSAGE((a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-6 * std::fabs(b)), a << " and " << b);
    }
  }
  return wanted;
}

// y = x doubled so many times.
Writer doubling(std::int64_t trips) {
  Writer w;
  w.input("x", {2}).output("y");
  w.ints("trips", {}, {trips});
  auto& node = w.node("Loop", {"trips", "", "x"}, {"y"}, "again");
  auto& body = *attribute(node, "body", AttributeProto::GRAPH).mutable_g();
  body.set_name("body");
  set_type(*body.add_input(), "i", {}, TensorProto::INT64);
  set_type(*body.add_input(), "go", {}, TensorProto::BOOL);
  set_type(*body.add_input(), "a", {2});
  Writer::fill(*body.add_node(), "Identity", {"go"}, {"go_on"});
  Writer::fill(*body.add_node(), "Add", {"a", "a"}, {"b"});
  set_type(*body.add_output(), "go_on", {}, TensorProto::BOOL);
  set_type(*body.add_output(), "b", {2});
  return w;
}

TEST_CASE("case 31: loops without trips, and with as many as there can be") {
  CHECK(list(both(doubling(0), {floats({2}, {3, 5})})[0]) == std::vector<double>{3, 5});
  CHECK(list(both(doubling(3), {floats({2}, {3, 5})})[0]) == std::vector<double>{24, 40});
  const std::shared_ptr<Module> endless = doubling(INT64_MAX).import();
  CHECK_THROWS_WITH_AS(compile(endless, default_options()), doctest::Contains("wanted sizes below 2^63"), CompileError);

  Writer scan(11);
  scan.input("s", {2}).input("x", {0, 2}).output("last").output("all");
  auto& node = scan.node("Scan", {"s", "x"}, {"last", "all"}, "sums");
  set_int(node, "num_scan_inputs", 1);
  auto& body = *attribute(node, "body", AttributeProto::GRAPH).mutable_g();
  body.set_name("body");
  set_type(*body.add_input(), "a", {2});
  set_type(*body.add_input(), "row", {2});
  Writer::fill(*body.add_node(), "Add", {"a", "row"}, {"b"});
  Writer::fill(*body.add_node(), "Identity", {"b"}, {"c"});
  set_type(*body.add_output(), "b", {2});
  set_type(*body.add_output(), "c", {2});
  const auto found = both(scan, {floats({2}, {3, 5}), HostTensor(DType::f32, {0, 2})});
  CHECK(list(found[0]) == std::vector<double>{3, 5});
  CHECK(found[1].shape() == std::vector<std::int64_t>{0, 2});
}

TEST_CASE("case 34: a hundred operands, a hundred users") {
  constexpr int kMany = 100;
  Writer w;
  w.input("x", {3}).output("y").output("z");
  std::vector<std::string> parts;
  for (int i = 0; i < kMany; ++i) {
    parts.push_back("p" + std::to_string(i));
    w.floats("c" + std::to_string(i), {1}, {static_cast<float>(i)});
    w.node("Mul", {"x", "c" + std::to_string(i)}, {parts.back()});
  }
  set_int(w.node("Concat", parts, {"y"}, "join"), "axis", 0);
  w.node("Sum", parts, {"z"}, "sum");
  const auto found = both(w, {floats({3}, {1, 2, -1})});
  CHECK(found[0].shape() == std::vector<std::int64_t>{3 * kMany});
  CHECK(found[1].at(1) == 2.0 * kMany * (kMany - 1) / 2);
}

TEST_CASE("case 37: no elements, however large the other dimensions") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 39, kLarge = std::int64_t{1} << 24;
  Writer w;
  w.input("x", {0, kLarge, kLarge - 1}).output("y").output("n");
  set_list(w.node("Transpose", {"x"}, {"t"}), "perm", {2, 0, 1});
  w.node("Relu", {"t"}, {"y"});
  w.node("Size", {"x"}, {"n"});
  const auto found = both(w, {HostTensor(DType::f32, {0, kLarge, kLarge - 1})});
  CHECK(found[0].shape() == std::vector<std::int64_t>{kLarge - 1, 0, kLarge});
  CHECK(found[1].int_at(0) == 0);
  Writer over;
  over.input("x", {0, kHuge, kHuge}).output("y");
  over.node("Relu", {"x"}, {"y"});
  CHECK_FAILS(failure_of(over), "wanted input 'x' of at most 281474976710656 elements, found [0, 549755813888, 549755813888]",
              3);
}

TEST_CASE("case 39: tensors without elements through the operators") {
  const HostTensor none(DType::f32, {0, 3});
  const auto one = [&](
                       const std::string& op, const std::function<void(NodeProto&)>& more = [](NodeProto&) {}) {
    Writer w;
    w.input("x", {0, 3}).output("y");
    more(w.node(op, {"x"}, {"y"}, "n"));
    return both(w, {none})[0];
  };
  const auto over_rows = [](NodeProto& n) {
    set_list(n, "axes", {0});
    set_int(n, "keepdims", 0);
  };
  CHECK(one("Relu").shape() == std::vector<std::int64_t>{0, 3});
  CHECK(one("Softmax").shape() == std::vector<std::int64_t>{0, 3});
  CHECK(list(one("ReduceSumSquare", over_rows)) == std::vector<double>{0, 0, 0});
  CHECK(list(one("ReduceProd", over_rows)) == std::vector<double>{1, 1, 1});
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK(list(one("ReduceMax", over_rows)) == std::vector<double>{-kInf, -kInf, -kInf});
  CHECK(list(one("ReduceMin", over_rows)) == std::vector<double>{kInf, kInf, kInf});
  Writer product;
  product.input("a", {2, 0}).input("b", {0, 3}).output("y");
  product.node("MatMul", {"a", "b"}, {"y"});
  CHECK(list(both(product, {HostTensor(DType::f32, {2, 0}), none})[0]) == std::vector<double>(6, 0));
  Writer conv;
  conv.input("x", {0, 2, 5, 5}).input("w", {4, 2, 3, 3}).output("y");
  conv.node("Conv", {"x", "w"}, {"y"});
  CHECK(both(conv, {HostTensor(DType::f32, {0, 2, 5, 5}), HostTensor(DType::f32, {4, 2, 3, 3})})[0].shape() ==
        std::vector<std::int64_t>{0, 4, 3, 3});
  Writer join;
  join.input("x", {0, 3}).input("z", {2, 3}).output("y");
  set_int(join.node("Concat", {"x", "z"}, {"y"}), "axis", 0);
  CHECK(list(both(join, {none, floats({2, 3}, {1, 2, 3, 4, 5, 6})})[0]) == std::vector<double>{1, 2, 3, 4, 5, 6});
  Writer gather;
  gather.input("x", {2, 3}).input("at", {0}, TensorProto::INT64).output("y");
  gather.node("Gather", {"x", "at"}, {"y"});
  CHECK(both(gather, {HostTensor(DType::f32, {2, 3}), HostTensor(DType::i64, {0})})[0].shape() ==
        std::vector<std::int64_t>{0, 3});
}

TEST_CASE("case 43: positions outside of a tensor are never read") {
  Writer known;
  known.input("x", {3}).output("y");
  known.ints("at", {2}, {1, 3});
  known.node("Gather", {"x", "at"}, {"y"}, "n");
  CHECK_FAILS(failure_of(known), "node 'n' (Gather): wanted positions from -3 to 2, found 3", 3);
  // Tuples of positions: of each place in the tuple its own axis.
  const auto tuples = [](const char* op, const std::vector<std::int64_t>& at) {
    Writer m;
    m.input("x", {3, 5}).input("u", {2}).output("y");
    m.ints("at", {2, 2}, at);
    if (op == std::string("GatherND"))
      m.node(op, {"x", "at"}, {"y"}, "n");
    else
      m.node(op, {"x", "at", "u"}, {"y"}, "n");
    return m;
  };
  for (const std::string op : {"GatherND", "ScatterND"}) {
    CHECK_FAILS(failure_of(tuples(op.c_str(), {2, 4, 3, 0})), "node 'n' (" + op + "): wanted positions from -3 to 2, found 3",
                3);
    CHECK_FAILS(failure_of(tuples(op.c_str(), {2, 4, 0, -6})), "node 'n' (" + op + "): wanted positions from -5 to 4, found -6",
                3);
    CHECK_NOTHROW(tuples(op.c_str(), {2, 4, -3, -5}).import());
  }
  Writer scattered;
  scattered.input("x", {3, 2}).input("u", {1, 2}).output("y");
  scattered.ints("at", {1, 2}, {2, -4});
  scattered.node("ScatterElements", {"x", "at", "u"}, {"y"}, "n");
  CHECK_FAILS(failure_of(scattered), "node 'n' (ScatterElements): wanted positions from -3 to 2, found -4", 3);
  Writer w;
  w.input("x", {3}).input("at", {5}, TensorProto::INT64).output("y").output("z");
  w.node("Gather", {"x", "at"}, {"y"}, "n");
  w.node("GatherElements", {"x", "at"}, {"z"}, "m");
  const HostTensor at = ints({5}, {-4, -3, 3, INT64_MAX, INT64_MIN});
  CHECK_THROWS_AS(evaluate(*w.import()->entries[0], std::vector{floats({3}, {5, 6, 7}), at}), CompileError);
  for (const HostTensor& y : on_device(w, {floats({3}, {5, 6, 7}), at})) CHECK(list(y) == std::vector<double>{5, 5, 7, 7, 5});
}

TEST_CASE("case 44: division by zero, of the lowest number and shifts by the width") {
  Writer w(18);
  w.input("a", {5}, TensorProto::INT32).input("b", {5}, TensorProto::INT32).output("q").output("m").output("r");
  w.node("Div", {"a", "b"}, {"q"});
  w.node("Mod", {"a", "b"}, {"m"});
  set_int(w.node("Mod", {"a", "b"}, {"r"}), "fmod", 1);
  const auto found = both(w, {ints({5}, {7, INT32_MIN, -7, 0, -7}, DType::i32), ints({5}, {0, -1, 2, 0, 0}, DType::i32)});
  CHECK(list(found[0]) == std::vector<double>{0, static_cast<double>(INT32_MIN), -3, 0, 0});
  CHECK(list(found[1]) == std::vector<double>{0, 0, 1, 0, 0});
  CHECK(list(found[2]) == std::vector<double>{0, 0, -1, 0, 0});
  Writer shift;
  shift.input("a", {3}, TensorProto::UINT32).input("b", {3}, TensorProto::UINT32).output("l").output("r");
  set_text(shift.node("BitShift", {"a", "b"}, {"l"}), "direction", "LEFT");
  set_text(shift.node("BitShift", {"a", "b"}, {"r"}), "direction", "RIGHT");
  const auto shifted = both(shift, {ints({3}, {5, 5, 5}, DType::u32), ints({3}, {31, 32, 77}, DType::u32)});
  CHECK(list(shifted[0]) == std::vector<double>{2147483648.0, 0, 0});
  CHECK(list(shifted[1]) == std::vector<double>{0, 0, 0});
}

TEST_CASE("case 45: NaN and infinities go through") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity(), tiny = 1e-40;
  Writer w;
  w.input("x", {4}).output("relu").output("clip").output("max").output("softmax").output("best").output("sum").output("same");
  w.floats("low", {}, {-1}).floats("high", {}, {1});
  w.node("Relu", {"x"}, {"relu"});
  w.node("Clip", {"x", "low", "high"}, {"clip"});
  w.node("Max", {"x", "low"}, {"max"});
  w.node("Softmax", {"x"}, {"softmax"});
  set_int(w.node("ArgMax", {"x"}, {"best"}), "axis", 0);
  w.node("ReduceSum", {"x"}, {"sum"});
  w.node("Identity", {"x"}, {"same"});
  const auto found = both(w, {floats({4}, {nan, inf, -inf, tiny})});
  const auto is = [](const HostTensor& y, const std::vector<double>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double a = y.at(static_cast<std::int64_t>(i));
      CHECK((a == wanted[i] || (std::isnan(a) && std::isnan(wanted[i]))));
    }
  };
  is(found[0], {nan, inf, 0});
  is(found[1], {nan, 1, -1});
  is(found[2], {nan, inf, -1});
  is(found[3], {nan, nan, nan, nan});
  is(found[5], {nan});
  is(both(w, {floats({4}, {1, inf, -inf, 0})})[4], {1});
  const HostTensor shares = both(w, {floats({4}, {0, 1, -inf, 0})})[3];
  CHECK(shares.at(0) == doctest::Approx(1 / (2 + std::exp(1.0))));
  CHECK(shares.at(2) == 0);
}

TEST_CASE("case 46: narrow numbers") {
  Writer half;
  half.input("x", {3}, TensorProto::FLOAT16).output("y");
  half.node("Mul", {"x", "x"}, {"y"});
  CHECK(list(both(half, {floats({3}, {1000, -3, 0.5}, DType::f16)})[0]) ==
        std::vector<double>{std::numeric_limits<double>::infinity(), 9, 0.25});
  Writer flags;
  flags.input("x", {3}).output("y");
  auto& t = *flags.graph().add_initializer();
  t.set_name("flags");
  t.set_data_type(TensorProto::BOOL);
  t.add_dims(3);
  t.set_raw_data(std::string("\x02\x00\xff", 3));
  flags.floats("zero", {}, {0});
  flags.node("Where", {"flags", "x", "zero"}, {"y"});
  CHECK(list(both(flags, {floats({3}, {1, 2, 3})})[0]) == std::vector<double>{1, 0, 3});
  constexpr int kComplex = 14, kSixBits = 27;
  for (const auto& [type, name] : {std::pair(kComplex, "COMPLEX64"), std::pair(kSixBits, "FLOAT6E2M3")}) {
    Writer w(21);
    w.input("x", {2}, type).output("y");
    set_int(w.node("Cast", {"x"}, {"y"}, "n"), "to", TensorProto::FLOAT);
    CHECK_FAILS(
        failure_of(w),
        std::string("wanted input 'x' of a supported element type, found ") + name + "; convert it to a number type first", 4);
  }
}

TEST_CASE("case 47: positions beyond 2^31 are counted in 64 bits") {
  const auto source = [](std::int64_t rows) {
    Writer w;
    w.input("x", {rows, 70000}).output("y");
    w.node("Relu", {"x"}, {"y"});
    const Compiled compiled = compile(std::shared_ptr<Module>(w.import()), default_options());
    std::string all;
    for (const auto& file : compiled.plan.files) all += file.source;
    return all;
  };
  CHECK(source(7).find("int i0_i1 = ") != std::string::npos);
  CHECK(source(70000).find("long i0_i1 = ") != std::string::npos);
}

TEST_CASE("case 49: values of a terabyte are not computed when compiling") {
  for (const char* op : {"ConstantOfShape", "Expand", "Tile"}) {
    Writer w;
    w.input("x", {1}).output("y");
    w.ints("shape", {2}, {1000000, 1000000}).ints("many", {1}, {1000000000000}).floats("one", {1}, {1});
    if (op == std::string("ConstantOfShape")) w.node(op, {"shape"}, {"big"});
    if (op == std::string("Expand")) w.node(op, {"one", "shape"}, {"big"});
    if (op == std::string("Tile")) w.node(op, {"one", "many"}, {"big"});
    w.ints("first", {1}, {0}).ints("second", {1}, {1}).ints("axis", {1}, {0});
    w.node("Slice", {"big", "first", "second", "axis"}, {"row"});
    w.ints("none", {1}, {0}).ints("last", {1}, {-1}).ints("end", {1}, {1});
    w.node("Slice", {"row", "none", "end", "last"}, {"corner"});
    w.node("ReduceSum", {"corner"}, {"sum"});
    w.node("Add", {"x", "sum"}, {"y"});
    CHECK(list(on_device(w, {floats({1}, {1})})[0]) == std::vector<double>{op == std::string("ConstantOfShape") ? 1.0 : 2.0});
  }
  Writer range;
  range.input("x", {1}).output("y");
  range.floats("start", {}, {0}).floats("limit", {}, {1e12F}).floats("step", {}, {1});
  range.node("Range", {"start", "limit", "step"}, {"r"}, "n");
  set_int(range.node("ReduceMax", {"r"}, {"m"}), "keepdims", 1);
  range.node("Add", {"x", "m"}, {"y"});
  CHECK_FAILS(failure_of(range), "node 'n' (Range): wanted at most 16777216 numbers, found 0 to 999999995904 in steps of 1", 3);
}

TEST_CASE("case 50: the same seed gives the same numbers") {
  const auto draw = [](float seed) {
    Writer w;
    w.output("y");
    auto& node = w.node("RandomUniform", {}, {"y"}, "r");
    set_list(node, "shape", {1000});
    set_float(node, "seed", seed);
    return both(w, {})[0];
  };
  const auto a = draw(3), b = draw(3), c = draw(4);
  CHECK(list(a) == list(b));
  CHECK(list(a) != list(c));
  for (const double x : list(a)) CHECK((x >= 0 && x < 1));
}

}  // namespace
}  // namespace oclc
