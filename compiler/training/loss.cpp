#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/error.h"
#include "compiler/training/training.h"

namespace oclc {
namespace {

Value* mean_of(Builder& b, Value* x) {
  Ints axes;
  for (std::size_t i = 0; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes.empty() ? x : b.reduce("reduce_mean", x, axes, false);
}

Value* sum_of(Builder& b, Value* x) {
  Ints axes;
  for (std::size_t i = 0; i < x->type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes.empty() ? x : b.reduce("reduce_sum", x, axes, false);
}

// Mean over the labels that count of -(log-probability of the label), from log-probabilities [..., classes]. With label
// smoothing s the label's weight is 1 - s and s is spread evenly over all classes.
Value* negative_log_likelihood(Builder& b, Value* log_probability, Value* labels, const NamedNumbers& options) {
  const DType dtype = log_probability->type.dtype;
  const auto axis = static_cast<std::int64_t>(log_probability->type.rank()) - 1;
  const double smoothing = options.get("label_smoothing", 0);
  Shape column = labels->type.shape;
  column.emplace_back(1);
  Value* index = b.reshape(labels, column);
  Value* counts = nullptr;
  if (options.numbers.count("ignore_index")) {
    Value* ignored = b.call("equal", {index, b.scalar(index->type.dtype, options.get("ignore_index", -100))});
    counts = b.unary("not", ignored);
    index = b.where(counts, index, b.scalar(index->type.dtype, 0));
  }
  Value* loss = b.unary("neg", b.gather_elements(log_probability, index, axis));
  if (smoothing != 0) {
    Value* spread = b.unary("neg", b.reduce("reduce_mean", log_probability, {axis}, true));
    loss = b.add(b.mul(loss, 1 - smoothing), b.mul(spread, smoothing));
  }
  if (!counts) return mean_of(b, loss);
  Value* weight = b.cast(counts, dtype);
  // Without a label that counts the loss is 0, not 0 / 0.
  return b.div(sum_of(b, b.mul(loss, weight)), b.max(sum_of(b, weight), b.scalar(dtype, 1)));
}

Value* cross_entropy(Builder& b, Value* prediction, Value* target, const NamedNumbers& options) {
  return negative_log_likelihood(b, b.log_softmax(prediction), target, options);
}

Value* squared_error(Builder& b, Value* prediction, Value* target, const NamedNumbers&) {
  Value* difference = b.sub(prediction, target);
  return mean_of(b, b.mul(difference, difference));
}

Value* absolute_error(Builder& b, Value* prediction, Value* target, const NamedNumbers&) {
  return mean_of(b, b.unary("abs", b.sub(prediction, target)));
}

// d^2 / 2 up to |d| = delta, linear beyond.
Value* huber(Builder& b, Value* prediction, Value* target, const NamedNumbers& options) {
  Value* size = b.unary("abs", b.sub(prediction, target));
  Value* delta = b.scalar(size->type.dtype, options.get("delta", 1));
  Value* inner = b.min(size, delta);
  return mean_of(b, b.mul(inner, b.sub(size, b.mul(inner, 0.5))));
}

// max(x, 0) - x * target + log(1 + e^-|x|): no overflow for any x.
Value* binary_cross_entropy(Builder& b, Value* prediction, Value* target, const NamedNumbers&) {
  return mean_of(b, b.sub(b.unary("softplus", prediction), b.mul(prediction, target)));
}

// The model computes its loss itself.
Value* own_output(Builder&, Value* prediction, Value*, const NamedNumbers&) {
  if (prediction->type.rank() == 0 && is_float(prediction->type.dtype)) return prediction;
  throw CompileError({.stage = "training",
                      .wanted = "an output that is one floating-point number, the loss",
                      .found = prediction->type.text(),
                      .advice = "name the output by --train-output, or take another loss"});
}

}  // namespace

const std::vector<LossRow>& losses() {
  static const std::vector<LossRow> kRows = {
      {"cross_entropy", {"label_smoothing", "ignore_index"}, true, cross_entropy},
      {"nll", {"label_smoothing", "ignore_index"}, true, negative_log_likelihood},
      {"mse", {}, false, squared_error},
      {"l1", {}, false, absolute_error},
      {"huber", {"delta"}, false, huber},
      {"bce_with_logits", {}, false, binary_cross_entropy},
      {"output", {}, false, own_output, false},
  };
  return kRows;
}

double NamedNumbers::get(std::string_view key, double otherwise) const {
  const auto at = numbers.find(key);
  return at == numbers.end() ? otherwise : at->second;
}

namespace {

template <class Row>
NamedNumbers parse(std::string_view option, std::string_view text, const std::vector<Row>& rows) {
  const auto refuse = [&](std::string wanted, std::string_view found) {
    throw CompileError({.stage = "training",
                        .wanted = std::move(wanted),
                        .found = fmt::format("{} '{}'", option, found),
                        .exit_code = ExitCode::usage});
  };
  NamedNumbers result;
  const Row* row = nullptr;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    if (!row) {
      std::vector<std::string_view> names;
      for (const Row& r : rows) {
        names.push_back(r.name);
        if (r.name == item) row = &r;
      }
      if (!row) refuse(fmt::format("one of {}", fmt::join(names, ", ")), item);
      result.name = item;
      continue;
    }
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (equals == item.npos || std::find(row->numbers.begin(), row->numbers.end(), key) == row->numbers.end()) {
      refuse(row->numbers.empty() ? fmt::format("nothing behind '{}'", row->name)
                                  : fmt::format("KEY=NUMBER with one of {} for {}", fmt::join(row->numbers, ", "), row->name),
             item);
    }
    const std::string_view value = item.substr(equals + 1);
    double number = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || rest != value.data() + value.size()) refuse(fmt::format("a number for {}", key), item);
    result.numbers[std::string(key)] = number;
  }
  return result;
}

}  // namespace

NamedNumbers parse_loss(std::string_view text) { return parse("--train", text, losses()); }
NamedNumbers parse_optimizer(std::string_view text) { return parse("--optimizer", text, optimizers()); }
NamedNumbers parse_mixed(std::string_view text) { return parse("--mixed", text, mixed_types()); }

}  // namespace oclc
