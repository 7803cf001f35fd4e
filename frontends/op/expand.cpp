#include "frontends/op/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/ops/op_list.h"

namespace oclc::custom {
namespace {

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
  for (const Formula& position : positions) {
    const bool index = std::find(order_.begin(), order_.end(), position.name) != order_.end();
    if (index && !extents_.count(position.name))
      fail(position.place, fmt::format("the extent of '{}': a place where it stands alone as an index", position.name), "none");
  }
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

}  // namespace oclc::custom
