// Operators of ai.onnx.ml: what classical models of features and trees are made of.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "frontends/onnx/ml/ml.h"
#include "frontends/onnx/ml/tree_ensemble.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {

Value* feature_numbers(OpContext& c, const std::vector<double>& values, DType dtype) {
  HostTensor t(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) t.set(static_cast<std::int64_t>(i), values[i]);
  return c.b.constant(std::move(t));
}

Value* rows_of(OpContext& c) {
  Value* x = c.input(0);
  if (x->type.rank() == 1) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  if (x->type.rank() != 2) c.fail("rows of features", x->type.text());
  return x->type.dtype == DType::f64 ? x : c.b.cast(x, DType::f32);
}

Value* transformed(OpContext& c, Value* y, std::string_view how) {
  if (how == "NONE") return y;
  if (how == "LOGISTIC") return c.b.sigmoid(y);
  if (how == "SOFTMAX") return c.b.softmax(y, 1);
  if (how == "SOFTMAX_ZERO") {
    // Numbers that are 0 stay so.
    Value* zero = c.b.scalar(y->type.dtype, 0);
    Value* none = c.b.call("less_equal", {c.b.unary("abs", y), c.b.scalar(y->type.dtype, 1e-7)});
    Value* lowest = c.b.scalar(y->type.dtype, -std::numeric_limits<double>::infinity());
    return c.b.where(none, zero, c.b.softmax(c.b.where(none, lowest, y), 1));
  }
  c.unsupported("post_transform NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO", printable(how));
}

std::string post_transform(OpContext& c) { return c.text("post_transform", "NONE"); }

Value* labels_at(OpContext& c, Value* at, const Ints& whole, const std::vector<std::string>& texts) {
  if (texts.empty()) return c.b.gather(c.b.ints(whole), at, 0);
  const auto count = static_cast<std::int64_t>(texts.size());
  return c.b.gather(c.b.constant(HostTensor::from_texts(texts, {count})), at, 0);
}

Labels labels_of(OpContext& c, std::string_view whole) {
  Labels labels{c.integers(whole, Ints{}), c.texts("classlabels_strings", std::vector<std::string>{})};
  if (labels.whole.empty() == labels.texts.empty()) c.fail("labels of classes as integers or as texts", "none, or both");
  return labels;
}

