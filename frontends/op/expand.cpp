#include "frontends/op/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/ops/op_list.h"

namespace oclc::custom {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;

struct Sign {
  std::string_view sign, op;
};
constexpr Sign kBinary[] = {{"+", "add"},  {"-", "sub"},     {"*", "mul"},         {"/", "div"},    {"%", "mod"},
                            {"<", "less"}, {">", "greater"}, {"<=", "less_equal"}, {"==", "equal"}, {">=", "greater_equal"},
                            {"&&", "and"}, {"||", "or"}};

std::string_view op_of(std::string_view sign) {
  for (const Sign& row : kBinary) {
    if (row.sign == sign) return row.op;
  }
  return {};
}

}  // namespace

Expansion::Expansion(Builder& builder, const CustomOp& op, const std::vector<Value*>& inputs, const Attributes& attributes)
    : b_(builder), op_(op) {
  for (const AttributeRow& row : op.attributes) {
    const auto given = attributes.find(row.name);
    if (given == attributes.end() && row.required)
      fail(op.place, fmt::format("attribute '{}' of {}", row.name, op.name), "none");
    Attribute value = given == attributes.end() ? row.value : given->second;
    if (std::holds_alternative<double>(row.value) && std::holds_alternative<std::int64_t>(value))
      value = static_cast<double>(std::get<std::int64_t>(value));
    if (value.index() != row.value.index())
      fail(op.place, fmt::format("attribute '{}' of {} as the operator declares it", row.name, op.name), "another type");
    attributes_.emplace(row.name, std::move(value));
  }
  for (const auto& [name, value] : attributes) {
    if (!op.attribute(name)) fail(op.place, fmt::format("attributes that {} has", op.name), fmt::format("'{}'", name));
  }
  bind(inputs);
  check_conditions();
}

void Expansion::fail(const Place& place, std::string wanted, std::string found, std::string advice) const {
  const std::string dims = found_dims();
  if (!dims.empty()) found += " (" + dims + ")";
  fail_at(op_.file, place, std::move(wanted), std::move(found), std::move(advice));
}

std::string Expansion::found_dims() const {
  std::string text;
  for (const auto& [name, dim] : dims_) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, dim.first.text());
  return text;
}

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
  for (const Operand& operand : op_.in) {
    const auto type = types_.find(operand.type);
    if (type != types_.end() && is_float(type->second)) {
      number_type_ = type->second;
      break;
    }
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
  if (std::find(legal.begin(), legal.end(), dtype) != legal.end()) return;
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

DType Expansion::type_of(const Operand& operand) const {
  if (const auto fixed = dtype_of(operand.type)) return *fixed;
  const auto bound = types_.find(operand.type);
  return bound == types_.end() ? number_type_ : bound->second;
}

std::vector<Value*> Expansion::run() {
  for (const Line& l : op_.lines) line(l);
  std::vector<Value*> results;
  for (const Operand& output : op_.out) results.push_back(arrays_.at(output.name).value);
  return results;
}

void Expansion::line(const Line& line) {
  extents_.clear();
  order_.clear();
  const Operand* output = op_.output(line.target.name);
  const auto& positions = line.target.parts;
  Shape declared;
  if (output) {
    for (const Formula& dim : output->dims) declared.push_back(size(dim));
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool plain = positions[i].form == Form::name && !arrays_.count(positions[i].name) &&
                       !dims_.count(positions[i].name) && !attributes_.count(positions[i].name);
    if (!plain) continue;
    order_.push_back(positions[i].name);
    if (output) note_extent(positions[i].name, declared[i], fmt::format("'{}'", line.target.name), positions[i].place);
  }
  for (const Formula& position : positions) find_extents(position);
  find_extents(line.value);
  if (line.adds) {
    Value* sums = accumulated(line, *output);
    Array& array = arrays_[line.target.name];
    array.value = array.value ? b_.add(array.value, sums) : sums;
    array.dims = std::move(declared);
    return;
  }
  Array array{result(line, output), {}};
  array.dims = output ? declared : Shape();
  if (!output) {
    for (const Formula& position : positions) array.dims.push_back(extents_.at(position.name).first);
  }
  arrays_[line.target.name] = std::move(array);
}

Value* Expansion::result(const Line& line, const Operand* output) {
  const Term term = eval(line.value);
  const Names left(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(line.target.parts.size()));
  const DType dtype = output ? type_of(*output) : number_type_;
  Value* value = term.known() ? materialised(term, dtype, line.value.place) : term.value;
  if (!term.axes.empty() || (!left.empty() && value->type.rank() > 0)) {
    Term whole = term;
    whole.value = value;
    value = arranged_to(whole, left);
  }
  if (!left.empty()) value = spread(value, left);
  if (!output) return value;
  Shape named;
  for (const Formula& dim : output->dims) named.push_back(size(dim));
  return fitted(b_.cast(value, dtype), *output, named, line.target.place);
}

Value* Expansion::fitted(Value* value, const Operand& output, const Shape& named, const Place& place) {
  const Shape& own = value->type.shape;
  Shape wanted = named;
  if (output.leading && own.size() > named.size())
    wanted.insert(wanted.begin(), own.begin(), own.end() - static_cast<std::ptrdiff_t>(named.size()));
  if (own == wanted) return value;
  bool repeats = own.size() <= wanted.size();
  for (std::size_t i = 0; repeats && i < own.size(); ++i) {
    const Expr &a = own[own.size() - 1 - i], &b = wanted[wanted.size() - 1 - i];
    repeats = a == b || a == Expr(1);
  }
  if (!repeats)
    fail(place, fmt::format("'{}' of {}, as it is declared", output.name, oclc::text_of(wanted)), value->type.text());
  return b_.expand(value, wanted);
}

Value* Expansion::accumulated(const Line& line, const Operand& output) {
  const auto& positions = line.target.parts;
  Names before, behind;
  Term at;
  std::size_t axis = 0;
  const Place* place = nullptr;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool plain =
        positions[i].form == Form::name && std::find(order_.begin(), order_.end(), positions[i].name) != order_.end();
    if (plain) {
      (place ? behind : before).push_back(positions[i].name);
      continue;
    }
    axis = i;
    place = &positions[i].place;
  }
  // Indices of the computed position come behind those on the left.
  const std::function<void(const Formula&)> add_indices = [&](const Formula& f) {
    for (const Formula& part : f.parts) add_indices(part);
    if (f.form == Form::name && extents_.count(f.name) && std::find(order_.begin(), order_.end(), f.name) == order_.end())
      order_.push_back(f.name);
  };
  add_indices(positions[axis]);
  at = eval(positions[axis]);
  if (at.known() || !is_integer(at.value->type.dtype) || at.leading() > 0)
    fail(*place, "an integer position that is computed", at.known() ? "a number" : at.value->type.text());
  Term value = eval(line.value);
  const DType dtype = type_of(output);
  value.value = b_.cast(value.known() ? materialised(value, dtype, line.value.place) : value.value, dtype);
  if (value.leading() > 0) fail(line.value.place, "a value with indices alone", value.value->type.text());
  Names order = before;
  const Names own = in_order({at.axes.begin(), at.axes.end()});
  order.insert(order.end(), own.begin(), own.end());
  order.insert(order.end(), behind.begin(), behind.end());
  for (const std::string& index : value.axes) {
    if (std::find(order.begin(), order.end(), index) == order.end())
      fail(line.value.place, "indices of the left side", fmt::format("'{}'", index));
  }
  Value* indices = arranged_to(at, own);
  Value* updates = spread(arranged_to(value, order), order);
  return b_.call("scatter_add", {indices, updates},
                 {{"axis", static_cast<std::int64_t>(axis)}, {"size", std::vector<Expr>{size(output.dims[axis])}}});
}

