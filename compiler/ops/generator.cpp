// Tensors from nothing: constants, ramps, symbolic values.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

constexpr std::int64_t kContentLimit = 1024;

std::vector<TensorType> infer_constant(const Node& node) { return {node.get<HostTensor>("tensor").type()}; }

std::optional<Exprs> constant_content(const Node& node) {
  const HostTensor& tensor = node.get<HostTensor>("tensor");
  const DType dtype = tensor.dtype();
  if (is_float(dtype) || is_narrow(dtype) || dtype == DType::string || tensor.elements() > kContentLimit) return std::nullopt;
  Exprs values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) values.emplace_back(tensor.int_at(i));
  return values;
}

std::vector<TensorType> infer_iota(const Node& node) {
  const Exprs& shape = node.get<Exprs>("shape");
  const DType dtype = node.get<DType>("dtype");
  const std::int64_t axis = node.get<std::int64_t>("axis");
  node.get<Exprs>("start");
  node.get<Exprs>("step");
  if (!shape.empty() && normalise_axis(axis, shape.size()) != axis) reject("an axis from 0 on", std::to_string(axis));
  if (!is_float(dtype) && !is_integer(dtype)) reject("numbers", std::string(name_of(dtype)));
  return {{dtype, shape}};
}

std::optional<Exprs> iota_content(const Node& node) {
  const TensorType& type = node.output(0)->type;
  const Expr count = type.elements();
  if (!is_integer(type.dtype) || !type.is_static() || count.value() > kContentLimit) return std::nullopt;
  std::int64_t inner = 1;
  const auto axis = static_cast<std::size_t>(node.get<std::int64_t>("axis"));
  for (std::size_t i = axis + 1; i < type.rank(); ++i) inner *= type.shape[i].value();
  Exprs values;
  for (std::int64_t i = 0; i < count.value(); ++i) {
    const std::int64_t at = type.rank() == 0 ? 0 : i / inner % type.shape[axis].value();
    values.push_back(node.get<Exprs>("start").at(0) + node.get<Exprs>("step").at(0) * Expr(at));
  }
  return values;
}

std::vector<TensorType> infer_exprs(const Node& node) {
  const DType dtype = node.get<DType>("dtype");
  if (!is_integer(dtype) && dtype != DType::boolean) reject("an integer type", std::string(name_of(dtype)));
  Shape shape;
  for (const std::int64_t d : node.get<std::vector<std::int64_t>>("shape")) shape.emplace_back(d);
  const auto count = static_cast<std::int64_t>(node.get<Exprs>("values").size());
  if (!(product(shape) == Expr(count))) reject(fmt::format("{} values", product(shape).text()), std::to_string(count));
  return {{dtype, std::move(shape)}};
}

std::optional<Exprs> exprs_content(const Node& node) { return node.get<Exprs>("values"); }

std::int64_t bound(const Expr& e, const SymbolValues& symbols) {
  const auto value = e.evaluate(symbols);
  if (!value) reject("values for the symbols", "none for " + e.text());
  return *value;
}

std::vector<HostTensor> eval_constant(const Node& node, std::span<const HostTensor>, const SymbolValues&) {
  return {node.get<HostTensor>("tensor")};
}

std::vector<HostTensor> eval_iota(const Node& node, std::span<const HostTensor>, const SymbolValues& symbols) {
  const TensorType& type = node.output(0)->type;
  HostTensor result(type.dtype, bind_shape(type.shape, symbols));
  const AxisView view(result.shape(), static_cast<std::size_t>(node.get<std::int64_t>("axis")));
  const std::int64_t start = bound(node.get<Exprs>("start").at(0), symbols),
                     step = bound(node.get<Exprs>("step").at(0), symbols);
  for (std::int64_t i = 0; i < result.elements(); ++i) result.set_int(i, start + step * (i / view.inner % view.size));
  return {std::move(result)};
}

std::vector<HostTensor> eval_exprs(const Node& node, std::span<const HostTensor>, const SymbolValues& symbols) {
  HostTensor result(node.get<DType>("dtype"), node.get<Sizes>("shape"));
  std::int64_t i = 0;
  for (const Expr& e : node.get<Exprs>("values")) result.set_int(i++, bound(e, symbols));
  return {std::move(result)};
}

constexpr OpDef kGeneratorOps[] = {
    {.name = "constant",
     .kind = OpKind::generator,
     .formula = "the tensor",
     .infer = infer_constant,
     .eval = eval_constant,
     .content = constant_content,
     .cost = no_cost},
    {.name = "iota",
     .kind = OpKind::generator,
     .formula = "start + step * index along axis",
     .infer = infer_iota,
     .eval = eval_iota,
     .content = iota_content,
     .cost = no_cost},
    {.name = "exprs",
     .kind = OpKind::generator,
     .formula = "integer values given as expressions of the symbols, row-major",
     .infer = infer_exprs,
     .eval = eval_exprs,
     .content = exprs_content,
     .cost = no_cost},
};

}  // namespace

std::span<const OpDef> generator_ops() { return kGeneratorOps; }

}  // namespace oclc