namespace {

Outputs trees_regressor(OpContext& c) {
  const std::string aggregate = c.text("aggregate_function", "SUM");
  static constexpr std::pair<std::string_view, Aggregate> kWays[] = {
      {"AVERAGE", Aggregate::average}, {"SUM", Aggregate::sum}, {"MIN", Aggregate::min}, {"MAX", Aggregate::max}};
  const auto* way = std::find_if(std::begin(kWays), std::end(kWays), [&](const auto& w) { return w.first == aggregate; });
  if (way == std::end(kWays)) c.fail("aggregate_function AVERAGE, SUM, MIN or MAX", printable(aggregate));
  const TreeEnsemble trees = classic_trees(c, "target", c.integer("n_targets"));
  Value* y = tree_scores(c, trees, c.input(0), way->second);
  const std::vector<double> base = c.reals("base_values", std::vector<double>{});
  if (!base.empty()) y = c.b.add(y, feature_numbers(c, base, y->type.dtype));
  return {c.b.cast(transformed(c, y, post_transform(c)), DType::f32)};
}

Outputs tree_ensemble(OpContext& c) {
  static constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::int64_t way = c.integer("aggregate_function", 1), then = c.integer("post_transform", 0);
  if (way < 0 || way > 3 || then < 0 || then > 4)
    c.fail("aggregate_function 0 to 3 and post_transform 0 to 4", fmt::format("{} and {}", way, then));
  Value* y = tree_scores(c, trees_of_arrays(c), c.input(0), static_cast<Aggregate>(way));
  return {c.b.cast(transformed(c, y, kTransforms[then]), c.input(0)->type.dtype)};
}

// Label and scores of two classes of which one number alone speaks: [N, 1]. The second class is taken above `least`. The first
// one's score is the rest of 1 if `share`, else the negative.
Outputs two_classes(OpContext& c, const Labels& labels, Value* one, double least, bool share) {
  const std::string then = post_transform(c);
  const DType dtype = one->type.dtype;
  Value* yes = c.b.call("greater", {one, c.b.scalar(dtype, least)});
  const Expr rows = one->type.shape[0];
  Value* at = c.b.reshape(c.b.cast(yes, DType::i64), {rows});
  Value* other = c.b.unary("neg", one);
  if (share && then != "LOGISTIC") other = c.b.add(other, 1);
  Value* both = c.b.concat({other, one}, 1);
  return {labels_at(c, at, labels.whole, labels.texts), c.b.cast(transformed(c, both, then), DType::f32)};
}

Outputs by_largest(OpContext& c, const Labels& labels, Value* scores) {
  Value* at = c.b.arg("argmax", scores, 1, false);
  return {labels_at(c, at, labels.whole, labels.texts), c.b.cast(transformed(c, scores, post_transform(c)), DType::f32)};
}

Outputs trees_classifier(OpContext& c) {
  const Labels labels = labels_of(c, "classlabels_int64s");
  TreeEnsemble trees = classic_trees(c, "class", labels.count());
  const Ints ids = c.integers("class_ids");
  const std::vector<double> base = c.reals("base_values", std::vector<double>{});
  Value* scores = tree_scores(c, trees, c.input(0), Aggregate::sum);
  if (labels.count() != 2 || std::set<std::int64_t>(ids.begin(), ids.end()).size() != 1) {
    if (!base.empty()) scores = c.b.add(scores, feature_numbers(c, base, scores->type.dtype));
    return by_largest(c, labels, scores);
  }
  Value* one = c.b.slice_axis(scores, 1, Expr(ids[0]), Expr(1));
  if (!base.empty()) one = c.b.add(one, base.back());
  const bool share = std::none_of(trees.weights.begin(), trees.weights.end(), [](double w) { return w < 0; });
  return two_classes(c, labels, one, share ? 0.5 : 0, share);
}

// x[N, F] W^T + b for coefficients [targets, F].
Value* linear_scores(OpContext& c, std::int64_t targets) {
  Value* x = rows_of(c);
  const std::vector<double> weights = c.reals("coefficients"), bias = c.reals("intercepts", std::vector<double>{});
  const auto count = static_cast<std::int64_t>(weights.size());
  if (targets < 1 || count % targets != 0) c.fail(fmt::format("coefficients of {} targets", targets), std::to_string(count));
  Value* w = c.b.reshape(feature_numbers(c, weights, x->type.dtype), {Expr(targets), Expr(count / targets)});
  Value* y = c.b.matmul(x, w, false, true);
  return bias.empty() ? y : c.b.add(y, feature_numbers(c, bias, x->type.dtype));
}

Outputs linear_regressor(OpContext& c) {
  return {c.b.cast(transformed(c, linear_scores(c, c.integer("targets", 1)), post_transform(c)), DType::f32)};
}

Outputs linear_classifier(OpContext& c) {
  c.ignore({"multi_class"});
  const Labels labels = labels_of(c, "classlabels_ints");
  const auto given = static_cast<std::int64_t>(c.reals("intercepts", std::vector<double>{}).size());
  const std::int64_t targets = given > 0 ? given : labels.count();
  Value* scores = linear_scores(c, targets);
  if (targets == 1 && labels.count() == 2) {
    const bool logistic = post_transform(c) == "LOGISTIC";
    if (!logistic) return two_classes(c, labels, scores, 0, true);
    Value* p = c.b.sigmoid(scores);
    Value* at = c.b.cast(c.b.call("greater", {p, c.b.scalar(p->type.dtype, 0.5)}), DType::i64);
    Value* both = c.b.concat({c.b.add(c.b.unary("neg", p), 1), p}, 1);
    return {labels_at(c, c.b.reshape(at, {p->type.shape[0]}), labels.whole, labels.texts), c.b.cast(both, DType::f32)};
  }
  return by_largest(c, labels, scores);
}

// Numbers of all columns, or one of each.
Value* by_column(OpContext& c, std::string_view name, double otherwise, DType dtype) {
  const std::vector<double> given = c.reals(name, std::vector<double>{otherwise});
  return given.size() == 1 ? c.b.scalar(dtype, given[0]) : feature_numbers(c, given, dtype);
}

Outputs scaler(OpContext& c) {
  Value* x = c.b.cast(c.input(0), DType::f32);
  return {c.b.mul(c.b.sub(x, by_column(c, "offset", 0, DType::f32)), by_column(c, "scale", 1, DType::f32))};
}

Outputs row_normalizer(OpContext& c) {
  const std::string norm = c.text("norm", "MAX");
  Value* x = c.b.cast(c.input(0), DType::f32);
  const Ints axis{static_cast<std::int64_t>(x->type.rank()) - 1};
  Value* size = nullptr;
  if (norm == "MAX") {
    size = c.b.reduce("reduce_max", x, axis, true);
  } else if (norm == "L1") {
    size = c.b.reduce("reduce_sum", c.b.unary("abs", x), axis, true);
  } else if (norm == "L2") {
    size = c.b.sqrt(c.b.reduce("reduce_sum", c.b.mul(x, x), axis, true));
  } else {
    c.fail("norm MAX, L1 or L2", printable(norm));
  }
  Value* zero = c.b.scalar(DType::f32, 0);
  return {c.b.div(x, c.b.where(c.b.call("equal", {size, zero}), c.b.scalar(DType::f32, 1), size))};
}

Outputs imputer(OpContext& c) {
  Value* x = c.input(0);
  const DType dtype = x->type.dtype;
  if (!is_float(dtype)) {
    c.ignore({"imputed_value_floats", "replaced_value_float"});
    const Ints given = c.integers("imputed_value_int64s");
    Value* values = c.b.cast(given.size() == 1 ? c.b.reshape(c.b.ints(given), {}) : c.b.ints(given), dtype);
    Value* replaced = c.b.scalar(dtype, static_cast<double>(c.integer("replaced_value_int64", 0)));
    return {c.b.where(c.b.call("equal", {x, replaced}), values, x)};
  }
  c.ignore({"imputed_value_int64s", "replaced_value_int64"});
  const double replaced = c.real("replaced_value_float", 0.0);
  Value* missing = std::isnan(replaced) ? c.b.unary("is_nan", x) : c.b.call("equal", {x, c.b.scalar(dtype, replaced)});
  return {c.b.where(missing, by_column(c, "imputed_value_floats", 0, dtype), x)};
}

Outputs binarizer(OpContext& c) {
  Value* x = c.input(0);
  return {c.b.cast(c.b.call("greater", {x, c.b.scalar(x->type.dtype, c.real("threshold", 0.0))}), x->type.dtype)};
}

Outputs array_feature_extractor(OpContext& c) {
  Value *x = c.input(0), *at = c.b.reshape(c.input(1), {c.input(1)->type.elements()});
  if (x->type.rank() == 1) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  return {c.b.gather(x, at, static_cast<std::int64_t>(x->type.rank()) - 1)};
}

Outputs feature_vectorizer(OpContext& c) {
  c.ignore({"inputdimensions"});
  std::vector<Value*> parts;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    Value* x = c.b.cast(c.input(i), DType::f32);
    if (x->type.rank() == 1) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
    parts.push_back(x);
  }
  return {c.b.concat(std::move(parts), 1)};
}

