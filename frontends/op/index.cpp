#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontends/op/expand.h"

namespace oclc::custom {
namespace {

constexpr double kLargestPosition = 9e15;

}  // namespace

// An array whose positions are worked off: what is cut leaves plain indices, dropped dimensions or values to gather by.
struct Expansion::Positions {
  Value* value = nullptr;
  std::size_t leading = 0;
  Shape dims;
  struct Position {
    std::string index;  // plain, if not empty
    bool dropped = false;
    Term at;  // gathered by, if neither
  };
  std::vector<Position> list;
};

void Expansion::note_extent(const std::string& index, const Expr& extent, const std::string& about, const Place& place) {
  const auto [at, fresh] = extents_.emplace(index, std::pair{extent, about});
  if (fresh || at->second.first == extent) return;
  fail(place, fmt::format("one extent of index '{}', {} in {}", index, at->second.first.text(), at->second.second),
       fmt::format("{} in {}", extent.text(), about));
}

// Where an index stands alone its extent is that of the dimension. What is left out is passed over.
void Expansion::find_extents(const Formula& f) {
  if (f.form == Form::choice) {
    find_extents(f.parts[0]);
    // Both sides of what may be unknown; of has(..) the side that will be read.
    const bool asks = f.parts[0].form == Form::call && (f.parts[0].name == "has" || f.parts[0].name == "len");
    if (asks) return find_extents(f.parts[eval(f.parts[0]).number != 0 ? 1 : 2]);
  }
  if (f.form == Form::element) {
    const auto array = arrays_.find(f.name);
    for (std::size_t i = 0; array != arrays_.end() && i < f.parts.size(); ++i) {
      const Formula& position = f.parts[i];
      const bool plain = position.form == Form::name && !arrays_.count(position.name) && !dims_.count(position.name) &&
                         !attributes_.count(position.name);
      if (plain) note_extent(position.name, array->second.dims[i], fmt::format("'{}'", f.name), position.place);
    }
  }
  for (const Formula& part : f.parts) find_extents(part);
}

std::optional<Linear> Expansion::linear(const Formula& f) const {
  const auto constant = [](const Expr& e) { return Linear{e, {}}; };
  const auto sum = [](Linear a, const Linear& b, std::int64_t sign) {
    a.constant += Expr(sign) * b.constant;
    for (const auto& [index, factor] : b.of) {
      Expr& own = a.of[index];
      own += Expr(sign) * factor;
      if (own == Expr(0)) a.of.erase(index);
    }
    return a;
  };
  switch (f.form) {
    case Form::number:
      if (!f.whole || f.number > kLargestPosition) return std::nullopt;
      return constant(Expr(static_cast<std::int64_t>(f.number)));
    case Form::name: {
      if (arrays_.count(f.name)) return std::nullopt;
      if (std::find(order_.begin(), order_.end(), f.name) != order_.end()) return Linear{0, {{f.name, Expr(1)}}};
      if (const auto dim = dims_.find(f.name); dim != dims_.end()) return constant(dim->second.first);
      const auto attribute = attributes_.find(f.name);
      const auto* whole = attribute == attributes_.end() ? nullptr : std::get_if<std::int64_t>(&attribute->second);
      if (!whole || std::fabs(static_cast<double>(*whole)) > kLargestPosition) return std::nullopt;
      return constant(Expr(*whole));
    }
    case Form::element: {
      const auto attribute = attributes_.find(f.name);
      const auto* list = attribute == attributes_.end() ? nullptr : std::get_if<Ints>(&attribute->second);
      const auto at = list ? linear(f.parts[0]) : std::nullopt;
      if (!at || !at->of.empty() || !at->constant.is_constant()) return std::nullopt;
      const std::int64_t i = at->constant.value();
      if (i < 0 || i >= static_cast<std::int64_t>(list->size())) return std::nullopt;
      const std::int64_t value = (*list)[static_cast<std::size_t>(i)];
      if (std::fabs(static_cast<double>(value)) > kLargestPosition) return std::nullopt;
      return constant(Expr(value));
    }
    case Form::unary: {
      const auto a = f.name == "-" ? linear(f.parts[0]) : std::nullopt;
      return a ? std::optional(sum({}, *a, -1)) : std::nullopt;
    }
    case Form::binary: {
      const auto a = linear(f.parts[0]), b = linear(f.parts[1]);
      if (!a || !b) return std::nullopt;
      if (f.name == "+") return sum(*a, *b, 1);
      if (f.name == "-") return sum(*a, *b, -1);
      if (f.name == "*" && (a->of.empty() || b->of.empty())) {
        const Expr& factor = a->of.empty() ? a->constant : b->constant;
        Linear result = a->of.empty() ? *b : *a;
        result.constant *= factor;
        for (auto& [index, own] : result.of) own *= factor;
        if (factor == Expr(0)) result.of.clear();
        return result;
      }
      const bool divides = (f.name == "/" || f.name == "%") && a->of.empty() && b->of.empty() && !(b->constant == Expr(0));
      if (!divides) return std::nullopt;
      return constant(f.name == "/" ? floor_div(a->constant, b->constant) : floor_mod(a->constant, b->constant));
    }
    default:
      return std::nullopt;
  }
}

// The lowest and the highest position.
void Expansion::range(const Linear& position, Expr& low, Expr& high) const {
  low = high = position.constant;
  for (const auto& [index, factor] : position.of) {
    const Expr far = factor * (extents_.at(index).first - 1);
    (known_nonnegative(factor) ? high : low) += far;
  }
}

void Expansion::check_inside(const Linear& position, const Expr& dim, const Formula& f, const Formula& at) const {
  Expr low, high;
  range(position, low, high);
  if (known_nonnegative(low) && known_less(high, dim)) return;
  fail(at.place, fmt::format("positions from 0 to {} of '{}'", (dim - 1).text(), f.name),
       fmt::format("{} to {} in '{}'", low.text(), high.text(), text_of(at)),
       fmt::format("pad({}, 0)[..] reads a 0 outside", f.name));
}

Value* Expansion::ramp(const std::string& index) { return b_.iota({extents_.at(index).first}, 0, DType::i64); }

void Expansion::cut(const Formula& f, Positions& p) {
  const std::size_t first = f.form == Form::padded ? 1 : 0, rank = p.value->type.rank();
  std::vector<std::optional<Linear>> linears;
  std::vector<Expr> before(rank, Expr(0)), behind(rank, Expr(0));
  bool pads = false;
  for (std::size_t i = 0; i < p.dims.size(); ++i) {
    const Formula& at = f.parts[first + i];
    std::optional<Linear> position = linear(at);
    if (position) {
      for (const auto& [index, factor] : position->of) {
        if (!extents_.count(index))
          fail(at.place, fmt::format("the extent of '{}': a place where it stands alone as an index", index), "none");
        if (!factor.is_constant() && !known_nonnegative(factor)) position.reset();
        if (!position) break;
      }
    }
    if (first == 1) {
      if (!position)
        fail(at.place, "in pad(..)[..] positions that are sums of indices and numbers", fmt::format("'{}'", text_of(at)));
      Expr low, high;
      range(*position, low, high);
      const std::size_t axis = p.leading + i;
      before[axis] = known_nonnegative(low) ? Expr(0) : max(Expr(0), -low);
      behind[axis] = known_less(high, p.dims[i]) ? Expr(0) : max(Expr(0), high - p.dims[i] + 1);
      pads = pads || !(before[axis] == Expr(0)) || !(behind[axis] == Expr(0));
      position->constant += before[axis];
      p.dims[i] = p.dims[i] + before[axis] + behind[axis];
    } else if (position) {
      check_inside(*position, p.dims[i], f, at);
    }
    linears.push_back(std::move(position));
  }
  if (pads) {
    const Term outside = eval(f.parts[0]);
    if (!outside.known() || outside.text)
      fail(f.parts[0].place, "a number that is known outside of the operand", fmt::format("'{}'", text_of(f.parts[0])));
    p.value = b_.pad(p.value, before, behind, outside.number);
  }
  std::vector<Expr> starts(rank, Expr(0)), sizes = p.value->type.shape;
  Ints steps(rank, 1);
  for (std::size_t i = 0; i < p.dims.size(); ++i) {
    const std::size_t axis = p.leading + i;
    Positions::Position& position = p.list.emplace_back();
    const auto& l = linears[i];
    const Formula& at = f.parts[first + i];
    if (l && l->of.empty()) {
      starts[axis] = l->constant;
      sizes[axis] = 1;
      position.dropped = true;
    } else if (l && l->of.size() == 1 && l->of.begin()->second.is_constant()) {
      position.index = l->of.begin()->first;
      starts[axis] = l->constant;
      sizes[axis] = extents_.at(position.index).first;
      steps[axis] = l->of.begin()->second.value();
    } else {
      position.at = eval(at);
      if (position.at.known() || !is_integer(position.at.value->type.dtype) || position.at.leading() > 0)
        fail(at.place, fmt::format("an integer position of '{}'", f.name),
             position.at.known() ? fmt::format("'{}'", text_of(at)) : position.at.value->type.text());
      if (position.at.value->type.dtype != DType::i32) position.at.value = b_.cast(position.at.value, DType::i64);
    }
  }
  const bool whole =
      sizes == p.value->type.shape && std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 1; });
  if (!whole) p.value = b_.slice(p.value, std::move(starts), std::move(sizes), std::move(steps));
}

