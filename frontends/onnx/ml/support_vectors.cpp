// Support vector machines of ai.onnx.ml.
#include <fmt/format.h>

#include <numeric>

#include "frontends/onnx/ml/ml.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

// The products of rows with vectors [count, F] that the kernel of a machine gives: [N, count].
Value* kernel_products(OpContext& c, Value* x, Value* vectors) {
  const std::string kind = c.text("kernel_type", "LINEAR");
  const std::vector<double> parameters = c.reals("kernel_params", std::vector<double>{0, 0, 0});
  if (parameters.size() != 3) c.fail("3 kernel_params", std::to_string(parameters.size()));
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  Value* products = c.b.matmul(x, vectors, false, true);
  if (kind == "LINEAR") return products;
  if (kind == "POLY") return c.b.pow(c.b.add(c.b.mul(products, gamma), offset), c.b.scalar(x->type.dtype, degree));
  if (kind == "SIGMOID") return c.b.tanh(c.b.add(c.b.mul(products, gamma), offset));
  if (kind != "RBF") c.fail("kernel_type LINEAR, POLY, RBF or SIGMOID", printable(kind));
  // Differences and not the products: of near rows those lose all digits.
  const Shape &sx = x->type.shape, &sv = vectors->type.shape;
  Value* apart = c.b.sub(c.b.reshape(x, {sx[0], Expr(1), sx[1]}), c.b.reshape(vectors, {Expr(1), sv[0], sv[1]}));
  return c.b.exp(c.b.mul(c.b.reduce("reduce_sum", c.b.mul(apart, apart), {2}, false), -gamma));
}

Outputs svm_regressor(OpContext& c) {
  Value* x = rows_of(c);
  const std::vector<double> vectors = c.reals("support_vectors", std::vector<double>{}), weights = c.reals("coefficients"),
                            rho = c.reals("rho", std::vector<double>{0});
  const std::int64_t count = c.integer("n_supports", 0);
  const bool one_class = c.flag("one_class");
  Value* y = nullptr;
  if (count > 0) {
    if (static_cast<std::int64_t>(vectors.size()) % count != 0 || static_cast<std::int64_t>(weights.size()) != count)
      c.fail(fmt::format("{} support vectors and coefficients", count),
             fmt::format("{} and {}", vectors.size(), weights.size()));
    Value* rows = c.b.reshape(feature_numbers(c, vectors, x->type.dtype),
                              {Expr(count), Expr(static_cast<std::int64_t>(vectors.size()) / count)});
    y = c.b.matmul(kernel_products(c, x, rows),
                   c.b.reshape(feature_numbers(c, weights, x->type.dtype), {Expr(count), Expr(1)}));
  } else {
    Value* row =
        c.b.reshape(feature_numbers(c, weights, x->type.dtype), {Expr(1), Expr(static_cast<std::int64_t>(weights.size()))});
    y = kernel_products(c, x, row);
  }
  y = c.b.add(y, rho.at(0));
  if (one_class) {
    Value* inside = c.b.call("greater", {y, c.b.scalar(y->type.dtype, 0)});
    y = c.b.where(inside, c.b.scalar(y->type.dtype, 1), c.b.scalar(y->type.dtype, -1));
  }
  return {c.b.cast(transformed(c, y, post_transform(c)), DType::f32)};
}

// A machine for each pair of classes, of the first before the second: how they say which is meant.
struct PairMachines {
  std::int64_t classes = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
};

PairMachines machines_of(std::int64_t classes) {
  PairMachines m{classes, {}};
  for (std::int64_t i = 0; i < classes; ++i) {
    for (std::int64_t j = i + 1; j < classes; ++j) m.pairs.emplace_back(i, j);
  }
  return m;
}

// The weights [vectors, pairs] that a support vector has in each pair's machine: of pair (i, j) those of class i against j and
// of class j against i, zeros else.
HostTensor pair_weights(const PairMachines& m, const Ints& vectors_of_class, const std::vector<double>& coefficients) {
  const std::int64_t vectors = std::accumulate(vectors_of_class.begin(), vectors_of_class.end(), std::int64_t{0}),
                     pairs = static_cast<std::int64_t>(m.pairs.size());
  HostTensor w(DType::f32, {vectors, pairs});
  std::int64_t first = 0;
  for (std::int64_t of = 0; of < m.classes; first += vectors_of_class[static_cast<std::size_t>(of++)]) {
    for (std::int64_t v = first; v < first + vectors_of_class[static_cast<std::size_t>(of)]; ++v) {
      for (std::int64_t p = 0; p < pairs; ++p) {
        const auto& [i, j] = m.pairs[static_cast<std::size_t>(p)];
        if (of != i && of != j) continue;
        const std::int64_t row = of == i ? j - 1 : i;
        w.set(v * pairs + p, coefficients[static_cast<std::size_t>(row * vectors + v)]);
      }
    }
  }
  return w;
}

