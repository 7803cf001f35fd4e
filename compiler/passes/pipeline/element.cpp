#include "compiler/passes/pipeline/element.h"

#include <algorithm>
#include <functional>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

using Index = std::vector<Expr>;
using Known = std::optional<Expr>;

constexpr int kMaxSteps = 2000;
constexpr std::int64_t kMaxScannedElements = 1 << 20;

Known truth(bool value) { return Expr(value ? 1 : 0); }

Known less(const Expr& a, const Expr& b) {
  if (known_less(a, b)) return truth(true);
  return known_less_equal(b, a) ? truth(false) : std::nullopt;
}

Known equals(const Expr& a, const Expr& b) {
  if (a == b) return truth(true);
  return known_less(a, b) || known_less(b, a) ? truth(false) : std::nullopt;
}

Known negated(const Known& a) { return a ? Known(Expr(1) - *a) : std::nullopt; }

// Values that do not fit the type wrap; expressions do not. 64-bit and, as everywhere for sizes, 32-bit numbers are taken to
// fit.
bool fits(DType dtype, const Expr& e) {
  std::int64_t lo = 0, hi = 0;
  switch (dtype) {
    case DType::i64:
      return true;
    case DType::i32:
      if (!e.is_constant()) return true;
      lo = INT32_MIN, hi = INT32_MAX;
      break;
    case DType::i16:
      lo = INT16_MIN, hi = INT16_MAX;
      break;
    case DType::i8:
      lo = INT8_MIN, hi = INT8_MAX;
      break;
    case DType::boolean:
      hi = 1;
      break;
    case DType::u8:
      hi = UINT8_MAX;
      break;
    case DType::u16:
      hi = UINT16_MAX;
      break;
    case DType::u32:
      hi = UINT32_MAX;
      break;
    case DType::u64:
      hi = kUnbounded;
      break;
    default:
      return false;
  }
  return e.lower() >= lo && e.upper() <= hi;
}

Expr flatten(const Index& index, const Shape& shape) {
  Expr flat(0);
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

Index unflatten(Expr flat, const Shape& shape) {
  Index index(shape.size(), Expr(0));
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == Expr(0) || shape[i] == Expr(1)) continue;  // without elements there is no position either
    const bool outermost =
        std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(i), [](const Expr& e) { return e == Expr(1); });
    index[i] = outermost ? flat : floor_mod(flat, shape[i]);
    if (!outermost) flat = floor_div(flat, shape[i]);
  }
  return index;
}

class Reader {
 public:
  Known read(const Value* value, const Index& index) {
    if (!value || ++steps_ > kMaxSteps || is_float(value->type.dtype) || is_narrow(value->type.dtype) ||
        index.size() != value->type.rank())
      return std::nullopt;
    Known result = from_content(*value, index);
    if (!result && value->producer && value->index == 0) result = from_producer(*value->producer, index);
    if (!result || !fits(value->type.dtype, *result)) return std::nullopt;
    return result;
  }

 private:
  static Known from_content(const Value& value, const Index& index) {
    if (!value.content || value.content->empty()) return std::nullopt;
    const auto& content = *value.content;
    if (std::all_of(content.begin(), content.end(), [&](const Expr& e) { return e == content[0]; })) return content[0];
    const Expr flat = flatten(index, value.type.shape);
    if (!flat.is_constant() || flat.value() < 0 || flat.value() >= static_cast<std::int64_t>(content.size()))
      return std::nullopt;
    return content[static_cast<std::size_t>(flat.value())];
  }

