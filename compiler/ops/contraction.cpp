// Sums of products: matmul and conv.
#include <fmt/format.h>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/contraction_eval.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/window_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer_matmul(const Node& node) {
  const TensorType &a = type_of_input(node, 0), &b = type_of_input(node, 1);
  if (a.dtype != b.dtype || a.dtype == DType::boolean)
    reject("numbers of one element type", fmt::format("{} and {}", a.text(), b.text()));
  if (a.rank() < 2 || b.rank() < 2) reject("operands of rank 2 or more", fmt::format("{} and {}", a.text(), b.text()));
  const bool trans_a = node.get<std::int64_t>("trans_a") != 0, trans_b = node.get<std::int64_t>("trans_b") != 0;
  const Expr &m = a.shape[a.rank() - (trans_a ? 1 : 2)], &k = a.shape[a.rank() - (trans_a ? 2 : 1)];
  const Expr &n = b.shape[b.rank() - (trans_b ? 2 : 1)], &kb = b.shape[b.rank() - (trans_b ? 1 : 2)];
  if (!(k == kb)) {
    reject("matrices that agree on the summed dimension",
           fmt::format("{}{} and {}{} ({} against {})", a.text(), trans_a ? " transposed" : "", b.text(),
                       trans_b ? " transposed" : "", k.text(), kb.text()));
  }
  Shape shape = broadcast(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2));
  shape.push_back(m);
  shape.push_back(n);
  return {{a.dtype, std::move(shape)}};
}

Cost matmul_cost(const Node& node) {
  const TensorType& a = node.inputs[0]->type;
  const Expr& k = a.shape[a.rank() - (node.get<std::int64_t>("trans_a") != 0 ? 2 : 1)];
  return {node.output(0)->type.elements() * k * Expr(2)};
}

std::vector<TensorType> infer_conv(const Node& node) {
  const TensorType &x = type_of_input(node, 0), &w = type_of_input(node, 1);
  if (x.dtype != w.dtype || !is_float(x.dtype))
    reject("floating-point operands of one element type", fmt::format("{} and {}", x.text(), w.text()));
  check_spatial_rank(x);
  if (w.rank() != x.rank()) reject(fmt::format("weights of rank {}", x.rank()), w.text());
  const std::int64_t group = node.get<std::int64_t>("group");
  if (group < 1) reject("a positive group count", std::to_string(group));
  if (!(w.shape[1] * Expr(group) == x.shape[1])) {
    reject(
        fmt::format("{} input channels ({} in each of {} groups)", (w.shape[1] * Expr(group)).text(), w.shape[1].text(), group),
        x.text());
  }
  if (!(floor_mod(w.shape[0], Expr(group)) == Expr(0)))
    reject(fmt::format("output channels divisible by {} groups", group), w.text());
  if (has_input(node, 2) && !(type_of_input(node, 2) == TensorType{x.dtype, {w.shape[0]}})) {
    reject("a bias of type " + TensorType{x.dtype, {w.shape[0]}}.text(), type_of_input(node, 2).text());
  }
  std::vector<std::int64_t> kernel;
  for (std::size_t i = 2; i < w.rank(); ++i) {
    if (!w.shape[i].is_constant()) reject("a window of known size", w.text());
    kernel.push_back(w.shape[i].value());
  }
  Shape shape{x.shape[0], w.shape[0]};
  for (const Expr& dim : window_shape(node, x, kernel)) shape.push_back(dim);
  return {{x.dtype, std::move(shape)}};
}

Cost conv_cost(const Node& node) {
  const Shape& w = node.inputs[1]->type.shape;
  return {node.output(0)->type.elements() * product(std::span(w).subspan(1)) * Expr(2)};
}

constexpr OpDef kContractionOps[] = {
    {.name = "matmul",
     .kind = OpKind::contraction,
     .formula =
         "y[.., m, n] = sum over k of a[.., m, k] * b[.., k, n]; trans_a, trans_b swap an operand's last two axes; integers: "
         "the floats are integers of at most 256",
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = infer_matmul,
     .eval = eval_matmul,
     .cost = matmul_cost,
     .gradient = matmul_gradient},
    {.name = "conv",
     .kind = OpKind::contraction,
     .formula =
         "y[n, o, p] = bias[o] + sum over c, k of x[n, c, p * stride - pad + k * dilation] * w[o, c, k] within the group of o; "
         "integers as of matmul",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = infer_conv,
     .eval = eval_conv,
     .cost = conv_cost,
     .gradient = conv_gradient},
};

}  // namespace

std::span<const OpDef> contraction_ops() { return kContractionOps; }

}  // namespace oclc