Term Expansion::element(const Formula& f) {
  const auto array = arrays_.find(f.name);
  if (array == arrays_.end())
    fail(f.place, fmt::format("input '{}', which the formula uses here", f.name), "none", "has(..) ? .. : .. asks for it");
  Positions p;
  p.value = array->second.value;
  p.dims = array->second.dims;
  p.leading = p.value->type.rank() - p.dims.size();
  try {
    cut(f, p);
    return gathered(p);
  } catch (const CompileError& error) {
    if (error.parts().stage == "operator") throw;
    fail(f.place, error.parts().wanted, error.parts().found, error.parts().advice);
  }
}

Term Expansion::gathered(Positions& p) {
  // Dimensions of one position go first.
  Shape shape(p.value->type.shape.begin(), p.value->type.shape.begin() + static_cast<std::ptrdiff_t>(p.leading));
  std::vector<Positions::Position> left;
  for (std::size_t i = 0; i < p.list.size(); ++i) {
    if (p.list[i].dropped) continue;
    shape.push_back(p.value->type.shape[p.leading + i]);
    left.push_back(std::move(p.list[i]));
  }
  Term result;
  result.value = left.size() == p.list.size() ? p.value : b_.reshape(p.value, shape);
  std::set<std::string> all;
  std::size_t computed = 0, axis = 0, used = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Names own = left[i].index.empty() ? left[i].at.axes : Names{left[i].index};
    all.insert(own.begin(), own.end());
    used += own.size();
    if (!left[i].index.empty()) continue;
    ++computed;
    axis = i;
  }
  if (computed == 0 && used == all.size()) {
    for (const auto& position : left) result.axes.push_back(position.index);
    return result;
  }
  if (computed == 1 && used == all.size()) {
    result.value = b_.gather(result.value, left[axis].at.value, static_cast<std::int64_t>(p.leading + axis));
    for (const auto& position : left) {
      const Names own = position.index.empty() ? position.at.axes : Names{position.index};
      result.axes.insert(result.axes.end(), own.begin(), own.end());
    }
    return result;
  }
  // Each element by all of its positions; dimensions without names go behind and come back.
  if (p.leading > 0) {
    Ints perm;
    for (std::size_t i = 0; i < left.size(); ++i) perm.push_back(static_cast<std::int64_t>(p.leading + i));
    for (std::size_t i = 0; i < p.leading; ++i) perm.push_back(static_cast<std::int64_t>(i));
    result.value = b_.transpose(result.value, std::move(perm));
  }
  result.axes = in_order(all);
  std::vector<Value*> columns;
  for (const auto& position : left) {
    Term at = position.at;
    if (!position.index.empty()) {
      at.value = ramp(position.index);
      at.axes = {position.index};
    }
    Value* column = b_.cast(spread(arranged_to(at, result.axes), result.axes), DType::i64);
    Shape one = column->type.shape;
    one.emplace_back(1);
    columns.push_back(b_.reshape(column, std::move(one)));
  }
  Value* positions = columns.size() == 1 ? columns[0] : b_.concat(columns, -1);
  result.value = b_.gather_nd(result.value, positions);
  if (p.leading > 0) {
    Ints perm;
    for (std::size_t i = 0; i < p.leading; ++i) perm.push_back(static_cast<std::int64_t>(result.axes.size() + i));
    for (std::size_t i = 0; i < result.axes.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
    result.value = b_.transpose(result.value, std::move(perm));
  }
  return result;
}

}  // namespace oclc::custom