// A list as a tensor: the attribute of that name, with the suffix of its type, or "_tensor"; null if there is none.
Value* list_of(OpContext& c, const std::string& name) {
  if (c.has(name + "_tensor")) {
    Value* t = c.b.constant(c.tensor(name + "_tensor"));
    return c.b.reshape(t, {t->type.elements()});
  }
  if (c.has(name + "_int64s")) return c.b.ints(c.integers(name + "_int64s"));
  if (c.has(name + "_floats")) return feature_numbers(c, c.reals(name + "_floats"));
  if (!c.has(name + "_strings")) return nullptr;
  const std::vector<std::string> texts = c.texts(name + "_strings");
  return c.b.constant(HostTensor::from_texts(texts, {static_cast<std::int64_t>(texts.size())}));
}

// What stands for an element that is no key.
Value* default_of(OpContext& c, DType dtype) {
  if (c.has("default_tensor")) return c.b.reshape(c.b.constant(c.tensor("default_tensor")), {Expr(1)});
  if (dtype == DType::string) {
    const std::vector<std::string> text{c.text("default_string", "_Unused")};
    return c.b.constant(HostTensor::from_texts(text, {1}));
  }
  if (is_float(dtype)) return c.b.reshape(c.b.scalar(dtype, c.real("default_float", -0.0)), {Expr(1)});
  return c.b.cast(c.b.ints({c.integer("default_int64", -1)}), dtype);
}

Value* looked_up(OpContext& c, Value* x, Value* keys, Value* values) {
  return looked_up(c, x, keys, values, default_of(c, values->type.dtype));
}

Outputs label_encoder(OpContext& c) {
  c.ignore({"default_string", "default_int64", "default_float"});
  Value *keys = list_of(c, "keys"), *values = list_of(c, "values");
  if (!keys || !values) c.fail("keys and values", "none");
  return {looked_up(c, c.input(0), keys, values)};
}

// Version 1: texts as their places in the list, or places as texts.
Outputs label_encoder_of_classes(OpContext& c) {
  c.ignore({"default_string", "default_int64"});
  const std::vector<std::string> classes = c.texts("classes_strings");
  const auto count = static_cast<std::int64_t>(classes.size());
  Value *texts = c.b.constant(HostTensor::from_texts(classes, {count})), *places = c.b.iota({Expr(count)}, 0, DType::i64);
  const bool text = c.input(0)->type.dtype == DType::string;
  return {looked_up(c, c.input(0), text ? texts : places, text ? places : texts)};
}

