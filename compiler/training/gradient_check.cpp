#include "compiler/training/gradient_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <unordered_map>

#include "compiler/ir/op_def.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/gradients/autodiff.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Random = std::mt19937_64;
using Tensors = std::vector<HostTensor>;

constexpr double kStep = 1e-6;
constexpr double kShortest = 1e-10;  // of the steps of the whole model
constexpr double kAgreement = 1e-8;  // needs no shorter step
constexpr double kHuge = 1e30;       // what masks are made of

double uniform(Random& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

DType widened(DType dtype) { return is_float(dtype) ? DType::f64 : dtype; }

HostTensor widened(const HostTensor& t) {
  if (!is_float(t.dtype()) || t.dtype() == DType::f64) return t;
  HostTensor result(DType::f64, t.shape());
  for (std::int64_t i = 0; i < t.elements(); ++i) result.set(i, t.at(i));
  return result;
}

// The graph in double, with the constants that are variables as further inputs.
struct WideGraph {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Tensors constants;  // values of the further inputs

  WideGraph(const Graph& from, bool constants_vary) {
    std::unordered_map<const Value*, Value*> of{{nullptr, nullptr}};
    for (const auto& input : from.inputs())
      of[input.get()] = graph->add_input(input->name, {widened(input->type.dtype), input->type.shape});
    for (const Node* node : from.nodes()) {
      const HostTensor* tensor = node->outputs.size() == 1 ? constant_of(node->output()) : nullptr;
      if (constants_vary && tensor && is_float(tensor->dtype()) && tensor->elements() > 1) {
        constants.push_back(widened(*tensor));
        of[node->output()] = graph->add_input(fmt::format("constant {}", constants.size()), constants.back().type());
        continue;
      }
      Attributes attributes = node->attributes;
      for (auto& [name, attribute] : attributes) {
        if (auto* dtype = std::get_if<DType>(&attribute)) *dtype = widened(*dtype);
        if (auto* held = std::get_if<HostTensor>(&attribute)) *held = widened(*held);
      }
      std::vector<Value*> inputs;
      for (const Value* input : node->inputs) inputs.push_back(of.at(input));
      std::vector<std::unique_ptr<Graph>> bodies;
      for (const auto& body : node->bodies) bodies.push_back(std::move(WideGraph(*body, false).graph));
      const Node* copy =
          graph->add(*node->op, std::move(inputs), std::move(attributes), node->source, nullptr, std::move(bodies));
      for (std::size_t i = 0; i < node->outputs.size(); ++i) of[node->output(i)] = copy->output(i);
    }
    for (const auto& [name, value] : from.outputs()) graph->add_output(name, of.at(value));
  }
};

HostTensor drawn(const TensorType& type, Random& random) {
  std::vector<std::int64_t> shape = bind_shape(type.shape, {});
  HostTensor t(type.dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    if (type.dtype == DType::string) continue;  // empty ones
    if (is_float(type.dtype)) {
      t.set(i, uniform(random, -1, 1));
    } else {
      t.set_int(i, static_cast<std::int64_t>(random() % (type.dtype == DType::boolean ? 2 : 3)));
    }
  }
  return t;
}

// Weights of a projection: of either sign, none small.
HostTensor projection(const std::vector<std::int64_t>& shape, Random& random) {
  HostTensor t(DType::f64, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, (random() % 2 == 0 ? 1 : -1) * uniform(random, 0.5, 1.5));
  return t;
}

// A random direction in which no element moves by more than its own size, so that none passes 0; huge ones (masks) stay.
HostTensor direction(const HostTensor& x, Random& random) {
  double sum = 0;
  std::int64_t count = 0;
  const auto moves = [](double v) { return std::isfinite(v) && std::fabs(v) < kHuge; };
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    if (!moves(x.at(i))) continue;
    sum += std::fabs(x.at(i));
    ++count;
  }
  const double typical = sum > 0 ? sum / static_cast<double>(count) : 1;
  HostTensor d(DType::f64, x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double size = std::fabs(x.at(i));
    if (moves(size)) d.set(i, uniform(random, -1, 1) * (size > 0 ? std::min(size, typical) : typical));
  }
  return d;
}

