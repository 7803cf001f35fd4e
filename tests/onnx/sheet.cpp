#include "tests/onnx/sheet.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ops/reference/evaluate.h"
#include "frontends/onnx/model/tensors.h"
#include "tests/support/run_plan.h"

namespace oclc::test {
namespace {

double precision_of(DType dtype) {
  return dtype == DType::f64 ? 1e-9 : dtype == DType::f16 ? 0x1p-8 : dtype == DType::bf16 ? 0x1p-5 : 2e-5;
}

// The largest difference, as a part of the largest number; infinite where one is no number.
double distance(const HostTensor& found, const Wanted& wanted) {
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < found.elements(); ++i) {
    const double a = found.at(i), b = wanted(i);
    if (std::isfinite(b)) largest = std::max(largest, std::fabs(b));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    worst = std::isfinite(a) && std::isfinite(b) ? std::max(worst, std::fabs(a - b)) : INFINITY;
  }
  return worst == 0 ? 0 : largest == 0 ? INFINITY : worst / largest;
}

}  // namespace

HostTensor noise(DType dtype, Dims shape, int seed, double size) {
  HostTensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, size * std::sin(static_cast<double>(i * 7 + seed * 13) * 0.7));
  return t;
}

HostTensor listed(DType dtype, Dims shape, const std::vector<double>& values) {
  HostTensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, values[static_cast<std::size_t>(i) % values.size()]);
  return t;
}

HostTensor texts(Dims shape, const std::vector<std::string>& values) {
  return HostTensor::from_texts(values, std::move(shape));
}

std::int64_t flat(const Dims& index, const Dims& shape) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + index[i];
  return at;
}

Dims unflat(std::int64_t i, const Dims& shape) {
  Dims index(shape.size());
  for (std::size_t k = shape.size(); k-- > 0; i /= shape[k]) index[k] = i % shape[k];
  return index;
}

Wanted of(std::vector<double> values) {
  return [values = std::move(values)](std::int64_t i) { return values.at(static_cast<std::size_t>(i)); };
}

std::string Sheet::input(const HostTensor& value) {
  const std::string name = "x" + std::to_string(names_++);
  writer_.input(name, {value.shape().begin(), value.shape().end()}, onnx::onnx_type(value.dtype()));
  inputs_.push_back(value);
  return name;
}

std::string Sheet::known(const HostTensor& value) {
  const std::string name = "c" + std::to_string(names_++);
  TensorProto& t = *writer_.graph().add_initializer();
  t.set_name(name);
  t.set_data_type(onnx::onnx_type(value.dtype()));
  for (const std::int64_t dim : value.shape()) t.add_dims(dim);
  if (value.dtype() == DType::string) {
    for (std::int64_t i = 0; i < value.elements(); ++i) t.add_string_data(value.text_at(i));
  } else {
    t.set_raw_data(onnx::raw_data(value));
  }
  return name;
}

NodeProto& Sheet::use(const std::string& op, const std::vector<std::string>& inputs, bool awkward, int outputs) {
  outputs_.clear();
  for (int i = 0; i < outputs; ++i) outputs_.push_back("y" + std::to_string(names_++));
  op_ = op;
  ++counts_[op].all;
  counts_[op].awkward += awkward;
  return writer_.node(op, inputs, outputs_, op + std::to_string(names_));
}

std::string Sheet::step(const std::string& op, const std::vector<std::string>& inputs,
                        const std::function<void(NodeProto&)>& attributes) {
  const std::string name = "s" + std::to_string(names_++);
  NodeProto& node = writer_.node(op, inputs, {name});
  if (attributes) attributes(node);
  return name;
}

Sheet::Result& Sheet::result(DType dtype, Dims shape, int which) {
  writer_.output(outputs_.at(static_cast<std::size_t>(which)));
  return results_.emplace_back(Result{op_, dtype, std::move(shape), {}, {}, {}, 0});
}

void Sheet::gives(DType dtype, Dims shape, Wanted wanted, int which, double tolerance) {
  Result& r = result(dtype, std::move(shape), which);
  r.wanted = std::move(wanted);
  r.tolerance = tolerance > 0 ? tolerance : precision_of(dtype);
}

void Sheet::gives_texts(Dims shape, std::vector<std::string> wanted, int which) {
  result(DType::string, std::move(shape), which).texts = std::move(wanted);
}

void Sheet::gives_if(DType dtype, Dims shape, Holds holds, int which) {
  result(dtype, std::move(shape), which).holds = std::move(holds);
}

void Sheet::compare(const Result& r, const HostTensor& found) const {
  CAPTURE(r.op);
  CAPTURE(opset);
  REQUIRE(name_of(found.dtype()) == name_of(r.dtype));
  REQUIRE(found.shape() == r.shape);
  if (r.holds) {
    CHECK(r.holds(found));
  } else if (r.dtype == DType::string) {
    for (std::int64_t i = 0; i < found.elements(); ++i) CHECK(found.text_at(i) == r.texts.at(static_cast<std::size_t>(i)));
  } else {
    const bool real = is_float(r.dtype);
    const double far = distance(found, r.wanted);
    CHECK(far <= (real ? r.tolerance : 0));
  }
}

void Sheet::check() const {
  const auto module = writer_.import();
  REQUIRE(verify(*module->entries[0]) == "");
  const std::vector<HostTensor> wanted = evaluate(*module->entries[0], inputs_);
  REQUIRE(wanted.size() == results_.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) compare(results_[i], wanted[i]);
  PlanRunner runner(writer_.import(), default_options());
  const std::vector<HostTensor> found = runner.run(inputs_);
  for (std::size_t i = 0; i < found.size(); ++i) compare(results_[i], found[i]);
}

}  // namespace oclc::test