Outputs category_mapper(OpContext& c) {
  c.ignore({"default_string", "default_int64"});
  const std::vector<std::string> names = c.texts("cats_strings");
  Value *texts = c.b.constant(HostTensor::from_texts(names, {static_cast<std::int64_t>(names.size())})),
        *whole = c.b.ints(c.integers("cats_int64s"));
  const bool text = c.input(0)->type.dtype == DType::string;
  return {looked_up(c, c.input(0), text ? texts : whole, text ? whole : texts)};
}

Outputs one_hot_encoder(OpContext& c) {
  c.ignore({"zeros"});  // what is no category has zeros; else it is an error of the caller
  Value *x = c.input(0), *keys = list_of(c, "cats");
  if (!keys) c.fail("cats_int64s or cats_strings", "none");
  if (x->type.dtype != DType::string && x->type.dtype != DType::i64) x = c.b.cast(x, DType::i64);
  Shape apart = x->type.shape;
  apart.emplace_back(1);
  return {c.b.cast(c.b.call("equal", {c.b.reshape(x, apart), keys}), DType::f32)};
}

// A map of each row from labels to scores: the scores, in the order of the labels.
Outputs zip_map(OpContext& c) {
  c.ignore({"classlabels_int64s", "classlabels_strings"});
  c.warn("the result is the tensor of scores, in the order of the labels, and no list of maps");
  return {c.input(0)};
}

constexpr OpRow kMlRows[] = {
    {"ai.onnx.ml.ArrayFeatureExtractor", 1, 2, 2, array_feature_extractor},
    {"ai.onnx.ml.Binarizer", 1, 1, 1, binarizer},
    {"ai.onnx.ml.CategoryMapper", 1, 1, 1, category_mapper},
    {"ai.onnx.ml.FeatureVectorizer", 1, 1, kAnyNumber, feature_vectorizer},
    {"ai.onnx.ml.Imputer", 1, 1, 1, imputer},
    {"ai.onnx.ml.LabelEncoder", 1, 1, 1, label_encoder_of_classes},
    {"ai.onnx.ml.LabelEncoder", 2, 1, 1, label_encoder},
    {"ai.onnx.ml.LinearClassifier", 1, 1, 1, linear_classifier},
    {"ai.onnx.ml.LinearRegressor", 1, 1, 1, linear_regressor},
    {"ai.onnx.ml.Normalizer", 1, 1, 1, row_normalizer},
    {"ai.onnx.ml.OneHotEncoder", 1, 1, 1, one_hot_encoder},
    {"ai.onnx.ml.Scaler", 1, 1, 1, scaler},
    {"ai.onnx.ml.TreeEnsemble", 5, 1, 1, tree_ensemble},
    {"ai.onnx.ml.TreeEnsembleClassifier", 1, 1, 1, trees_classifier},
    {"ai.onnx.ml.TreeEnsembleRegressor", 1, 1, 1, trees_regressor},
    {"ai.onnx.ml.ZipMap", 1, 1, 1, zip_map},
};

}  // namespace

Value* looked_up(OpContext& c, Value* x, Value* keys, Value* values, Value* otherwise) {
  const Expr count = keys->type.elements();
  if (!(values->type.elements() == count)) c.fail(fmt::format("{} values", count.text()), values->type.text());
  Shape apart = x->type.shape;
  apart.emplace_back(1);
  if (x->type.dtype != keys->type.dtype) keys = c.b.cast(keys, x->type.dtype);
  Value* column = c.b.reshape(x, apart);
  Value* match = c.b.call("equal", {column, keys});
  if (is_float(x->type.dtype))
    match = c.b.call("or", {match, c.b.call("and", {c.b.unary("is_nan", column), c.b.unary("is_nan", keys)})});
  const auto last = static_cast<std::int64_t>(apart.size()) - 1;
  Value* hits = c.b.cast(match, DType::i32);
  Value* at = c.b.arg("argmax", hits, last, false);
  Value* found = c.b.call("greater", {c.b.reduce("reduce_max", hits, {last}, false), c.b.scalar(DType::i32, 0)});
  Value* all = c.b.concat({values, otherwise}, 0);
  return c.b.gather(all, c.b.where(found, at, c.b.exprs({count}, {})), 0);
}

std::span<const OpRow> ml_rows() { return kMlRows; }

}  // namespace oclc::onnx
