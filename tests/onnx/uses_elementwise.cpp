// Elementwise operators: those of bits (18), Mish, Gelu, questions about infinities, and all to which opset 22 gave bfloat16.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

using Function = double (*)(double);
using Attributes = std::function<void(NodeProto&)>;

// Of f32, of a type of 16 bits, and of an awkward shape.
void function(Sheet& s, const char* op, const std::function<double(double)>& f, double low, double high,
              const Attributes& attributes = {}, DType narrow = DType::bf16) {
  const auto from = [&](DType dtype, Dims shape, int seed) {
    HostTensor x = noise(dtype, std::move(shape), seed);
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, low + (x.at(i) + 1) / 2 * (high - low));
    return x;
  };
  for (const HostTensor& x : {from(DType::f32, {2, 3, 4}, 1), from(narrow, {6}, 2), from(DType::f32, {7, 1, 3, 1, 1}, 3)}) {
    NodeProto& node = s.use(op, {s.input(x)}, x.shape().size() == 5);
    if (attributes) attributes(node);
    s.gives(x.dtype(), x.shape(), [x, f](std::int64_t i) { return f(x.at(i)); });
  }
}

void bits(Sheet& s) {
  struct Case {
    DType dtype;
    Dims a, b, y;
  };
  const Case cases[] = {
      {DType::i32, {2, 3}, {3}, {2, 3}}, {DType::i64, {}, {4}, {4}}, {DType::u8, {3, 1, 7}, {2, 1}, {3, 2, 7}}};
  for (const Case& c : cases) {
    const HostTensor a = listed(c.dtype, c.a, {5, 0, 127, 3, 96, 1, 64, 77}), b = listed(c.dtype, c.b, {9, 85, 6});
    const auto element = [y = c.y](const HostTensor& t, std::int64_t i) {
      Dims index = unflat(i, y);
      index.erase(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(index.size() - t.shape().size()));
      for (std::size_t k = 0; k < index.size(); ++k) index[k] = t.shape()[k] == 1 ? 0 : index[k];
      return t.int_at(flat(index, t.shape()));
    };
    const bool awkward = c.dtype == DType::u8;
    s.use("BitwiseAnd", {s.input(a), s.input(b)}, awkward);
    s.gives(c.dtype, c.y, [=](std::int64_t i) { return static_cast<double>(element(a, i) & element(b, i)); });
    s.use("BitwiseOr", {s.input(a), s.input(b)}, awkward);
    s.gives(c.dtype, c.y, [=](std::int64_t i) { return static_cast<double>(element(a, i) | element(b, i)); });
    s.use("BitwiseXor", {s.input(a), s.input(b)}, awkward);
    s.gives(c.dtype, c.y, [=](std::int64_t i) { return static_cast<double>(element(a, i) ^ element(b, i)); });
    s.use("BitwiseNot", {s.input(a)}, awkward);
    s.gives(c.dtype, c.a, [=](std::int64_t i) { return static_cast<double>(awkward ? 255 - a.int_at(i) : -1 - a.int_at(i)); });
  }
}

void questions(Sheet& s) {
  const double inf = INFINITY, nan = std::nan("");
  const HostTensor x = listed(DType::f16, {5}, {inf, -inf, nan, 0, 70000}),
                   wide = listed(DType::bf16, {2, 3}, {1, nan, -inf, 3e38, inf, -0.0}),
                   small = listed(DType::f32, {1, 1, 3, 1}, {nan, -inf, 1e-40});
  struct Row {
    const HostTensor* x;
    std::vector<double> infinite, positive, nan;
  };
  for (const Row& row :
       {Row{&x, {1, 1, 0, 0, 1}, {1, 0, 0, 0, 1}, {0, 0, 1, 0, 0}},
        Row{&wide, {0, 0, 1, 0, 1, 0}, {0, 0, 0, 0, 1, 0}, {0, 1, 0, 0, 0, 0}}, Row{&small, {0, 1, 0}, {0, 0, 0}, {1, 0, 0}}}) {
    const bool awkward = row.x == &small;
    s.use("IsInf", {s.input(*row.x)}, awkward);
    s.gives(DType::boolean, row.x->shape(), of(row.infinite));
    set_int(s.use("IsInf", {s.input(*row.x)}, awkward), "detect_negative", 0);
    s.gives(DType::boolean, row.x->shape(), of(row.positive));
    s.use("IsNaN", {s.input(*row.x)}, awkward);
    s.gives(DType::boolean, row.x->shape(), of(row.nan));
  }
}

double mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

void of_opset_22(Sheet& s) {
  struct Row {
    const char* op;
    Function f;
    double low, high;
  };
  const Row rows[] = {{"Acos", [](double x) { return std::acos(x); }, -0.9, 0.9},
                      {"Acosh", [](double x) { return std::acosh(x); }, 1.25, 9},
                      {"Asin", [](double x) { return std::asin(x); }, -0.9, 0.9},
                      {"Asinh", [](double x) { return std::asinh(x); }, -4, 4},
                      {"Atan", [](double x) { return std::atan(x); }, -4, 4},
                      {"Atanh", [](double x) { return std::atanh(x); }, -0.75, 0.75},
                      {"Cos", [](double x) { return std::cos(x); }, -4, 4},
                      {"Cosh", [](double x) { return std::cosh(x); }, -3, 3},
                      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -5, 5},
                      {"Mish", mish, -4, 4},
                      {"Round", [](double x) { return std::nearbyint(x); }, -4, 4},
                      {"Sin", [](double x) { return std::sin(x); }, -4, 4},
                      {"Sinh", [](double x) { return std::sinh(x); }, -3, 3},
                      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, -4, 4},
                      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }, -4, 4},
                      {"Tan", [](double x) { return std::tan(x); }, -1, 1}};
  for (const Row& row : rows) function(s, row.op, row.f, row.low, row.high);
  s.use("Round", {s.input(listed(DType::f32, {1, 6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4999}))}, true);
  s.gives(DType::f32, {1, 6}, of({0, 2, 2, -0.0, -2, 2}));
  const auto alpha = [](float value) { return [value](NodeProto& node) { set_float(node, "alpha", value); }; };
  function(
      s, "Elu", [](double x) { return x < 0 ? 0.5 * (std::exp(x) - 1) : x; }, -4, 4, alpha(0.5F));
  function(
      s, "HardSigmoid", [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, -4, 4, alpha(0.25F));
  function(
      s, "ThresholdedRelu", [](double x) { return x > 0.5 ? x : 0; }, -2, 2, alpha(0.5F));
  function(
      s, "Selu", [](double x) { return 1.5 * (x > 0 ? x : 2 * std::exp(x) - 2); }, -2, 2,
      [](NodeProto& node) {
        set_float(node, "alpha", 2);
        set_float(node, "gamma", 1.5F);
      });

  // Out of training Dropout keeps what it gets.
  for (const HostTensor& x : {noise(DType::f32, {2, 3}, 1), noise(DType::bf16, {5}, 2), noise(DType::f32, {1, 0, 2}, 3)}) {
    s.use("Dropout", {s.input(x), s.known(listed(DType::f32, {}, {0.75}))}, x.elements() == 0, 2);
    s.gives(x.dtype(), x.shape(), [x](std::int64_t i) { return x.at(i); });
    s.gives(
        DType::boolean, x.shape(), [](std::int64_t) { return 1.0; }, 1);
  }
  struct Eye {
    Dims shape;
    std::int64_t k;
  };
  for (const Eye& eye : {Eye{{3, 4}, 0}, Eye{{4, 3}, 1}, Eye{{1, 5}, -2}, Eye{{5, 1}, -3}}) {
    NodeProto& node = s.use("EyeLike", {s.input(HostTensor(DType::f32, eye.shape))}, eye.shape[0] == 1 || eye.shape[1] == 1);
    set_int(node, "k", eye.k);
    set_int(node, "dtype", TensorProto::BFLOAT16);
    s.gives(DType::bf16, eye.shape, [eye](std::int64_t i) { return i % eye.shape[1] - i / eye.shape[1] == eye.k ? 1.0 : 0.0; });
  }
}

}  // namespace

void elementwise_uses(Sheet& s) {
  if (s.opset == 18) {
    bits(s);
    function(s, "Mish", mish, -4, 4, {}, DType::f16);
  }
  if (s.opset == 20) {
    questions(s);
    const auto exact = [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); };
    function(s, "Gelu", exact, -4, 4);
    function(
        s, "Gelu",
        [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }, -4, 4,
        [](NodeProto& node) { set_text(node, "approximate", "tanh"); }, DType::f16);
  }
  if (s.opset == 22) of_opset_22(s);
}

}  // namespace oclc::test
