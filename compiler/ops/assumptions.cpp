#include "compiler/ops/assumptions.h"

#include <algorithm>

#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

// What the common shape has along an axis where an operand has `dim`.
void meet(Expr& common, const Expr& dim) {
  if (dim == Expr(1) || dim == common) return;
  common = common == Expr(1) ? dim : simpler(common, dim);
}

// The dimensions of `x` that broadcast to `common`.
Shape broadcast_part(const Value& x, const Shape& common) {
  Shape shape = x.type.shape;
  const std::size_t ahead = common.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!(shape[i] == Expr(1))) shape[i] = common[ahead + i];
  }
  return shape;
}

}  // namespace

Assumptions::Assumptions(const std::vector<Expr>& symbols, bool takes_for_equal) : takes_for_equal_(takes_for_equal) {
  for (const Expr& e : symbols) symbols_.insert(*e.symbol_name());
}

Assumptions Assumptions::without_list() const {
  Assumptions other = *this;
  other.list_.clear();
  other.least_.clear();
  return other;
}

bool Assumptions::comparable(const Expr& e) const {
  const std::vector<std::string> symbols = e.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](const std::string& s) { return symbols_.count(s) != 0; });
}

bool Assumptions::equal(const Expr& a, const Expr& b, const std::string& node) {
  if (a == b) return true;
  if (!takes_for_equal_ || known_less(a, b) || known_less(b, a) || !comparable(a) || !comparable(b)) return false;
  const bool known = std::any_of(list_.begin(), list_.end(), [&](const Assumption& other) {
    return (other.left == a && other.right == b) || (other.left == b && other.right == a);
  });
  if (!known) list_.push_back({a, b, node});
  return true;
}

void Assumptions::at_least(const Expr& size, std::int64_t least, const std::string& node) {
  if (known_less_equal(Expr(least), size) || !comparable(size)) return;
  const Expr right = max(size, Expr(least));
  const bool known =
      std::any_of(least_.begin(), least_.end(), [&](const Assumption& a) { return a.left == size && a.right == right; });
  if (!known) least_.push_back({size, right, node});
}

void Assumptions::keep(const Expr& size, const std::string& node) { kept_.push_back({size, Expr(1), node}); }

bool Assumptions::keeps(const Expr& size) const {
  return comparable(size) && std::any_of(kept_.begin(), kept_.end(), [&](const Assumption& a) { return a.left == size; });
}

void Assumptions::squeeze(const Expr& size) {
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Assumption& a) { return a.left == size; });
  const bool known = std::any_of(list_.begin(), list_.end(), [&](const Assumption& a) {
    return (a.left == size && a.right == Expr(1)) || (a.right == size && a.left == Expr(1));
  });
  if (!known) list_.push_back(*kept);
}

const Expr& simpler(const Expr& a, const Expr& b) {
  const auto rank = [](const Expr& e) { return e.is_constant() ? 0 : e.symbol_name() ? 1 : 2; };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? a : b;
  const std::string left = a.text(), right = b.text();
  if (left.size() != right.size()) return left.size() < right.size() ? a : b;
  return left <= right ? a : b;
}

bool Builder::assumes() const { return assumptions_ && assumptions_->takes_for_equal(); }

void Builder::fit_windows(const Node& node, const Ints& kernel, bool cut) {
  if (!assumptions_) return;
  const auto &strides = node.get<Ints>("strides"), &dilations = node.get<Ints>("dilations"), &pads = node.get<Ints>("pads");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t least = dilations[i] * (kernel[i] - 1) + 1 - pads[i] - pads[i + kernel.size()];
    assumptions_->at_least(node.inputs[0]->type.shape[i + 2], cut ? least - strides[i] + 1 : least, source_);
  }
}

Value* Builder::fit(Value* x, const Shape& shape) {
  if (!assumes() || x->type.rank() != shape.size() || x->type.shape == shape) return x;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!assumptions_->equal(x->type.shape[i], shape[i], source_)) return x;
  }
  // The same elements under other names of their number.
  return slice(x, Exprs(shape.size(), Expr(0)), shape, Ints(shape.size(), 1));
}

void Builder::fit_broadcast(std::vector<Value*>& inputs, std::size_t last_axes) {
  Shape common;
  const auto ahead = [&](const Value& x) { return common.size() - x.type.rank(); };
  for (const Value* x : inputs) common.resize(std::max(common.size(), x->type.rank()), Expr(1));
  for (const Value* x : inputs) {
    for (std::size_t i = 0; i + last_axes < x->type.rank(); ++i) meet(common[ahead(*x) + i], x->type.shape[i]);
  }
  for (Value*& x : inputs) {
    Shape part = broadcast_part(*x, common);
    for (std::size_t i = part.size() - std::min(last_axes, part.size()); i < part.size(); ++i) part[i] = x->type.shape[i];
    x = fit(x, part);
  }
}

void Builder::fit_product(std::vector<Value*>& inputs, const Attributes& attributes) {
  if (inputs[0]->type.rank() < 2 || inputs[1]->type.rank() < 2) return;
  fit_broadcast(inputs, 2);
  Shape left = inputs[0]->type.shape, right = inputs[1]->type.shape;
  const auto is_set = [&](const char* name) { return std::get<std::int64_t>(attributes.at(name)) != 0; };
  Expr& a = left[left.size() - (is_set("trans_a") ? 2 : 1)];
  Expr& b = right[right.size() - (is_set("trans_b") ? 1 : 2)];
  a = b = simpler(a, b);
  inputs = {fit(inputs[0], left), fit(inputs[1], right)};
}

void Builder::fit_concat(std::vector<Value*>& inputs, std::int64_t axis) {
  Shape common = inputs[0]->type.shape;
  for (const Value* x : inputs) {
    if (x->type.rank() != common.size()) return;
    for (std::size_t i = 0; i < common.size(); ++i) common[i] = simpler(common[i], x->type.shape[i]);
  }
  for (Value*& x : inputs) {
    Shape shape = common;
    if (axis >= 0 && axis < static_cast<std::int64_t>(shape.size()))
      shape[static_cast<std::size_t>(axis)] = x->type.shape[static_cast<std::size_t>(axis)];
    x = fit(x, shape);
  }
}

// Under one number of elements: those of a vector.
Value* Builder::fit_elements(Value* x, const Shape& shape) {
  const Expr found = x->type.elements(), wanted = product(shape);
  if (found == wanted) return x;
  return fit(call("reshape", {x}, {{"shape", Shape{found}}}), {wanted});
}

void Builder::fit_operands(const OpDef& op, std::vector<Value*>& inputs, Attributes& attributes) {
  if (std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end() || inputs.empty()) return;
  if (op.kind == OpKind::elementwise && inputs.size() > 1) fit_broadcast(inputs, 0);
  if (op.name == "matmul") fit_product(inputs, attributes);
  if (op.name == "concat") fit_concat(inputs, std::get<std::int64_t>(attributes.at("axis")));
  if (op.name == "reshape") inputs[0] = fit_elements(inputs[0], std::get<Exprs>(attributes.at("shape")));
  if (op.name != "expand") return;
  auto& shape = std::get<Exprs>(attributes.at("shape"));
  const Shape& own = inputs[0]->type.shape;
  for (std::size_t i = 0; i < std::min(own.size(), shape.size()); ++i) {
    Expr& wanted = shape[shape.size() - 1 - i];
    if (!(wanted == Expr(1))) meet(wanted, own[own.size() - 1 - i]);
  }
  if (own.size() <= shape.size()) inputs[0] = fit(inputs[0], broadcast_part(*inputs[0], shape));
}

}  // namespace oclc