HostTensor moved(const HostTensor& x, const HostTensor& d, double step) {
  HostTensor t(DType::f64, x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i) t.set(i, d.at(i) == 0 ? x.at(i) : x.at(i) + step * d.at(i));
  return t;
}

struct Product {
  double value = 0;
  double typical = 0;  // what it would be for a direction of that length that knows nothing of the gradient

  void add(const HostTensor& gradient, const HostTensor& d) {
    double g2 = 0, d2 = 0;
    for (std::int64_t i = 0; i < d.elements(); ++i) {
      if (d.at(i) == 0) continue;
      value += gradient.at(i) * d.at(i);
      g2 += gradient.at(i) * gradient.at(i);
      d2 += d.at(i) * d.at(i);
    }
    if (d.elements() > 0) typical = std::hypot(typical, std::sqrt(g2 * d2 / static_cast<double>(d.elements())));
  }
  double error(double difference) const {
    const double apart = std::fabs(value - difference), scale = std::max({typical, std::fabs(difference), std::fabs(value)});
    return apart == 0 ? 0 : apart / scale;
  }
};

// The loss sum(projection * output) over the floating-point outputs, projections being inputs, and its gradients as outputs.
struct Gradients {
  std::unique_ptr<Graph> graph;
  std::vector<std::size_t> projected;  // outputs of `from`
  std::vector<Value*> variables;

  // `from` in double; `count` inputs, from the first on, are variables.
  Gradients(std::unique_ptr<Graph> from, const std::vector<std::size_t>& inputs) : graph(std::move(from)) {
    Builder b(*graph);
    Value* loss = nullptr;
    const auto outputs = graph->outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Value* y = outputs[i].second;
      if (!is_float(y->type.dtype)) continue;
      projected.push_back(i);
      Value* part = b.mul(y, graph->add_input(fmt::format("projection {}", i), y->type));
      Ints axes;
      for (std::size_t a = 0; a < y->type.rank(); ++a) axes.push_back(static_cast<std::int64_t>(a));
      if (!axes.empty()) part = b.reduce("reduce_sum", part, axes, false);
      loss = loss ? b.add(loss, part) : part;
    }
    if (!loss) return;
    for (const std::size_t i : inputs) variables.push_back(graph->inputs()[i].get());
    for (Value* gradient : add_gradients(*graph, loss, variables))
      graph->add_output(fmt::format("gradient {}", graph->outputs().size()), gradient);
  }

  Tensors run(Tensors inputs, const Tensors& projections) const {
    inputs.insert(inputs.end(), projections.begin(), projections.end());
    Tensors results = evaluate(*graph, inputs);
    return {results.end() - static_cast<std::ptrdiff_t>(variables.size()), results.end()};
  }
};

class Check {
 public:
  Check(const Graph& graph, const GradientCheckOptions& options)
      : options_(options), random_(options.seed), wide_(graph, true) {}

  GradientCheck run() {
    wide_.graph->erase_dead();
    const std::size_t constants = wide_.graph->inputs().size() - wide_.constants.size();
    for (std::size_t i = 0; i < wide_.graph->inputs().size(); ++i) {
      const Value& input = *wide_.graph->inputs()[i];
      inputs_.push_back(i < constants ? drawn(input.type, random_) : wide_.constants[i - constants]);
      if (is_float(input.type.dtype)) {
        variables_.push_back(i);
        result_.variables += inputs_.back().elements();
      }
    }
    check_model();
    check_nodes();
    for (auto& [name, check] : checks_) result_.operators.push_back(std::move(check));
    std::stable_sort(result_.operators.begin(), result_.operators.end(), [](const OperatorCheck& a, const OperatorCheck& b) {
      return std::isnan(a.error) != std::isnan(b.error) ? std::isnan(a.error) : a.error > b.error;
    });
    return std::move(result_);
  }

