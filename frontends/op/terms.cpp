#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ops/op_list.h"
#include "compiler/support/integer_of.h"
#include "frontends/op/expand.h"
#include "frontends/op/product.h"

namespace oclc::custom {
namespace {

// The axes that no index names have letters from here down, the last axis the first of them; indices have letters from
// kFirstLetter up.
constexpr char kLastLeading = 'z';
constexpr char kFirstLetter = '!';

void flatten(const Formula& f, std::vector<const Formula*>& factors) {
  if (f.form != Form::binary || f.name != "*") return factors.push_back(&f);
  flatten(f.parts[0], factors);
  flatten(f.parts[1], factors);
}

bool uses_any(const Term& term, const Names& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return std::find(term.axes.begin(), term.axes.end(), n) != term.axes.end(); });
}

}  // namespace

// Core operators of numbers that are known are computed.
Term Expansion::apply(std::string_view op, std::vector<Term> terms, const Place& place) {
  if (std::any_of(terms.begin(), terms.end(), [](const Term& t) { return t.text.has_value(); })) {
    if (op != "equal" || !terms[0].text || !terms[1].text)
      fail(place, "numbers", "a text", "texts may be compared with == and !=");
    Term truth;
    truth.number = *terms[0].text == *terms[1].text ? 1 : 0;
    truth.whole = true;
    return truth;
  }
  const OpDef* def = find_op(op);
  const bool all_known = std::all_of(terms.begin(), terms.end(), [](const Term& t) { return t.known(); });
  const bool whole = std::all_of(terms.begin(), terms.end(), [](const Term& t) { return t.whole; });
  const ScalarOp& scalar = *def->scalar;
  if (all_known && (scalar.on_float || (whole && scalar.on_int))) {
    terms.resize(3);
    Term result;
    result.whole = scalar.result_is_bool || (whole && scalar.on_int != nullptr);
    if (whole && scalar.on_int) {
      const auto at = [&](std::size_t i) { return integer_of(terms[i].number); };
      result.number = static_cast<double>(scalar.on_int(at(0), at(1), at(2)));
    } else {
      result.number = scalar.on_float(terms[0].number, terms[1].number, terms[2].number);
    }
    return result;
  }
  same_type(terms, op == "where" ? 1 : 0, place);
  if (op == "where" && terms[0].known()) return terms[terms[0].number != 0 ? 1 : 2];
  if (op == "where" && terms[0].value->type.dtype != DType::boolean) terms[0].value = b_.cast(terms[0].value, DType::boolean);
  std::set<std::string> axes;
  for (const Term& t : terms) axes.insert(t.axes.begin(), t.axes.end());
  Term result;
  result.axes = in_order(axes);
  std::vector<Value*> values;
  for (const Term& t : terms) values.push_back(arranged_to(t, result.axes));
  try {
    result.value = b_.call(op, std::move(values));
  } catch (const CompileError& error) {
    fail(place, error.parts().wanted, error.parts().found, error.parts().advice);
  }
  // An operand whose named axes broadcast in front: they are in the result all the same, if only of the others.
  return result;
}

// Numbers take the type of the others; truth values and integers beside floats become floats.
void Expansion::same_type(std::vector<Term>& terms, std::size_t first, const Place& place) {
  std::optional<DType> type;
  for (std::size_t i = first; i < terms.size(); ++i) {
    if (terms[i].known()) continue;
    const DType own = terms[i].value->type.dtype;
    if (!type || *type == own || (*type == DType::boolean) || (is_integer(*type) && is_float(own))) {
      type = own;
      continue;
    }
    if (own == DType::boolean || (is_float(*type) && is_integer(own))) continue;
    fail(place, "operands of one type", fmt::format("{} and {}", name_of(*type), name_of(own)),
         fmt::format("{}(..) and {}(..) convert", name_of(*type), name_of(own)));
  }
  for (std::size_t i = first; i < terms.size(); ++i) {
    const DType wanted = type.value_or(number_type_);
    terms[i].value = terms[i].known() ? materialised(terms[i], wanted, place) : b_.cast(terms[i].value, wanted);
  }
}

