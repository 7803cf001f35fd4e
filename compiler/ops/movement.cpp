// Movement: index maps without arithmetic.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/movement_map.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/support/integer_of.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;
using Ints = std::vector<std::int64_t>;

void check_count(std::string_view what, std::size_t found, std::size_t rank) {
  if (found != rank) reject(fmt::format("{} {}, one per axis", rank, what), std::to_string(found));
}

std::vector<TensorType> infer_reshape(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const Exprs& shape = node.get<Exprs>("shape");
  const TensorType result{x.dtype, shape};
  if (!(result.elements() == x.elements())) {
    reject(fmt::format("a shape of {} elements", x.elements().text()),
           fmt::format("{} of {} for {}", text_of(shape), result.elements().text(), x.text()));
  }
  return {result};
}

std::vector<TensorType> infer_transpose(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const Ints& perm = node.get<Ints>("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool good = perm.size() == x.rank();
  for (std::size_t i = 0; good && i < sorted.size(); ++i) good = sorted[i] == static_cast<std::int64_t>(i);
  if (!good) reject(fmt::format("a permutation of {} axes", x.rank()), fmt::format("[{}]", fmt::join(perm, ", ")));
  Shape shape;
  for (const std::int64_t axis : perm) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return {{x.dtype, std::move(shape)}};
}

std::vector<TensorType> infer_expand(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  return {{x.dtype, broadcast(x.shape, node.get<Exprs>("shape"))}};
}

std::vector<TensorType> infer_slice(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const Exprs &starts = node.get<Exprs>("starts"), &sizes = node.get<Exprs>("sizes");
  const Ints& steps = node.get<Ints>("steps");
  check_count("starts", starts.size(), x.rank());
  check_count("sizes", sizes.size(), x.rank());
  check_count("steps", steps.size(), x.rank());
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (known_less(sizes[i], Expr(0))) reject("a slice of 0 or more elements", sizes[i].text());
    if (sizes[i] == Expr(0)) continue;
    const Expr last = starts[i] + (sizes[i] - 1) * Expr(steps[i]);
    // What cannot be shown to lie outside is the caller's promise.
    const bool outside = known_less(starts[i], Expr(0)) || known_less_equal(x.shape[i], starts[i]) ||
                         (known_less(Expr(0), sizes[i]) && (known_less(last, Expr(0)) || known_less_equal(x.shape[i], last)));
    if (outside) {
      reject(fmt::format("positions inside axis {} of {}", i, x.text()),
             fmt::format("{} elements from {} in steps of {}", sizes[i].text(), starts[i].text(), steps[i]));
    }
  }
  return {{x.dtype, sizes}};
}

std::vector<TensorType> infer_pad(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  const Exprs &before = node.get<Exprs>("before"), &after = node.get<Exprs>("after");
  const std::string& mode = node.get<std::string>("mode");
  node.get<double>("value");
  check_count("paddings before", before.size(), x.rank());
  check_count("paddings after", after.size(), x.rank());
  if (mode != "constant" && mode != "edge" && mode != "reflect") reject("mode constant, edge or reflect", mode);
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    for (const Expr* amount : {&before[i], &after[i]}) {
      if (known_less(*amount, Expr(0))) reject("paddings of 0 or more", amount->text());
      const bool too_far =
          (mode == "reflect" && known_less_equal(x.shape[i], *amount)) || (mode == "edge" && x.shape[i] == Expr(0));
      if (too_far && !(*amount == Expr(0)))
        reject(fmt::format("more than {} elements to {} along axis {}", mode == "edge" ? "0" : amount->text(),
                           mode == "edge" ? "repeat" : "reflect", i),
               x.text());
    }
    shape.push_back(before[i] + x.shape[i] + after[i]);
  }
  return {{x.dtype, std::move(shape)}};
}

std::vector<TensorType> infer_concat(const Node& node) {
  TensorType result = type_of_input(node, 0);
  const std::int64_t axis = node.get<std::int64_t>("axis");
  if (normalise_axis(axis, result.rank()) != axis) reject("an axis from 0 on", std::to_string(axis));
  const auto along = static_cast<std::size_t>(axis);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    TensorType next = type_of_input(node, i);
    if (next.rank() == result.rank()) {
      result.shape[along] += next.shape[along];
      next.shape[along] = result.shape[along];
    }
    if (!(next == result)) {
      reject(fmt::format("operands that differ along axis {} only", axis),
             fmt::format("{} and {}", type_of_input(node, 0).text(), type_of_input(node, i).text()));
    }
  }
  return {result};
}