 private:
  void check_model() {
    const Gradients gradients(std::move(WideGraph(*wide_.graph, false).graph), variables_);
    if (gradients.projected.empty()) {
      throw CompileError({.stage = "autodiff", .wanted = "a model with floating-point outputs", .found = "none"});
    }
    Tensors projections;
    for (const std::size_t i : gradients.projected)
      projections.push_back(projection(bind_shape(wide_.graph->outputs()[i].second->type.shape, {}), random_));
    Tensors directions;
    for (const std::size_t v : variables_) directions.push_back(direction(inputs_[v], random_));
    if (options_.progress) options_.progress("whole model");
    Product product;
    const Tensors found = gradients.run(inputs_, projections);
    for (std::size_t i = 0; i < found.size(); ++i) product.add(found[i], directions[i]);
    result_.derivative = product.value;
    // A step that takes values inside the model over their kinks is too long, one that rounding swallows too short.
    for (double step = kStep; step >= kShortest; step /= 10) {
      const double difference = model_difference(gradients, projections, directions, step), error = product.error(difference);
      if (step != kStep && !(error < result_.model_error)) continue;
      result_.difference = difference;
      result_.model_error = error;
      if (error <= kAgreement) break;
    }
  }

  double model_difference(const Gradients& gradients, const Tensors& projections, const Tensors& directions, double step) {
    Tensors ahead = inputs_, behind = inputs_;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const std::size_t v = variables_[i];
      ahead[v] = moved(inputs_[v], directions[i], step);
      behind[v] = moved(inputs_[v], directions[i], -step);
    }
    const Tensors after = evaluate(*wide_.graph, ahead), before = evaluate(*wide_.graph, behind);
    double sum = 0;
    for (std::size_t i = 0; i < projections.size(); ++i) {
      const HostTensor &a = after[gradients.projected[i]], &b = before[gradients.projected[i]];
      for (std::int64_t k = 0; k < a.elements(); ++k)
        if (a.at(k) != b.at(k)) sum += projections[i].at(k) * (a.at(k) - b.at(k));
    }
    return sum / (2 * step);
  }

  // Evaluates the model and checks each node where its operands are at hand.
  void check_nodes() {
    const std::vector<Node*> nodes = wide_.graph->nodes();
    std::unordered_map<const Value*, HostTensor> live;
    std::unordered_map<const Value*, std::size_t> uses;
    for (std::size_t i = 0; i < inputs_.size(); ++i) live[wide_.graph->inputs()[i].get()] = inputs_[i];
    std::set<std::string> seen;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node& node = *nodes[n];
      Tensors operands;
      for (const Value* input : node.inputs) operands.push_back(input ? live.at(input) : HostTensor(DType::f32, {0}));
      const Tensors results = node.op->eval(node, operands, {});
      for (std::size_t i = 0; i < results.size(); ++i) live[node.output(i)] = results[i];
      if (options_.progress) options_.progress(fmt::format("operator {} of {}", n + 1, nodes.size()));
      check_node(node, operands, results, seen);
      for (const Value* input : node.inputs) {
        if (input && ++uses[input] == input->users.size()) live.erase(input);
      }
    }
  }

  static std::string kind_of(const Node& node, const Tensors& operands) {
    std::string text(node.op->name);
    for (const HostTensor& t : operands) text += " " + t.type().text();
    for (const auto& [name, attribute] : node.attributes) {
      text += " " + name + "=";
      if (const auto* i = std::get_if<std::int64_t>(&attribute)) text += fmt::format("{}", *i);
      if (const auto* d = std::get_if<double>(&attribute)) text += fmt::format("{}", *d);
      if (const auto* s = std::get_if<std::string>(&attribute)) text += *s;
      if (const auto* list = std::get_if<Ints>(&attribute)) text += fmt::format("{}", fmt::join(*list, ","));
      if (const auto* list = std::get_if<std::vector<Expr>>(&attribute)) text += text_of(*list);
    }
    return text;
  }

  void check_node(const Node& node, const Tensors& operands, const Tensors& results, std::set<std::string>& seen) {
    std::vector<std::size_t> varying;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (node.inputs[i] && is_float(node.inputs[i]->type.dtype) && !constant_of(node.inputs[i])) varying.push_back(i);
    }
    const bool gives_floats = std::any_of(results.begin(), results.end(), [](const auto& t) { return is_float(t.dtype()); });
    if (varying.empty() || !gives_floats || node.outputs.empty()) return;
    OperatorCheck& check = checks_[std::string(node.op->name)];
    check.op = node.op->name;
    ++check.nodes;
    if (!seen.insert(kind_of(node, operands)).second && !options_.all_nodes) return;
    ++check.checked;

    auto alone = std::make_unique<Graph>();
    std::vector<Value*> inputs;
    Tensors at;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0, next = 0; i < operands.size(); ++i) {
      if (!node.inputs[i]) {
        inputs.push_back(nullptr);
      } else if (next < varying.size() && varying[next] == i) {
        positions.push_back(at.size());
        inputs.push_back(alone->add_input(fmt::format("x{}", i), operands[i].type()));
        at.push_back(operands[i]);
        ++next;
      } else {
        inputs.push_back(Builder(*alone).constant(operands[i]));
      }
    }
    const Node* copy = alone->add(*node.op, std::move(inputs), node.attributes, node.source);
    for (const auto& output : copy->outputs) alone->add_output(fmt::format("y{}", output->index), output.get());
    const Gradients gradients(std::move(alone), positions);

    Tensors projections, directions;
    for (const std::size_t i : gradients.projected) projections.push_back(projection(results[i].shape(), random_));
    // Differences of each result along a direction of each operand.
    std::vector<Tensors> differences;
    for (const std::size_t v : varying) {
      directions.push_back(direction(operands[v], random_));
      Tensors ahead = operands, behind = operands;
      ahead[v] = moved(operands[v], directions.back(), kStep);
      behind[v] = moved(operands[v], directions.back(), -kStep);
      const Tensors after = node.op->eval(node, ahead, {}), before = node.op->eval(node, behind, {});
      Tensors list;
      for (std::size_t i = 0; i < projections.size(); ++i) {
        const std::size_t k = gradients.projected[i];
        list.push_back(differences_of(results[k], after[k], before[k], projections[i], check.kinks));
      }
      differences.push_back(std::move(list));
    }
    const Tensors found = gradients.run(at, projections);
    for (std::size_t v = 0; v < varying.size(); ++v) {
      double difference = 0;
      for (std::size_t i = 0; i < projections.size(); ++i) {
        for (std::int64_t k = 0; k < projections[i].elements(); ++k) {
          if (projections[i].at(k) != 0) difference += projections[i].at(k) * differences[v][i].at(k);
        }
      }
      Product product;
      product.add(found[v], directions[v]);
      const double error = product.error(difference);
      if (!(error <= check.error)) {
        check.error = error;
        check.worst = node.source;
      }
    }
  }

  // Central differences. Results where the two sides disagree, at kinks and ties, get no weight in the projection; nor do those
  // in which a difference is lost (masks).
  static HostTensor differences_of(const HostTensor& y, const HostTensor& after, const HostTensor& before,
                                   HostTensor& projection, std::int64_t& kinks) {
    HostTensor result(DType::f64, y.shape());
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const double up = after.at(i) - y.at(i), down = y.at(i) - before.at(i);
      const bool resolved = std::fabs(y.at(i)) < kHuge;
      if (resolved && after.at(i) == before.at(i) && up == 0) continue;
      const bool smooth =
          resolved && std::fabs(up - down) <= 1e-3 * (std::fabs(up) + std::fabs(down)) + 1e-14 * std::fabs(y.at(i));
      result.set(i, smooth ? (up + down) / (2 * kStep) : 0);
      if (smooth || projection.at(i) == 0) continue;
      projection.set(i, 0);
      ++kinks;
    }
    return result;
  }

  const GradientCheckOptions& options_;
  Random random_;
  WideGraph wide_;
  Tensors inputs_;
  std::vector<std::size_t> variables_;
  std::map<std::string, OperatorCheck> checks_;
  GradientCheck result_;
};

}  // namespace

double GradientCheck::worst() const {
  double most = model_error;
  for (const OperatorCheck& check : operators) {
    if (!(check.error <= most)) most = check.error;
    if (std::isnan(most)) break;
  }
  return most;
}

GradientCheck check_gradients(const Graph& graph, const GradientCheckOptions& options) { return Check(graph, options).run(); }

std::vector<HostTensor> evaluate_in_double(const Graph& graph, const std::vector<HostTensor>& inputs) {
  Tensors wide;
  for (const HostTensor& input : inputs) wide.push_back(widened(input));
  return evaluate(*WideGraph(graph, false).graph, wide);
}

}  // namespace oclc
