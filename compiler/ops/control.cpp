// Operators that hold sub-graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

const Expr& trip_of(const Node& node) {
  const auto& trip = node.get<std::vector<Expr>>("trip");
  OCLC_CHECK(trip.size() == 1, "the loop's trip count is one expression");
  return trip[0];
}

bool has_condition(const Node& node) { return node.get_or<std::int64_t>("conditional", 0) != 0; }

std::vector<TensorType> infer_loop(const Node& node) {
  OCLC_CHECK(node.bodies.size() == 1, "a loop has one body");
  const Graph& body = *node.bodies[0];
  const Expr& trip = trip_of(node);
  node.get<std::string>("counter");
  const std::int64_t carried = node.get<std::int64_t>("carried");
  if (known_less(trip, Expr(0))) reject("a trip count of 0 or more", trip.text());
  if (carried < 0 || carried > static_cast<std::int64_t>(std::min(node.inputs.size(), body.outputs().size()))) {
    reject("no more carried values than operands and results of the body", std::to_string(carried));
  }
  if (body.inputs().size() != node.inputs.size())
    reject(fmt::format("{} operands, as the body takes", body.inputs().size()), std::to_string(node.inputs.size()));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorType &inner = body.inputs()[i]->type, &outer = type_of_input(node, i);
    if (!(inner == outer)) reject(fmt::format("operand {} of type {}, as the body takes", i, inner.text()), outer.text());
  }
  if (has_condition(node) && (carried < 1 || !(body.inputs()[0]->type == TensorType{DType::i64, {}})))
    reject("a carried i64[] as condition", carried < 1 ? "none" : body.inputs()[0]->type.text());
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    TensorType type = body.outputs()[i].second->type;
    if (i < static_cast<std::size_t>(carried)) {
      const TensorType& before = body.inputs()[i]->type;
      if (!(type == before)) reject(fmt::format("carried value {} of unchanging type {}", i, before.text()), type.text());
    } else {
      type.shape.insert(type.shape.begin(), trip);
    }
    types.push_back(std::move(type));
  }
  return types;
}

std::vector<HostTensor> eval_loop(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const auto trips = trip_of(node).evaluate(symbols);
  if (!trips || *trips < 0)
    reject("a trip count of 0 or more", trips ? std::to_string(*trips) : "no value of " + trip_of(node).text());
  const auto carried = static_cast<std::size_t>(node.get<std::int64_t>("carried"));
  std::vector<HostTensor> state(inputs.begin(), inputs.end()), results;
  for (std::size_t i = carried; i < node.outputs.size(); ++i)
    results.emplace_back(node.output(i)->type.dtype, bind_shape(node.output(i)->type.shape, symbols));
  SymbolValues inner = symbols;
  for (std::int64_t trip = 0; trip < *trips; ++trip) {
    if (has_condition(node) && state[0].int_at(0) == 0) break;
    inner[node.get<std::string>("counter")] = trip;
    const std::vector<HostTensor> outputs = evaluate(*node.bodies[0], state, inner);
    std::copy_n(outputs.begin(), carried, state.begin());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const HostTensor& part = outputs[carried + i];
      if (part.bytes() != 0)
        std::memcpy(results[i].mutable_data() + static_cast<std::size_t>(trip) * part.bytes(), part.data(), part.bytes());
    }
  }
  state.resize(carried);
  state.insert(state.end(), results.begin(), results.end());
  return state;
}

Cost loop_cost(const Node& node) { return {flops_of(*node.bodies[0]) * trip_of(node)}; }

const std::vector<Expr>& dims_of(const Node& node) { return node.get<std::vector<Expr>>("dims"); }

void check_read(const Node& node) {
  const TensorType& read = type_of_input(node, 0);
  const auto &dims = dims_of(node), &upper = node.get<std::vector<Expr>>("upper");
  OCLC_CHECK(dims.size() == upper.size(), "every dimension that is read has an upper bound");
  OCLC_CHECK(std::all_of(dims.begin(), dims.end(), [](const Expr& d) { return d.symbol_name().has_value(); }),
             "a dimension that is read is a symbol");
  if (read.dtype != DType::i64 && read.dtype != DType::i32) reject("dimensions of type i64 or i32", read.text());
  if (read.elements() != Expr(static_cast<std::int64_t>(dims.size())))
    reject(fmt::format("{} numbers to read", dims.size()), read.text());
}

std::vector<TensorType> infer_read_dims(const Node& node) {
  check_read(node);
  return {{DType::i64, type_of_input(node, 0).shape}};
}

std::optional<std::vector<Expr>> read_dims_content(const Node& node) { return dims_of(node); }

std::vector<HostTensor> eval_read_dims(const Node&, std::span<const HostTensor> inputs, const SymbolValues&) {
  HostTensor values(DType::i64, inputs[0].shape());
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set_int(i, inputs[0].int_at(i));
  return {values};
}

std::vector<TensorType> infer_bind_dims(const Node& node) {
  check_read(node);
  OCLC_CHECK(node.bodies.size() == 1 && node.bodies[0]->inputs().size() + 1 == node.inputs.size(),
             "the body takes all operands but the first");
  std::vector<TensorType> types;
  for (const auto& [name, value] : node.bodies[0]->outputs()) types.push_back(value->type);
  return types;
}

std::vector<HostTensor> eval_bind_dims(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  return evaluate(*node.bodies[0], inputs.subspan(1), symbols);
}

Cost bind_dims_cost(const Node& node) { return {flops_of(*node.bodies[0])}; }

constexpr OpDef kControlOps[] = {
    {.name = "read_dims",
     .kind = OpKind::control,
     .formula = "the operand, whose elements become the dimension symbols `dims`, 0 <= dims[i] <= upper[i]; see nest_read_dims",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_read_dims,
     .eval = eval_read_dims,
     .content = read_dims_content,
     .cost = no_cost},
    {.name = "bind_dims",
     .kind = OpKind::control,
     .formula = "body(operands but the first), for which the symbols `dims` have the elements of the first as values",
     .min_inputs = 1,
     .max_inputs = INT32_MAX,
     .infer = infer_bind_dims,
     .eval = eval_bind_dims,
     .cost = bind_dims_cost},
    {.name = "loop",
     .kind = OpKind::control,
     .formula =
         "body(carried, captured) `trip` times, or, if `conditional`, until the first carried value is 0; gives the last "
         "carried values and the stacked results of all trips, those not made having no particular value",
     .min_inputs = 0,
     .max_inputs = INT32_MAX,
     .infer = infer_loop,
     .eval = eval_loop,
     .cost = loop_cost},
};

}  // namespace

std::span<const OpDef> control_ops() { return kControlOps; }

}  // namespace oclc
