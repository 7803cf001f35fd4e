#include "frontends/op/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/ops/op_list.h"

namespace oclc::custom {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

}  // namespace

void Expansion::bind(const std::vector<Value*>& inputs) {
  std::vector<std::pair<const Operand*, Value*>> bound;
  std::size_t at = 0;
  for (const Operand& operand : op_.in) {
    if (operand.variable) {
      const std::size_t count = inputs.size() > at ? inputs.size() - at : 0;
      if (count == 0 && !operand.optional) fail(operand.place, fmt::format("one tensor or more as '{}'", operand.name), "none");
      counts_[operand.name] = count;
      for (; at < inputs.size(); ++at) {
        if (!inputs[at]) fail(operand.place, fmt::format("a tensor for each '{}'", operand.name), "one left out");
        bound.emplace_back(&operand, inputs[at]);
      }
      continue;
    }
    Value* value = at < inputs.size() ? inputs[at] : nullptr;
    ++at;
    if (!value && !operand.optional) fail(operand.place, fmt::format("input '{}' of {}", operand.name, op_.name), "none");
    if (value) bound.emplace_back(&operand, value);
  }
  if (inputs.size() > at)
    fail(op_.place, fmt::format("{} {} of {}", at, at == 1 ? "input" : "inputs", op_.name), std::to_string(inputs.size()));
  for (auto& [operand, value] : bound) bind_type(*operand, value);
  for (const bool names : {true, false}) {
    for (auto& [operand, value] : bound) bind_dims(*operand, value, names);
  }
  for (const Operand& operand : op_.in) {
    const auto type = types_.find(operand.type);
    if (type != types_.end() && is_float(type->second)) {
      number_type_ = type->second;
      break;
    }
  }
  for (const Operand& operand : op_.in) {
    const std::size_t before = fitted_.size();
    for (auto& [of, value] : bound) {
      if (of == &operand) fitted_.push_back(value);
    }
    if (fitted_.size() == before && !operand.variable) fitted_.push_back(nullptr);
  }
  if (op_.in_code()) return;
  std::map<const Operand*, std::vector<Value*>> members;
  for (const auto& [operand, value] : bound) members[operand].push_back(value);
  for (const auto& [operand, values] : members) {
    Array array{values[0], {}};
    for (const Formula& dim : operand->dims) array.dims.push_back(size(dim));
    if (operand->variable) {
      std::vector<Value*> rows;
      for (Value* value : values) {
        Shape shape = value->type.shape;
        shape.insert(shape.end() - static_cast<std::ptrdiff_t>(array.dims.size()), Expr(1));
        rows.push_back(b_.reshape(value, std::move(shape)));
      }
      const auto axis = static_cast<std::int64_t>(values[0]->type.rank() - array.dims.size());
      array.value = rows.size() == 1 ? rows[0] : b_.concat(rows, axis);
      array.dims.insert(array.dims.begin(), Expr(static_cast<std::int64_t>(values.size())));
    }
    arrays_[operand->name] = std::move(array);
  }
  for (const auto& [name, value] : attributes_) {
    if (const auto* whole = std::get_if<Ints>(&value)) {
      arrays_[name] = {b_.ints(*whole), {Expr(static_cast<std::int64_t>(whole->size()))}};
    } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      const auto count = static_cast<std::int64_t>(numbers->size());
      HostTensor tensor(number_type_, {count});
      for (std::int64_t i = 0; i < count; ++i) tensor.set(i, (*numbers)[static_cast<std::size_t>(i)]);
      arrays_[name] = {b_.constant(std::move(tensor)), {Expr(count)}};
    }
  }
}

void Expansion::bind_type(const Operand& operand, const Value* value) {
  const DType dtype = value->type.dtype;
  if (const auto fixed = dtype_of(operand.type)) {
    if (*fixed != dtype) fail(operand.place, fmt::format("{} as '{}'", operand.type, operand.name), value->type.text());
    return;
  }
  const std::vector<DType>& legal = op_.types.find(operand.type)->second;
  const auto [at, fresh] = types_.emplace(operand.type, dtype);
  if (at->second != dtype)
    fail(operand.place, fmt::format("{} as '{}', as {} is", name_of(at->second), operand.name, operand.type),
         value->type.text());
  const auto is_legal = [&](DType type) { return std::find(legal.begin(), legal.end(), type) != legal.end(); };
  // The host evaluates what computes with float in f64 as well; kernels refuse it.
  if (is_legal(dtype) || (op_.for_host && dtype == DType::f64 && is_legal(DType::f32))) return;
  std::string names;
  for (const DType type : legal) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(type));
  fail(operand.place, fmt::format("{} of one of {}", operand.type, names),
       fmt::format("'{}' of {}", operand.name, value->type.text()));
}