// The pairs' machines that vote for each class, [N, classes], from their scores.
Value* votes_of(OpContext& c, const PairMachines& m, Value* scores) {
  const auto pairs = static_cast<std::int64_t>(m.pairs.size());
  HostTensor first(DType::f32, {pairs, m.classes}), second(DType::f32, {pairs, m.classes});
  for (std::int64_t p = 0; p < pairs; ++p) {
    first.set(p * m.classes + m.pairs[static_cast<std::size_t>(p)].first, 1);
    second.set(p * m.classes + m.pairs[static_cast<std::size_t>(p)].second, 1);
  }
  Value* yes = c.b.cast(c.b.call("greater", {scores, c.b.scalar(DType::f32, 0)}), DType::f32);
  Value* no = c.b.add(c.b.unary("neg", yes), 1);
  return c.b.add(c.b.matmul(yes, c.b.constant(std::move(first))), c.b.matmul(no, c.b.constant(std::move(second))));
}

// One sweep over the classes of the iteration that fits probabilities p[N, 1] of classes to those of pairs, Q[i][j][N, 1]; what
// is near enough stays (T.-F. Wu, C.-J. Lin and R. Weng, "Probability estimates for multi-class classification by pairwise
// coupling", Journal of Machine Learning Research 5, 2004, algorithm 2).
std::vector<Value*> fitted(Builder& b, const std::vector<Value*>& p, const std::vector<std::vector<Value*>>& q) {
  const std::size_t classes = p.size();
  std::vector<Value*> qp(classes);
  Value* all = nullptr;
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = 0; j < classes; ++j) {
      Value* part = b.mul(q[i][j], p[j]);
      qp[i] = qp[i] ? b.add(qp[i], part) : part;
    }
    Value* part = b.mul(p[i], qp[i]);
    all = all ? b.add(all, part) : part;
  }
  Value* error = nullptr;
  for (std::size_t i = 0; i < classes; ++i) {
    Value* of = b.unary("abs", b.sub(qp[i], all));
    error = error ? b.max(error, of) : of;
  }
  Value* is_near = b.call("less", {error, b.scalar(DType::f32, 0.005 / static_cast<double>(classes))});
  std::vector<Value*> next = p;
  for (std::size_t t = 0; t < classes; ++t) {
    Value* step = b.div(b.sub(all, qp[t]), q[t][t]);
    Value* whole = b.add(step, 1);
    next[t] = b.add(next[t], step);
    all = b.div(b.div(b.add(all, b.mul(step, b.add(b.mul(step, q[t][t]), b.mul(qp[t], 2)))), whole), whole);
    for (std::size_t j = 0; j < classes; ++j) {
      qp[j] = b.div(b.add(qp[j], b.mul(step, q[t][j])), whole);
      next[j] = b.div(next[j], whole);
    }
  }
  for (std::size_t i = 0; i < classes; ++i) next[i] = b.where(is_near, p[i], next[i]);
  return next;
}

// Probabilities of the classes, [N, classes], from the scores of their pairs.
Value* probabilities(OpContext& c, const PairMachines& m, Value* scores) {
  constexpr std::int64_t kSweeps = 100;
  constexpr double kLeast = 1e-7;
  const std::vector<double> a = c.reals("prob_a"), b = c.reals("prob_b");
  if (a.size() != m.pairs.size() || b.size() != m.pairs.size())
    c.fail(fmt::format("prob_a and prob_b of {} pairs of classes", m.pairs.size()),
           fmt::format("{} and {}", a.size(), b.size()));
  // 1 - 1 / (1 + exp(-(s a + b)))
  Value* of_pairs = c.b.sigmoid(c.b.unary("neg", c.b.add(c.b.mul(scores, feature_numbers(c, a)), feature_numbers(c, b))));
  of_pairs = c.b.min(c.b.max(of_pairs, c.b.scalar(DType::f32, kLeast)), c.b.scalar(DType::f32, 1 - kLeast));
  const auto classes = static_cast<std::size_t>(m.classes);
  std::vector<std::vector<Value*>> r(classes, std::vector<Value*>(classes)), q = r;
  for (std::size_t p = 0; p < m.pairs.size(); ++p) {
    const auto i = static_cast<std::size_t>(m.pairs[p].first), j = static_cast<std::size_t>(m.pairs[p].second);
    r[i][j] = c.b.slice_axis(of_pairs, 1, Expr(static_cast<std::int64_t>(p)), Expr(1));
    r[j][i] = c.b.add(c.b.unary("neg", r[i][j]), 1);
  }
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      Value* square = c.b.mul(r[j][i], r[j][i]);
      q[i][i] = q[i][i] ? c.b.add(q[i][i], square) : square;
      q[i][j] = c.b.unary("neg", c.b.mul(r[j][i], r[i][j]));
    }
  }
  const std::string counter = fmt::format("pair_sweep_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "sweep";
  Builder inner(*body, c.b);
  std::vector<Value*> start, inside, captured;
  Value* equal = c.b.expand(c.b.scalar(DType::f32, 1.0 / static_cast<double>(classes)), q[0][0]->type.shape);
  for (std::size_t i = 0; i < classes; ++i) {
    start.push_back(equal);
    inside.push_back(body->add_input(fmt::format("p{}", i), equal->type));
  }
  for (auto& row : q) {
    for (Value*& one : row) {
      captured.push_back(one);
      one = body->add_input(fmt::format("q{}", captured.size()), one->type);
    }
  }
  std::size_t i = 0;
  for (Value* p : fitted(inner, inside, q)) body->add_output(fmt::format("p{}", i++), p);
  const Node* loop = c.b.loop(Expr(kSweeps), counter, start, captured, std::move(body));
  std::vector<Value*> columns;
  for (std::size_t k = 0; k < classes; ++k) columns.push_back(loop->output(k));
  return c.b.concat(std::move(columns), 1);
}