Term Expansion::eval(const Formula& f) {
  switch (f.form) {
    case Form::number: {
      Term term;
      term.number = f.number;
      term.whole = f.whole;
      return term;
    }
    case Form::text: {
      Term term;
      term.text = f.name;
      return term;
    }
    case Form::name:
      return name(f);
    case Form::element:
    case Form::padded:
      return element(f);
    case Form::call:
      return call(f);
    case Form::reduce:
      return reduce(f);
    case Form::unary:
      return apply(f.name == "-" ? "neg" : "not", {eval(f.parts[0])}, f.place);
    case Form::binary: {
      std::vector<Term> terms;
      terms.push_back(eval(f.parts[0]));
      terms.push_back(eval(f.parts[1]));
      if (f.name == "!=") return apply("not", {apply("equal", std::move(terms), f.place)}, f.place);
      return apply(op_of(f.name), std::move(terms), f.place);
    }
    case Form::choice:
      return choice(f);
  }
  return {};
}

Term Expansion::name(const Formula& f) {
  Term term;
  if (const auto array = arrays_.find(f.name); array != arrays_.end()) {
    term.value = array->second.value;
    return term;
  }
  if (std::find(order_.begin(), order_.end(), f.name) != order_.end()) {
    term.value = ramp(f.name);
    term.axes = {f.name};
    return term;
  }
  if (const auto dim = dims_.find(f.name); dim != dims_.end()) {
    term.whole = true;
    if (dim->second.first.is_constant()) {
      term.number = static_cast<double>(dim->second.first.value());
    } else {
      term.value = b_.exprs({dim->second.first}, {});
    }
    return term;
  }
  const auto attribute = attributes_.find(f.name);
  if (attribute == attributes_.end())
    fail(f.place, fmt::format("input '{}', which the formula uses here", f.name), "none", "has(..) ? .. : .. asks for it");
  if (const auto* text = std::get_if<std::string>(&attribute->second)) {
    term.text = *text;
  } else if (const auto* whole = std::get_if<std::int64_t>(&attribute->second)) {
    term.number = static_cast<double>(*whole);
    term.whole = true;
  } else {
    term.number = std::get<double>(attribute->second);
  }
  return term;
}

Term Expansion::call(const Formula& f) {
  Term term;
  term.whole = true;
  if (f.name == "has" || f.name == "len") {
    const std::string& operand = f.parts[0].name;
    term.number = f.name == "has" ? static_cast<double>(arrays_.count(operand)) : static_cast<double>(counts_[operand]);
    return term;
  }
  std::vector<Term> terms;
  for (const Formula& part : f.parts) terms.push_back(eval(part));
  const auto dtype = dtype_of(f.name);
  if (!dtype) return apply(f.name, std::move(terms), f.place);
  term = terms[0];
  term.value = term.known() ? materialised(term, *dtype, f.place) : b_.cast(term.value, *dtype);
  return term;
}

// Of a condition that is known only the side that it chooses is read: the other may use what was left out.
Term Expansion::choice(const Formula& f) {
  Term condition = eval(f.parts[0]);
  if (condition.text) fail(f.parts[0].place, "a condition", "a text");
  if (condition.known()) return eval(f.parts[condition.number != 0 ? 1 : 2]);
  std::vector<Term> terms;
  terms.push_back(std::move(condition));
  terms.push_back(eval(f.parts[1]));
  terms.push_back(eval(f.parts[2]));
  return apply("where", std::move(terms), f.place);
}

std::vector<Value*> build(Builder& builder, const CustomOp& op, const std::vector<Value*>& inputs,
                          const Attributes& attributes) {
  return Expansion(builder, op, inputs, attributes).run();
}

}  // namespace oclc::custom