std::vector<HostTensor> eval_reshape(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  return {inputs[0].reshaped(bind_shape(node.output(0)->type.shape, symbols))};
}

std::vector<HostTensor> eval_movement(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  HostTensor result(inputs[0].dtype(), bind_shape(node.output(0)->type.shape, symbols));
  const double fill = node.get_or<double>("value", 0);
  for (std::int64_t i = 0; fill != 0 && i < result.elements(); ++i) result.set(i, fill);
  std::vector<Sizes> shapes;
  for (const HostTensor& input : inputs) shapes.push_back(input.shape());
  visit_movement(node, shapes, symbols,
                 [&](std::int64_t i, std::size_t operand, std::int64_t at) { copy_element(result, i, inputs[operand], at); });
  return {std::move(result)};
}

// Nothing depends on the symbols' values: a slice at a symbolic position of a small tensor has no known content.
std::optional<Exprs> moved_content(const Node& node) {
  const TensorType& type = node.output(0)->type;
  if (!type.is_static()) return std::nullopt;
  for (const char* name : {"starts", "before"}) {
    if (!node.has(name)) continue;
    const auto& positions = node.get<Exprs>(name);
    if (!std::all_of(positions.begin(), positions.end(), [](const Expr& e) { return e.is_constant(); })) return std::nullopt;
  }
  std::vector<Sizes> shapes;
  for (const Value* input : node.inputs) {
    if (!input->content || !input->type.is_static()) return std::nullopt;
    shapes.push_back(bind_shape(input->type.shape, {}));
  }
  if (type.elements().value() > 1024) return std::nullopt;
  Exprs values(static_cast<std::size_t>(type.elements().value()), Expr(integer_of(node.get_or<double>("value", 0))));
  visit_movement(node, shapes, {}, [&](std::int64_t i, std::size_t operand, std::int64_t at) {
    values[static_cast<std::size_t>(i)] = node.inputs[operand]->content->at(static_cast<std::size_t>(at));
  });
  return values;
}

constexpr OpDef kMovementOps[] = {
    {.name = "reshape",
     .kind = OpKind::movement,
     .formula = "the same elements in row-major order in another shape",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_reshape,
     .eval = eval_reshape,
     .content = moved_content,
     .cost = no_cost,
     .gradient = reshape_gradient},
    {.name = "transpose",
     .kind = OpKind::movement,
     .formula = "y's axis i is x's axis perm[i]",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_transpose,
     .eval = eval_movement,
     .content = moved_content,
     .cost = no_cost,
     .gradient = transpose_gradient},
    {.name = "expand",
     .kind = OpKind::movement,
     .formula = "x repeated along axes of size 1, to the common shape of x and `shape`",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_expand,
     .eval = eval_movement,
     .content = moved_content,
     .cost = no_cost,
     .gradient = expand_gradient},
    {.name = "slice",
     .kind = OpKind::movement,
     .formula = "y[i] = x[start + i * step] on each axis",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_slice,
     .eval = eval_movement,
     .content = moved_content,
     .cost = no_cost,
     .gradient = slice_gradient},
    {.name = "pad",
     .kind = OpKind::movement,
     .formula = "y[i] = x[i - before]; outside: value, the nearest element (edge) or the mirrored one (reflect)",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_pad,
     .eval = eval_movement,
     .content = moved_content,
     .cost = no_cost,
     .gradient = pad_gradient},
    {.name = "concat",
     .kind = OpKind::movement,
     .formula = "operands one after the other along axis",
     .min_inputs = 1,
     .max_inputs = INT32_MAX,
     .infer = infer_concat,
     .eval = eval_movement,
     .content = moved_content,
     .cost = no_cost,
     .gradient = concat_gradient},
};

}  // namespace

std::span<const OpDef> movement_ops() { return kMovementOps; }

}  // namespace oclc