// Scores of the classes themselves, without support vectors.
Outputs linear_machines(OpContext& c, const Labels& labels, Value* x, const std::vector<double>& weights, double rho) {
  const std::int64_t classes = labels.count(), count = static_cast<std::int64_t>(weights.size());
  if (count % classes != 0) c.fail(fmt::format("coefficients of {} classes", classes), std::to_string(count));
  Value* rows = c.b.reshape(feature_numbers(c, weights), {Expr(classes), Expr(count / classes)});
  Value* scores = c.b.add(c.b.matmul(x, rows, false, true), rho);
  Value* at = c.b.arg("argmax", scores, 1, false);
  if (classes == 2) {
    // The second class is taken where the largest score says so, whosever it is.
    const bool positive = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    Value *most = c.b.reduce("reduce_max", scores, {1}, false), *bound = c.b.scalar(DType::f32, positive ? 0.5 : 0);
    Value* yes = c.b.call(positive ? "greater_equal" : "greater", {most, bound});
    at = c.b.where(yes, c.b.scalar(DType::i64, 1), at);
  }
  return {labels_at(c, at, labels.whole, labels.texts), transformed(c, scores, post_transform(c))};
}

Outputs svm_classifier(OpContext& c) {
  const Labels labels = labels_of(c, "classlabels_ints");
  Value* x = c.b.cast(rows_of(c), DType::f32);
  const std::vector<double> vectors = c.reals("support_vectors", std::vector<double>{}), weights = c.reals("coefficients"),
                            rho = c.reals("rho");
  const Ints of_class = c.integers("vectors_per_class", Ints{});
  const std::int64_t count = std::accumulate(of_class.begin(), of_class.end(), std::int64_t{0});
  const PairMachines machines = machines_of(labels.count());
  if (count == 0) {
    c.ignore({"kernel_type", "kernel_params", "prob_a", "prob_b"});
    return linear_machines(c, labels, x, weights, rho.at(0));
  }
  if (static_cast<std::int64_t>(of_class.size()) != machines.classes || machines.pairs.empty() ||
      static_cast<std::int64_t>(vectors.size()) % count != 0 ||
      static_cast<std::int64_t>(weights.size()) < (machines.classes - 1) * count || rho.size() < machines.pairs.size())
    c.fail(fmt::format("vectors_per_class, rho and coefficients of {} classes and {} support vectors", machines.classes, count),
           fmt::format("{}, {} and {}", of_class.size(), rho.size(), weights.size()));
  Value* rows =
      c.b.reshape(feature_numbers(c, vectors), {Expr(count), Expr(static_cast<std::int64_t>(vectors.size()) / count)});
  Value* scores = c.b.matmul(kernel_products(c, x, rows), c.b.constant(pair_weights(machines, of_class, weights)));
  scores = c.b.add(scores, feature_numbers(c, {rho.begin(), rho.begin() + static_cast<std::ptrdiff_t>(machines.pairs.size())}));
  Value* at = c.b.arg("argmax", votes_of(c, machines, scores), 1, false);
  const std::string then = post_transform(c);
  if (c.has("prob_a")) {
    scores = transformed(c, probabilities(c, machines, scores), then);
  } else if (machines.classes == 2) {
    // Of two classes one number speaks. ONNX Runtime gives the first its negative, or what it lacks of 1, and LOGISTIC alone is
    // applied.
    if (then != "NONE" && then != "LOGISTIC" && then != "SOFTMAX" && then != "SOFTMAX_ZERO")
      c.unsupported("post_transform NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO", printable(then));
    Value* other = c.b.unary("neg", scores);
    scores = c.b.concat({then.starts_with("SOFTMAX") ? c.b.add(other, 1) : other, scores}, 1);
    if (then == "LOGISTIC") scores = c.b.sigmoid(scores);
  } else {
    scores = transformed(c, scores, then);
  }
  return {labels_at(c, at, labels.whole, labels.texts), scores};
}

constexpr OpRow kSvmRows[] = {
    {"ai.onnx.ml.SVMClassifier", 1, 1, 1, svm_classifier},
    {"ai.onnx.ml.SVMRegressor", 1, 1, 1, svm_regressor},
};

}  // namespace

std::span<const OpRow> svm_rows() { return kSvmRows; }

}  // namespace oclc::onnx
