// Random numbers, whose element types opset 22 extended: ONNX fixes types and distributions. Texts of opset 20.
#include <algorithm>
#include <cmath>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

double mean_of(const HostTensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) sum += x.at(i);
  return sum / static_cast<double>(x.elements());
}

bool all(const HostTensor& x, const std::function<bool(double)>& holds) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    if (!holds(x.at(i))) return false;
  }
  return true;
}

}  // namespace

void random_uses(Sheet& s) {
  if (s.opset != 22) return;
  const auto within = [](double low, double high, double mean, double slack) {
    return [=](const HostTensor& x) {
      return all(x, [=](double v) { return v >= low && v <= high; }) &&
             (x.elements() < 500 || std::fabs(mean_of(x) - mean) < slack);
    };
  };
  const Dims shapes[] = {{40, 50}, {2, 3}, {1, 7, 1}};
  for (const Dims& shape : shapes) {
    const bool awkward = shape.size() == 3;
    const DType dtype = shape.size() == 2 && shape[0] == 2 ? DType::bf16 : DType::f32;
    const int type = dtype == DType::bf16 ? TensorProto::BFLOAT16 : TensorProto::FLOAT;
    for (const bool like : {false, true}) {
      const std::vector<std::string> given = like ? std::vector{s.input(HostTensor(dtype, shape))} : std::vector<std::string>{};
      NodeProto& uniform = s.use(like ? "RandomUniformLike" : "RandomUniform", given, awkward);
      set_float(uniform, "low", 2);
      set_float(uniform, "high", 6);
      if (!like) set_list(uniform, "shape", shape), set_int(uniform, "dtype", type);
      s.gives_if(dtype, shape, within(2, 6, 4, 0.2));
      NodeProto& normal = s.use(like ? "RandomNormalLike" : "RandomNormal", given, awkward);
      set_float(normal, "mean", -3);
      set_float(normal, "scale", 0.5F);
      if (!like) set_list(normal, "shape", shape), set_int(normal, "dtype", type);
      s.gives_if(dtype, shape, within(-7, 1, -3, 0.1));
    }
    set_int(s.use("Bernoulli", {s.input(listed(dtype, shape, {0.25}))}, awkward), "dtype", TensorProto::INT32);
    s.gives_if(DType::i32, shape, [=](const HostTensor& x) {
      return all(x, [](double v) { return v == 0 || v == 1; }) && (x.elements() < 500 || std::fabs(mean_of(x) - 0.25) < 0.06);
    });
    // Logarithms of the shares: class 1 has nearly all of them, or the only one.
    const std::int64_t classes = awkward ? 1 : 3, samples = awkward ? 1 : 5, rows = shape[0];
    NodeProto& drawn = s.use(
        "Multinomial",
        {s.input(listed(dtype, {rows, classes}, classes == 1 ? std::vector<double>{0} : std::vector<double>{-90, 0, -90}))},
        awkward);
    set_int(drawn, "sample_size", samples);
    s.gives_if(DType::i32, {rows, samples},
               [=](const HostTensor& x) { return all(x, [=](double v) { return v == (classes == 1 ? 0 : 1); }); });
  }
}

void text_uses(Sheet& s) {
  if (s.opset != 20) return;
  const HostTensor words = texts({2, 2}, {"ab1", "", "b22b", "AB"});
  const auto pattern = [](const char* text) { return [text](NodeProto& node) { set_text(node, "pattern", text); }; };
  const auto matches = [&](const HostTensor& x, const char* text, const std::vector<double>& wanted, bool awkward) {
    pattern(text)(s.use("RegexFullMatch", {s.input(x)}, awkward));
    s.gives(DType::boolean, x.shape(), of(wanted));
  };
  matches(words, "[a-z]+[0-9]", {1, 0, 0, 0}, false);
  matches(words, "(ab|b)?.*[Bb]", {0, 0, 1, 1}, false);
  matches(texts({1, 1, 1}, {"a\xc3\xa9"}), "a.", {1}, true);
  s.use("StringConcat", {s.input(words), s.input(texts({2}, {"-", "xy"}))});
  s.gives_texts({2, 2}, {"ab1-", "xy", "b22b-", "ABxy"});
  s.use("StringConcat", {s.input(texts({}, {"a"})), s.input(texts({}, {"\xc3\xa9"}))});
  s.gives_texts({}, {"a\xc3\xa9"});
  s.use("StringConcat", {s.input(texts({3, 1}, {"a", "", "c"})), s.input(texts({1, 2}, {"1", "2"}))}, true);
  s.gives_texts({3, 2}, {"a1", "a2", "1", "2", "c1", "c2"});
  set_text(s.use("StringSplit", {s.input(texts({2}, {"a,b,,c", "d"}))}, false, 2), "delimiter", ",");
  s.gives_texts({2, 4}, {"a", "b", "", "c", "d", "", "", ""});
  s.gives(DType::i64, {2}, of({4, 1}), 1);
  s.use("StringSplit", {s.input(texts({2}, {"  hello  world ", "one"}))}, false, 2);
  s.gives_texts({2, 2}, {"hello", "world", "one", ""});
  s.gives(DType::i64, {2}, of({2, 1}), 1);
  NodeProto& cut = s.use("StringSplit", {s.input(texts({1, 1}, {"a--b--c"}))}, true, 2);
  set_text(cut, "delimiter", "--");
  set_int(cut, "maxsplit", 1);
  s.gives_texts({1, 1, 2}, {"a", "b--c"});
  s.gives(DType::i64, {1, 1}, of({2}), 1);
}

}  // namespace oclc::test