Value* Expansion::materialised(const Term& term, DType dtype, const Place& place) {
  if (term.text) fail(place, "a number", "a text");
  const bool fits = is_float(dtype) || (std::floor(term.number) == term.number && std::fabs(term.number) < 9e15);
  if (!fits && dtype != DType::boolean)
    fail(place, fmt::format("a whole number beside {}", name_of(dtype)), fmt::format("{}", term.number),
         "f32(..) converts the other");
  return b_.scalar(dtype, term.number);
}

Names Expansion::in_order(const std::set<std::string>& axes) const {
  Names list;
  for (const std::string& index : order_) {
    if (axes.count(index)) list.push_back(index);
  }
  return list;
}

// The value with axes in `order`, which has all of the term's. Axes that it lacks have size 1, unless nothing stands before
// them.
Value* Expansion::arranged_to(const Term& term, const Names& order) {
  const std::size_t leading = term.leading();
  Ints perm;
  Shape shape;
  for (std::size_t i = 0; i < leading; ++i) {
    perm.push_back(static_cast<std::int64_t>(i));
    shape.push_back(term.value->type.shape[i]);
  }
  for (const std::string& index : order) {
    const auto at = std::find(term.axes.begin(), term.axes.end(), index);
    if (at == term.axes.end()) {
      if (!shape.empty()) shape.emplace_back(1);
      continue;
    }
    perm.push_back(static_cast<std::int64_t>(leading) + (at - term.axes.begin()));
    shape.push_back(term.value->type.shape[static_cast<std::size_t>(perm.back())]);
  }
  Value* value = std::is_sorted(perm.begin(), perm.end()) ? term.value : b_.transpose(term.value, perm);
  return value->type.shape == shape ? value : b_.reshape(value, std::move(shape));
}

Value* Expansion::spread(Value* value, const Names& order) {
  Shape shape = value->type.shape;
  if (shape.size() < order.size()) shape.insert(shape.begin(), order.size() - shape.size(), Expr(1));
  const std::size_t leading = shape.size() - order.size();
  for (std::size_t i = 0; i < order.size(); ++i) shape[leading + i] = extents_.at(order[i]).first;
  return value->type.shape == shape ? value : b_.expand(value, std::move(shape));
}

Term Expansion::reduce(const Formula& f) {
  const Names outer = order_;
  for (const std::string& index : f.indices) {
    order_.push_back(index);
    if (!extents_.count(index))
      fail(f.place, fmt::format("the extent of '{}': a place where it stands alone as an index", index), "none");
  }
  Term result;
  if (f.name == "sum") {
    result = sum(f.parts[0], f.indices);
  } else {
    Term body = eval(f.parts[0]);
    if (body.known()) {
      result = body;
    } else {
      std::set<std::string> axes(body.axes.begin(), body.axes.end());
      Ints reduced;
      for (std::size_t i = 0; i < body.axes.size(); ++i) {
        if (std::find(f.indices.begin(), f.indices.end(), body.axes[i]) == f.indices.end()) continue;
        reduced.push_back(static_cast<std::int64_t>(body.leading() + i));
        axes.erase(body.axes[i]);
      }
      Names left;
      for (const std::string& index : body.axes) {
        if (axes.count(index)) left.push_back(index);
      }
      if (body.value->type.dtype == DType::boolean) body.value = b_.cast(body.value, number_type_);
      if (f.name == "mean" && is_integer(body.value->type.dtype)) body.value = b_.cast(body.value, number_type_);
      result.value = reduced.empty() ? body.value : b_.reduce("reduce_" + f.name, body.value, reduced, false);
      result.axes = left;
    }
  }
  order_ = outer;
  return result;
}