  // A constant that is a linear function of the position.
  static Known from_tensor(const HostTensor& tensor, const Index& index) {
    const std::int64_t count = tensor.elements();
    if (count == 0 || count > kMaxScannedElements || tensor.dtype() == DType::string) return std::nullopt;
    std::vector<std::int64_t> steps(index.size(), 0), strides(index.size(), 1), at(index.size(), 0);
    for (std::size_t i = index.size(); i-- > 1;) strides[i - 1] = strides[i] * tensor.shape()[i];
    const std::int64_t first = tensor.int_at(0);
    Expr result(first);
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (tensor.shape()[i] > 1 && __builtin_sub_overflow(tensor.int_at(strides[i]), first, &steps[i])) return std::nullopt;
      if (std::abs(steps[i]) > INT32_MAX) return std::nullopt;
      result += Expr(steps[i]) * index[i];
    }
    for (std::int64_t flat = 0; flat < count; ++flat) {
      std::int64_t wanted = first;
      for (std::size_t i = 0; i < index.size(); ++i) wanted += steps[i] * (flat / strides[i] % tensor.shape()[i]);
      if (tensor.int_at(flat) != wanted) return std::nullopt;
    }
    return result;
  }

  // The operand of an elementwise node at the node's position.
  Known operand(const Node& node, std::size_t i, const Index& index) {
    const Value* value = node.inputs.at(i);
    const std::size_t rank = value->type.rank(), lead = index.size() - rank;
    Index at(rank, Expr(0));
    for (std::size_t d = 0; d < rank; ++d) {
      if (!(value->type.shape[d] == Expr(1))) at[d] = index[lead + d];
    }
    return read(value, at);
  }

  Known from_producer(const Node& node, const Index& index) {
    if (const HostTensor* tensor = constant_of(node.output())) return from_tensor(*tensor, index);
    switch (node.op->kind) {
      case OpKind::elementwise:
        return from_elementwise(node, index);
      case OpKind::movement:
        return from_movement(node, index);
      case OpKind::indexing:
        return from_indexing(node, index);
      case OpKind::reduction:
        return from_reduction(node, index);
      default:
        break;
    }
    if (is(&node, "iota")) {
      const Expr start = node.get<std::vector<Expr>>("start").at(0), step = node.get<std::vector<Expr>>("step").at(0);
      return index.empty() ? start : start + step * index.at(static_cast<std::size_t>(node.get<std::int64_t>("axis")));
    }
    if (is(&node, "cumsum")) return from_cumsum(node, index);
    return std::nullopt;
  }

  Known from_elementwise(const Node& node, const Index& index) {
    const std::string_view op = node.op->name;
    const Known a = operand(node, 0, index);
    if (op == "cast") {
      if (!a || node.output()->type.dtype != DType::boolean || node.inputs[0]->type.dtype == DType::boolean) return a;
      return negated(equals(*a, Expr(0)));
    }
    if (op == "neg") return a ? Known(-*a) : std::nullopt;
    if (op == "not") return negated(a);
    if (node.inputs.size() < 2) return std::nullopt;
    const Known b = operand(node, 1, index);
    if (op == "and" || op == "or") {
      const Expr decisive(op == "or" ? 1 : 0);
      if ((a && *a == decisive) || (b && *b == decisive)) return decisive;
      if (a && *a == Expr(1) - decisive) return b;
      return b && *b == Expr(1) - decisive ? a : std::nullopt;
    }
    if (op == "where") {
      const Known c = operand(node, 2, index);
      if (b && c && *b == *c) return b;
      if (!a || !a->is_constant()) return std::nullopt;
      return *a == Expr(0) ? c : b;
    }
    if (!a || !b) return std::nullopt;
    if (op == "add") return *a + *b;
    if (op == "sub") return *a - *b;
    if (op == "mul") return *a * *b;
    if (op == "min") return min(*a, *b);
    if (op == "max") return max(*a, *b);
    if (op == "div" && known_nonnegative(*a) && known_less(Expr(0), *b)) return floor_div(*a, *b);
    if (op == "mod" && known_less(Expr(0), *b)) return floor_mod(*a, *b);
    if (op == "equal") return equals(*a, *b);
    if (op == "xor") return negated(equals(*a, *b));
    if (op == "less") return less(*a, *b);
    if (op == "less_equal") return negated(less(*b, *a));
    if (op == "greater") return less(*b, *a);
    if (op == "greater_equal") return negated(less(*a, *b));
    return std::nullopt;
  }

  Known from_movement(const Node& node, const Index& index) {
    const Value* x = node.inputs.at(0);
    const std::string_view op = node.op->name;
    if (op == "reshape") return read(x, unflatten(flatten(index, node.output()->type.shape), x->type.shape));
    if (op == "expand") return operand(node, 0, index);
    if (op == "transpose") {
      const auto& perm = node.get<std::vector<std::int64_t>>("perm");
      Index at(index.size());
      for (std::size_t i = 0; i < index.size(); ++i) at[static_cast<std::size_t>(perm[i])] = index[i];
      return read(x, at);
    }
    if (op == "slice") {
      Index at(index.size());
      for (std::size_t i = 0; i < index.size(); ++i)
        at[i] = node.get<std::vector<Expr>>("starts")[i] + index[i] * Expr(node.get<std::vector<std::int64_t>>("steps")[i]);
      return read(x, at);
    }
    return op == "concat" ? from_concat(node, index) : std::nullopt;
  }

  Known from_concat(const Node& node, const Index& index) {
    const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
    std::vector<Expr> offsets{Expr(0)};
    for (const Value* piece : node.inputs) offsets.push_back(offsets.back() + piece->type.shape[axis]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!known_less_equal(offsets[i], index[axis]) || !known_less(index[axis], offsets[i + 1])) continue;
      Index at = index;
      at[axis] = index[axis] - offsets[i];
      return read(node.inputs[i], at);
    }
    // One formula for all pieces: that of any piece which the others agree with.
    const std::string name = "$c" + std::to_string(++fresh_);
    std::vector<Expr> inside;
    std::vector<Expr> formulas;
    for (const Value* piece : node.inputs) {
      Index at = index;
      at[axis] = Expr::axis(name, piece->type.shape[axis]);
      const Known formula = read(piece, at);
      if (!formula) return std::nullopt;
      inside.push_back(at[axis]);
      formulas.push_back(*formula);
    }
    for (std::size_t i = 0; i < formulas.size(); ++i) {
      const auto moved = [&](const Expr& to) { return formulas[i].substitute({{name, to - offsets[i]}}); };
      bool agree = true;
      for (std::size_t j = 0; agree && j < formulas.size(); ++j) agree = i == j || moved(inside[j] + offsets[j]) == formulas[j];
      if (agree) return moved(index[axis]);
    }
    return std::nullopt;
  }

  Known from_indexing(const Node& node, const Index& index) {
    const Value *data = node.inputs.at(0), *indices = node.inputs.at(1);
    const auto wrapped = [&](const Known& at, std::size_t axis) -> Known {
      if (!at || known_nonnegative(*at)) return at;
      return known_less(*at, Expr(0)) ? Known(*at + data->type.shape[axis]) : std::nullopt;
    };
    if (is(&node, "gather_nd")) {
      const auto batch = static_cast<std::size_t>(node.get<std::int64_t>("batch_dims"));
      const Shape& shape = indices->type.shape;
      if (shape.empty() || !shape.back().is_constant()) return std::nullopt;
      const auto depth = static_cast<std::size_t>(shape.back().value());
      Index at(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch));
      for (std::size_t i = 0; i < depth; ++i) {
        Index where(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(shape.size() - 1));
        where.push_back(Expr(static_cast<std::int64_t>(i)));
        const Known position = wrapped(read(indices, where), batch + i);
        if (!position) return std::nullopt;
        at.push_back(*position);
      }
      at.insert(at.end(), index.begin() + static_cast<std::ptrdiff_t>(shape.size() - 1), index.end());
      return read(data, at);
    }
    const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
    if (is(&node, "gather_elements")) {
      const Known position = wrapped(read(indices, index), axis);
      if (!position) return std::nullopt;
      Index at = index;
      at[axis] = *position;
      return read(data, at);
    }
    if (!is(&node, "gather")) return std::nullopt;
    const auto from = index.begin() + static_cast<std::ptrdiff_t>(axis),
               to = from + static_cast<std::ptrdiff_t>(indices->type.rank());
    const Known position = wrapped(read(indices, Index(from, to)), axis);
    if (!position) return std::nullopt;
    Index at(index.begin(), from);
    at.push_back(*position);
    at.insert(at.end(), to, index.end());
    return read(data, at);
  }

  // Reductions over axes along which the operand is constant.
  Known from_reduction(const Node& node, const Index& index) {
    const std::string_view op = node.op->name;
    if (op != "reduce_max" && op != "reduce_min" && op != "reduce_sum") return std::nullopt;
    const auto& axes = node.get<std::vector<std::int64_t>>("axes");
    const bool keep = node.get<std::int64_t>("keepdims") != 0;
    const Shape& shape = node.inputs[0]->type.shape;
    Index at;
    Expr count(1);
    std::vector<std::string> names;
    for (std::size_t i = 0, next = 0; i < shape.size(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
      if (reduced) {
        names.push_back("$c" + std::to_string(++fresh_));
        at.push_back(Expr::axis(names.back(), shape[i]));
        count *= shape[i];
      } else {
        at.push_back(index.at(next));
      }
      if (!reduced || keep) ++next;
    }
    if (!known_less(Expr(0), count)) return std::nullopt;
    const Known e = read(node.inputs[0], at);
    if (!e || std::any_of(names.begin(), names.end(), [&](const std::string& n) { return e->uses(n); })) return std::nullopt;
    return op == "reduce_sum" ? *e * count : *e;
  }

  // Running sums of what does not depend on the axis.
  Known from_cumsum(const Node& node, const Index& index) {
    const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
    const std::string name = "$c" + std::to_string(++fresh_);
    Index at = index;
    at[axis] = Expr::axis(name, node.output()->type.shape[axis]);
    const Known e = read(node.inputs[0], at);
    if (!e || e->uses(name)) return std::nullopt;
    const Expr before =
        node.get<std::int64_t>("reverse") != 0 ? node.output()->type.shape[axis] - 1 - index[axis] : index[axis];
    return *e * (node.get<std::int64_t>("exclusive") != 0 ? before : before + 1);
  }

  int steps_ = 0, fresh_ = 0;
};

}  // namespace

std::string position_name(std::size_t axis) { return "$" + std::to_string(axis); }

std::vector<Expr> positions(const Shape& shape) {
  std::vector<Expr> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(Expr::axis(position_name(i), shape[i]));
  return axes;
}

std::optional<Expr> element(const Value* value, const std::vector<Expr>& index) { return Reader().read(value, index); }

std::optional<Ramp> ramp_of(const Expr& e, std::size_t rank) {
  Ramp ramp;
  ramp.start = e;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::string name = position_name(i);
    if (!e.uses(name)) continue;
    const auto step = e.coefficient(name);
    if (ramp.axis || !step) return std::nullopt;
    ramp.axis = i;
    ramp.step = *step;
    ramp.start = e.substitute({{name, Expr(0)}});
  }
  if (ramp.axis && ramp.step.uses(position_name(*ramp.axis))) return std::nullopt;
  return ramp;
}

}  // namespace oclc
