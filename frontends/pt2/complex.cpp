#include "frontends/pt2/complex.h"

#include <algorithm>
#include <array>

namespace oclc::pt2 {
namespace {

const OpRow kNoRow{};

// Numbers that are computed with, where others say how.
bool is_operand(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"self", "other", "value", "fill_value", "s"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Tensors that say where, and are no numbers.
bool is_place(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"index", "indices", "mask", "condition", "pred"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Arg number_of(const Arg& given, bool imaginary) {
  if (given.is(Arg::Kind::complex)) return {.kind = Arg::Kind::real, .real = imaginary ? given.imaginary : given.real};
  return imaginary ? Arg{.kind = Arg::Kind::integer, .integer = Expr(0)} : given;
}

}  // namespace

Complex parts_of(Builder& b, Value* pairs) {
  Shape shape = pairs->type.shape;
  const auto last = static_cast<std::int64_t>(shape.size()) - 1;
  shape.pop_back();
  const auto part = [&](int i) { return b.reshape(b.slice_axis(pairs, last, Expr(i), Expr(1)), shape); };
  return {part(0), part(1)};
}

Value* pairs_of(Builder& b, const Complex& z) {
  Shape column = z.re->type.shape;
  column.emplace_back(1);
  Value* im = z.im ? z.im : b.expand(b.scalar(z.re->type.dtype, 0), z.re->type.shape);
  return b.concat({b.reshape(z.re, column), b.reshape(im, column)}, static_cast<std::int64_t>(column.size()) - 1);
}

bool is_of_complex(const ProgramNode& node, const Program& program) {
  // Transforms of real numbers to real ones are read with the others.
  if (!find_row(node.target) && find_complex_row(node.target)) return true;
  const auto complex = [&](const Arg& arg) {
    if (arg.is(Arg::Kind::complex)) return true;
    return arg.is(Arg::Kind::tensor) && program.complex.find(arg.name) != program.complex.end();
  };
  const auto any = [&](const Arg& arg) { return complex(arg) || std::any_of(arg.items.begin(), arg.items.end(), complex); };
  return std::any_of(node.results.begin(), node.results.end(), any) ||
         std::any_of(node.arguments.begin(), node.arguments.end(), [&](const auto& given) { return any(given.second); });
}

ComplexContext::ComplexContext(Builder& builder, const ComplexRow& row, const OpRow* real_row, const ProgramNode& node,
                               const ReadSoFar& so_far, const Complexes& complexes)
    : b(builder),
      row_(row),
      real_row_(real_row),
      node_(node),
      so_far_(so_far),
      complexes_(complexes),
      arguments_(builder, real_row ? *real_row : kNoRow, node, so_far) {}

bool ComplexContext::gives_complex() const {
  const auto complex = [&](const Arg& result) {
    return so_far_.program.complex.find(result.name) != so_far_.program.complex.end();
  };
  return std::any_of(node_.results.begin(), node_.results.end(), [&](const Arg& result) {
    return complex(result) || std::any_of(result.items.begin(), result.items.end(), complex);
  });
}

bool ComplexContext::has_im(std::string_view name) const {
  const Arg* arg = arguments_.find(name);
  return arg && arg->is(Arg::Kind::tensor) && complexes_.find(arg->name) != complexes_.end();
}

Complex ComplexContext::operand(std::string_view name) const {
  const Arg* arg = arguments_.find(name);
  const DType dtype = arguments_.result().dtype;
  if (arg && arg->is(Arg::Kind::complex)) return {b.scalar(dtype, arg->real), b.scalar(dtype, arg->imaginary)};
  if (!has_im(name)) return {arguments_.operand(name, dtype)};
  const Complex& z = complexes_.find(arg->name)->second;
  return {b.cast(z.re, dtype), b.cast(z.im, dtype)};
}

Value* ComplexContext::real_operand(std::string_view name) const {
  if (has_im(name)) arguments_.refuse("a real tensor as '" + std::string(name) + "'", "a complex one");
  return arguments_.tensor(name);
}

const OpRow& ComplexContext::real_row() const {
  if (!real_row_) arguments_.refuse("an operator that is read of real tensors", node_.target);
  return *real_row_;
}

Value* ComplexContext::read_real(const OpRow& row, const ProgramNode& node, const Values& values, Outputs* all) const {
  AtenContext context(b, row, node, {so_far_.program, values, so_far_.roots, so_far_.training});
  Outputs outputs = row.read(context);
  Value* first = outputs.at(0);
  if (all) *all = std::move(outputs);
  return first;
}

Outputs ComplexContext::read_part(Part part) const {
  const bool imaginary = part == Part::im;
  ProgramNode node = node_;
  Values values;
  const auto take = [&](std::string_view name, const Arg& arg) {
    if (!arg.is(Arg::Kind::tensor)) return;
    if (const auto z = complexes_.find(arg.name); z != complexes_.end()) {
      values[arg.name] = imaginary ? z->second.im : z->second.re;
      return;
    }
    const auto real = so_far_.values.find(arg.name);
    if (real == so_far_.values.end()) return;
    const TensorType& type = real->second->type;
    values[arg.name] = imaginary && !is_place(name) ? b.expand(b.scalar(type.dtype, 0), type.shape) : real->second;
  };
  for (auto& [name, arg] : node.arguments) {
    take(name, arg);
    for (const Arg& item : arg.items) take(name, item);
    if (arg.is(Arg::Kind::complex) || (arg.is_number() && is_operand(name))) arg = number_of(arg, imaginary);
  }
  Outputs all;
  read_real(real_row(), node, values, &all);
  return all;
}

Value* ComplexContext::read_parts(std::string_view first, Part of_first, std::string_view second, Part of_second) const {
  Values values;
  ProgramNode node = node_;
  for (const auto& [name, part] : {std::pair(first, of_first), std::pair(second, of_second)}) {
    const Complex z = operand(name);
    values[std::string(name)] = part == Part::im ? z.im : z.re;
    for (auto& [given, arg] : node.arguments)
      if (given == name) arg = {.kind = Arg::Kind::tensor, .name = std::string(name)};
  }
  return read_real(real_row(), node, values);
}

Value* ComplexContext::call(std::string_view op, const std::vector<std::pair<std::string, Value*>>& operands) const {
  ProgramNode node{node_.name, node_.module, std::string(op), {}, node_.results};
  Values values;
  for (const auto& [name, value] : operands) {
    node.arguments.emplace_back(name, Arg{.kind = Arg::Kind::tensor, .name = name});
    values[name] = value;
  }
  return read_real(*find_row(op), node, values);
}

const ComplexRow* find_complex_row(std::string_view target) {
  for (const std::span<const ComplexRow> family : {complex_rows(), fourier_rows()})
    for (const ComplexRow& row : family)
      if (row.op == target) return &row;
  for (const Alias& alias : aliases())
    if (alias.name == target) return find_complex_row(alias.as);
  return nullptr;
}

std::vector<std::string_view> complex_operators() {
  std::vector<std::string_view> names;
  for (const std::span<const ComplexRow> family : {complex_rows(), fourier_rows()})
    for (const ComplexRow& row : family) names.push_back(row.op);
  return names;
}

}  // namespace oclc::pt2