Term Expansion::sum(const Formula& f, const Names& over) {
  std::vector<const Formula*> parts;
  flatten(f, parts);
  std::vector<Term> inside, outside;
  Names missing = over;
  for (const Formula* part : parts) {
    Term term = eval(*part);
    if (term.text) fail(part->place, "numbers", "a text");
    if (!term.known() && term.value->type.dtype == DType::boolean) term.value = b_.cast(term.value, number_type_);
    for (const std::string& index : term.axes) std::erase(missing, index);
    (!term.known() && uses_any(term, over) ? inside : outside).push_back(std::move(term));
  }
  // What is summed and does not change with an index counts as often as that has values.
  for (const std::string& index : missing) {
    const Expr& extent = extents_.at(index).first;
    Term count;
    count.whole = true;
    if (extent.is_constant()) {
      count.number = static_cast<double>(extent.value());
    } else {
      count.value = b_.exprs({extent}, {});
    }
    outside.push_back(std::move(count));
  }
  std::optional<Term> result;
  if (!inside.empty()) result = product(std::move(inside), over, f.place);
  for (Term& factor : outside) {
    if (!result) {
      result = std::move(factor);
    } else {
      std::vector<Term> both;
      both.push_back(std::move(factor));
      both.push_back(std::move(*result));
      result = apply("mul", std::move(both), f.place);
    }
  }
  return std::move(*result);
}

// The sum over `over` of a product. Two factors that share a summed index, one of which has another index beside, are a matrix
// product.
Term Expansion::product(std::vector<Term> factors, const Names& over, const Place& place) {
  same_type(factors, 0, place);
  const auto letter = [&](const std::string& index) {
    return static_cast<char>(kFirstLetter + (std::find(order_.begin(), order_.end(), index) - order_.begin()));
  };
  std::size_t leading = 0;
  for (const Term& factor : factors) leading = std::max(leading, factor.leading());
  if (order_.size() + leading > static_cast<std::size_t>(kLastLeading - kFirstLetter))
    fail(place, "fewer indices", std::to_string(order_.size()));
  const auto lettered = [&](const Term& term) {
    Letters letters;
    for (std::size_t i = 0; i < term.leading(); ++i)
      letters += static_cast<char>(kLastLeading - static_cast<int>(term.leading() - 1 - i));
    for (const std::string& index : term.axes) letters += letter(index);
    return Lettered{term.value, letters};
  };
  Letters kept;
  for (std::size_t i = 0; i < leading; ++i) kept += static_cast<char>(kLastLeading - static_cast<int>(leading - 1 - i));
  Names axes;
  for (const std::string& index : order_) {
    const bool used = std::any_of(factors.begin(), factors.end(), [&](const Term& t) { return uses_any(t, {index}); });
    if (!used || std::find(over.begin(), over.end(), index) != over.end()) continue;
    kept += letter(index);
    axes.push_back(index);
  }
  try {
    const auto needed_after = [&](std::size_t i) {
      Letters needed = kept;
      for (std::size_t k = i; k < factors.size(); ++k) needed += lettered(factors[k]).letters;
      return needed;
    };
    const bool floats = is_float(factors[0].value->type.dtype);
    Lettered left = lettered(factors[0]);
    if (factors.size() == 1 || floats) left = summed(b_, left, needed_after(1));
    for (std::size_t i = 1; i < factors.size(); ++i) {
      Lettered right = lettered(factors[i]);
      const Letters needed = needed_after(i + 1);
      const auto only = [&](const Lettered& a, const Lettered& b) {
        return std::any_of(a.letters.begin(), a.letters.end(),
                           [&](char c) { return !holds(b.letters, c) && holds(needed, c); });
      };
      const bool matrix = floats && (only(left, right) || only(right, left));
      if (floats) right = summed(b_, right, left.letters + needed);
      if (matrix) {
        left = product_of(b_, left, right, needed);
      } else {
        Letters all = left.letters;
        for (const char c : right.letters) {
          if (!holds(all, c)) all += c;
        }
        left = summed(b_, {b_.mul(arranged(b_, left, all), arranged(b_, right, all)), all}, needed);
      }
    }
    Term result;
    result.axes = axes;
    result.value = left.letters == kept ? left.value : arranged(b_, left, kept);
    return result;
  } catch (const CompileError& error) {
    if (error.parts().stage == "operator") throw;
    fail(place, error.parts().wanted, error.parts().found, error.parts().advice);
  }
}

}  // namespace oclc::custom
