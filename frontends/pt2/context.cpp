#include "frontends/pt2/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/support/error.h"

namespace oclc::pt2 {
namespace {

// bool, integers, floats.
int kind_of(DType dtype) { return dtype == DType::boolean ? 0 : is_integer(dtype) ? 1 : 2; }

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  if (is_float(a)) {
    if (size_bytes(a) == size_bytes(b)) return DType::f32;  // f16 and bf16
    return size_bytes(a) > size_bytes(b) ? a : b;
  }
  const std::size_t wider = std::max(size_bytes(a), size_bytes(b));
  if (is_signed(a) == is_signed(b)) return size_bytes(a) == wider ? a : b;
  const std::size_t of_unsigned = is_signed(a) ? size_bytes(b) : size_bytes(a);
  const std::size_t of_signed = is_signed(a) ? size_bytes(a) : size_bytes(b);
  if (of_signed > of_unsigned) return is_signed(a) ? a : b;
  return of_unsigned == 1 ? DType::i16 : of_unsigned == 2 ? DType::i32 : DType::i64;
}

const Arg* AtenContext::find(std::string_view name) const {
  for (const auto& [given, arg] : node_.arguments)
    if (given == name) return arg.is(Arg::Kind::none) ? nullptr : &arg;
  return nullptr;
}

const Arg& AtenContext::need(std::string_view name) const {
  const Arg* arg = find(name);
  if (!arg) refuse(fmt::format("the argument '{}'", name), "none");
  return *arg;
}

Value* AtenContext::tensor(std::string_view name) const {
  const Arg& arg = need(name);
  const auto found = arg.is(Arg::Kind::tensor) ? values_.find(arg.name) : values_.end();
  if (found == values_.end()) refuse(fmt::format("a tensor as '{}'", name), arg.name.empty() ? "another argument" : arg.name);
  return found->second;
}

Value* AtenContext::optional_tensor(std::string_view name) const { return find(name) ? tensor(name) : nullptr; }

std::vector<Value*> AtenContext::optional_tensors(std::string_view name) const {
  const Arg& arg = need(name);
  if (!arg.is(Arg::Kind::list)) refuse(fmt::format("a list of tensors as '{}'", name));
  std::vector<Value*> list;
  for (const Arg& item : arg.items) {
    if (item.is(Arg::Kind::none)) {
      list.push_back(nullptr);
      continue;
    }
    const auto found = item.is(Arg::Kind::tensor) ? values_.find(item.name) : values_.end();
    if (found == values_.end()) refuse(fmt::format("tensors in '{}'", name), item.name);
    list.push_back(found->second);
  }
  return list;
}

std::vector<Value*> AtenContext::tensors(std::string_view name) const {
  std::vector<Value*> list = optional_tensors(name);
  if (std::find(list.begin(), list.end(), nullptr) != list.end()) refuse(fmt::format("tensors alone in '{}'", name), "None");
  return list;
}

double AtenContext::real(std::string_view name, std::optional<double> otherwise) const {
  const Arg* arg = find(name);
  if (!arg && otherwise) return *otherwise;
  const Arg& given = need(name);
  if (given.is(Arg::Kind::real)) return given.real;
  if (given.is_number() && given.integer.is_constant()) return static_cast<double>(given.integer.value());
  refuse(fmt::format("a number known when compiling as '{}'", name), given.is_number() ? given.integer.text() : given.name);
}

Expr AtenContext::size(std::string_view name, std::optional<Expr> otherwise) const {
  const Arg* arg = find(name);
  if (!arg && otherwise) return *otherwise;
  const Arg& given = need(name);
  if (!given.is(Arg::Kind::integer) && !given.is(Arg::Kind::boolean))
    refuse(fmt::format("an integer as '{}'", name), given.name);
  return given.integer;
}

std::int64_t AtenContext::integer(std::string_view name, std::optional<std::int64_t> otherwise) const {
  const Expr e = size(name, otherwise ? std::optional<Expr>(*otherwise) : std::nullopt);
  if (!e.is_constant()) refuse(fmt::format("an integer known when compiling as '{}'", name), e.text());
  return e.value();
}

bool AtenContext::flag(std::string_view name, bool otherwise) const { return integer(name, otherwise ? 1 : 0) != 0; }

std::string AtenContext::text(std::string_view name, std::string otherwise) const {
  const Arg* arg = find(name);
  return arg ? arg->name : otherwise;
}

Shape AtenContext::sizes(std::string_view name) const {
  const Arg& arg = need(name);
  if (arg.is(Arg::Kind::integer)) return {arg.integer};
  if (!arg.is(Arg::Kind::list)) refuse(fmt::format("a list of integers as '{}'", name), arg.name);
  Shape shape;
  for (const Arg& item : arg.items) {
    if (!item.is(Arg::Kind::integer)) refuse(fmt::format("integers in '{}'", name), item.name);
    shape.push_back(item.integer);
  }
  return shape;
}

Ints AtenContext::integers(std::string_view name, Ints otherwise) const {
  if (!find(name)) return otherwise;
  Ints list;
  for (const Expr& e : sizes(name)) {
    if (!e.is_constant()) refuse(fmt::format("integers known when compiling in '{}'", name), e.text());
    list.push_back(e.value());
  }
  return list;
}

Ints AtenContext::repeated(std::string_view name, std::size_t count, std::int64_t otherwise) const {
  Ints list = integers(name);
  if (list.empty()) list.assign(count, otherwise);
  if (list.size() == 1) list.assign(count, list[0]);
  if (list.size() != count) refuse(fmt::format("{} numbers as '{}'", count, name), std::to_string(list.size()));
  return list;
}

std::vector<double> AtenContext::reals(std::string_view name) const {
  std::vector<double> list;
  if (const Arg* arg = find(name))
    for (const Arg& item : arg->items)
      list.push_back(item.is(Arg::Kind::real) ? item.real : static_cast<double>(item.integer.value()));
  return list;
}

std::optional<DType> AtenContext::dtype(std::string_view name) const {
  const Arg* arg = find(name);
  if (!arg) return std::nullopt;
  if (!arg->is(Arg::Kind::dtype)) refuse("an element type that the compiler has", arg->name);
  return arg->dtype;
}

Value* AtenContext::operand(std::string_view name, DType dtype) const {
  const Arg& arg = need(name);
  if (arg.is(Arg::Kind::tensor)) return b.cast(tensor(name), dtype);
  if (arg.is(Arg::Kind::real)) return b.scalar(dtype, arg.real);
  if (!arg.is_number()) refuse(fmt::format("a tensor or a number as '{}'", name), arg.name);
  if (!arg.integer.is_constant()) return b.cast(b.exprs({arg.integer}, {}), dtype);
  HostTensor number(dtype, {});
  if (is_float(dtype))
    number.set(0, static_cast<double>(arg.integer.value()));
  else
    number.set_int(0, dtype == DType::boolean ? arg.integer.value() != 0 : arg.integer.value());
  return b.constant(std::move(number));
}

Value* AtenContext::widened(Value* x) const {
  return is_float(x->type.dtype) && size_bytes(x->type.dtype) == 2 ? b.cast(x, DType::f32) : x;
}

DType AtenContext::common_dtype(std::initializer_list<std::string_view> names) const {
  std::optional<DType> by_rank[3];  // tensors with axes, without, numbers
  const auto note = [&](std::size_t rank, DType dtype) {
    by_rank[rank] = by_rank[rank] ? promoted(*by_rank[rank], dtype) : dtype;
  };
  for (const std::string_view name : names) {
    const Arg* arg = find(name);
    if (!arg) continue;
    if (arg->is(Arg::Kind::tensor)) {
      const TensorType& type = tensor(name)->type;
      note(type.rank() == 0 ? 1 : 0, type.dtype);
    } else if (arg->is_number()) {
      note(2, arg->is(Arg::Kind::real) ? DType::f32 : arg->is(Arg::Kind::boolean) ? DType::boolean : DType::i64);
    }
  }
  std::optional<DType> result;
  for (const std::optional<DType>& dtype : by_rank)
    if (dtype && (!result || kind_of(*dtype) > kind_of(*result))) result = dtype;
  if (!result) refuse("tensors or numbers as operands", "none");
  return *result;
}

std::vector<std::string> AtenContext::names_of_results() const {
  std::vector<std::string> names;
  for (const Arg& result : node_.results) {
    if (result.is(Arg::Kind::list))
      for (const Arg& item : result.items) names.push_back(item.name);
    else
      names.push_back(result.name);
  }
  return names;
}

const TensorType& AtenContext::result(std::size_t i) const {
  const std::vector<std::string> names = names_of_results();
  const auto type = i < names.size() ? program_.tensors.find(names[i]) : program_.tensors.end();
  if (type == program_.tensors.end()) refuse(fmt::format("the type of result {}", i), "none in the program");
  return type->second;
}

bool AtenContext::wants(std::size_t i) const {
  const std::vector<std::string> names = names_of_results();
  return i < names.size() && !names[i].empty();
}

std::int64_t AtenContext::axis(std::int64_t axis, std::size_t rank) const {
  const auto size = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (axis < -size || axis >= size) refuse(fmt::format("a dimension from {} to {}", -size, size - 1), std::to_string(axis));
  return axis < 0 ? axis + size : axis;
}

Ints AtenContext::axes(std::string_view name, std::size_t rank) const {
  Ints list = integers(name);
  if (list.empty()) {
    list.resize(rank);
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  for (std::int64_t& a : list) a = axis(a, rank);
  if (rank == 0) list.clear();
  std::sort(list.begin(), list.end());
  return list;
}

void AtenContext::refuse(std::string wanted, std::string found, std::string advice) const {
  throw CompileError({.stage = "import",
                      .node = b.source(),
                      .op = node_.target,
                      .wanted = std::move(wanted),
                      .found = std::move(found),
                      .advice = std::move(advice),
                      .exit_code = ExitCode::unsupported});
}

}  // namespace oclc::pt2