// First the names that dimensions are, then those that are reckoned from them.
void Expansion::bind_dims(const Operand& operand, Value*& value, bool names) {
  const std::size_t rank = value->type.rank(), named = operand.dims.size();
  if (operand.leading ? rank < named : rank != named)
    fail(operand.place,
         fmt::format("{}{} as '{}'", operand.leading ? "at least " : "",
                     named == 1 ? "one dimension" : fmt::format("{} dimensions", named), operand.name),
         value->type.text());
  Shape wanted = value->type.shape;
  std::vector<std::pair<const Formula*, std::string>> reasons;
  for (std::size_t i = 0; i < named; ++i) {
    const Formula& dim = operand.dims[i];
    Expr& own = wanted[rank - named + i];
    const bool name = dim.form == Form::name && !op_.attribute(dim.name);
    if (name != names) continue;
    if (!name) {
      own = size(dim);
      continue;
    }
    const auto [at, fresh] = dims_.emplace(dim.name, std::pair{own, operand.name});
    own = at->second.first;
  }
  value = b_.fit(value, wanted);
  for (std::size_t i = 0; i < named; ++i) {
    const Formula& dim = operand.dims[i];
    const std::size_t axis = rank - named + i;
    if (value->type.shape[axis] == wanted[axis]) continue;
    const auto from = dims_.find(dim.name);
    const bool name = dim.form == Form::name && from != dims_.end();
    fail_at(op_.file, dim.place,
            fmt::format("{} = {}{}", text_of(dim), wanted[axis].text(),
                        name ? fmt::format(", as '{}' has it", from->second.second) : ""),
            fmt::format("{} in '{}' of {}{}", value->type.shape[axis].text(), operand.name, value->type.text(),
                        found_dims().empty() ? "" : " (" + found_dims() + ")"));
  }
}

Expr size_of(const CustomOp& op, const Formula& f, const Substitution& dims, const Attributes& attributes) {
  const auto fail = [&](std::string wanted, std::string advice = {}) {
    fail_at(op.file, f.place, std::move(wanted), fmt::format("'{}'", text_of(f)), std::move(advice));
  };
  const auto part = [&](std::size_t i) { return size_of(op, f.parts[i], dims, attributes); };
  switch (f.form) {
    case Form::number:
      return Expr(static_cast<std::int64_t>(f.number));
    case Form::name: {
      if (const auto dim = dims.find(f.name); dim != dims.end()) return dim->second;
      const auto attribute = attributes.find(f.name);
      const auto* whole = attribute == attributes.end() ? nullptr : std::get_if<std::int64_t>(&attribute->second);
      if (!whole) fail("a dimension that is known, or an integer attribute", "the operand that has it may have been left out");
      if (*whole > kLargestSize || *whole < -kLargestSize) fail("a size below 2^40");
      return Expr(*whole);
    }
    case Form::unary:
      if (f.name == "-") return -part(0);
      break;
    case Form::call:
      return f.name == "min" ? min(part(0), part(1)) : max(part(0), part(1));
    case Form::binary: {
      const Expr a = part(0), b = part(1);
      if (f.name == "+") return a + b;
      if (f.name == "-") return a - b;
      if (f.name == "*") return a * b;
      if (f.name != "/" && f.name != "%") break;
      if (b == Expr(0)) fail("a divisor that is not 0");
      return f.name == "/" ? floor_div(a, b) : floor_mod(a, b);
    }
    default:
      break;
  }
  fail("a size");
  return {};
}

Expr Expansion::size(const Formula& f) const {
  Substitution dims;
  for (const auto& [name, dim] : dims_) dims.emplace(name, dim.first);
  return size_of(op_, f, dims, attributes_);
}

// Truth of a condition: known to hold, known not to, or open.
void Expansion::check_conditions() {
  const std::function<std::optional<bool>(const Formula&)> holds = [&](const Formula& f) -> std::optional<bool> {
    if (f.form == Form::binary && (f.name == "&&" || f.name == "||")) {
      const bool both = f.name == "&&";
      const auto a = holds(f.parts[0]), b = holds(f.parts[1]);
      if ((a && *a != both) || (b && *b != both)) return !both;
      return a && b ? std::optional(both) : std::nullopt;
    }
    if (f.form == Form::unary && f.name == "!") {
      const auto a = holds(f.parts[0]);
      return a ? std::optional(!*a) : std::nullopt;
    }
    if (f.form != Form::binary) fail(f.place, "a comparison", fmt::format("'{}'", text_of(f)));
    const Formula &x = f.parts[0], &y = f.parts[1];
    const auto number_of = [&](const Formula& side) -> const Attribute* {
      const auto at = side.form == Form::name ? attributes_.find(side.name) : attributes_.end();
      return at == attributes_.end() || std::holds_alternative<std::int64_t>(at->second) ? nullptr : &at->second;
    };
    if (x.form == Form::text || y.form == Form::text || number_of(x) || number_of(y)) {
      const Term truth = eval(f);
      return truth.number != 0;
    }
    const Expr a = size(x), b = size(y);
    const auto decide = [&](bool yes, bool no) -> std::optional<bool> {
      return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
    };
    const bool apart = known_less(a, b) || known_less(b, a);
    if (f.name == "==") return decide(a == b, apart);
    if (f.name == "!=") return decide(apart, a == b);
    if (f.name == "<") return decide(known_less(a, b), known_less_equal(b, a));
    if (f.name == "<=") return decide(known_less_equal(a, b), known_less(b, a));
    if (f.name == ">") return decide(known_less(b, a), known_less_equal(a, b));
    if (f.name == ">=") return decide(known_less_equal(b, a), known_less(a, b));
    fail(f.place, "a comparison", fmt::format("'{}'", text_of(f)));
  };
  for (const Condition& condition : op_.conditions) {
    const std::optional<bool> truth = holds(condition.formula);
    if (truth == true) continue;
    fail(condition.formula.place, fmt::format("{} of {}", condition.text, op_.name),
         truth ? "sizes or attributes where it does not hold" : "sizes that are open",
         truth ? "" : "give the sizes with --dim");
  }
}

}  // namespace oclc::custom
