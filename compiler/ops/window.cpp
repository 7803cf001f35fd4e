// Pooling.
#include <fmt/format.h>

#include "compiler/ops/op_list.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/window_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (x.dtype == DType::boolean || (node.op->name == "avg_pool" && !is_float(x.dtype))) {
    reject(node.op->name == "avg_pool" ? "floating-point operands" : "numbers", x.text());
  }
  check_spatial_rank(x);
  Shape shape{x.shape[0], x.shape[1]};
  for (const Expr& dim : window_shape(node, x, node.get<std::vector<std::int64_t>>("kernel"))) shape.push_back(dim);
  return {{x.dtype, std::move(shape)}};
}

Cost cost(const Node& node) {
  Expr flops = node.output(0)->type.elements();
  for (const std::int64_t k : node.get<std::vector<std::int64_t>>("kernel")) flops *= Expr(k);
  return {flops};
}

constexpr OpDef kOps[] = {
    {.name = "max_pool",
     .kind = OpKind::window,
     .formula = "largest in the window, NaN if any is; padding never wins",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .cost = cost},
    {.name = "avg_pool",
     .kind = OpKind::window,
     .formula = "sum of the window / its elements inside the data (with count_include_pad inside the padding too)",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer,
     .cost = cost},
};

}  // namespace

void check_spatial_rank(const TensorType& x) {
  if (x.rank() < 3 || x.rank() > 5) reject("data of batch, channels and 1 to 3 spatial dimensions", x.text());
}

Shape window_shape(const Node& node, const TensorType& x, const std::vector<std::int64_t>& kernel) {
  const std::size_t axes = x.rank() - 2;
  const auto &strides = node.get<std::vector<std::int64_t>>("strides"),
             &dilations = node.get<std::vector<std::int64_t>>("dilations"), &pads = node.get<std::vector<std::int64_t>>("pads");
  const auto check = [](std::string_view what, const std::vector<std::int64_t>& list, std::size_t count, std::int64_t least) {
    if (list.size() != count) reject(fmt::format("{} {}", count, what), fmt::format("{}", list.size()));
    for (const std::int64_t v : list) {
      // The upper bound keeps the arithmetic on window sizes far from overflow.
      if (v < least || v > (std::int64_t{1} << 31))
        reject(fmt::format("{} from {} to 2^31", what, least), fmt::format("[{}]", fmt::join(list, ", ")));
    }
  };
  check("kernel sizes", kernel, axes, 1);
  check("strides", strides, axes, 1);
  check("dilations", dilations, axes, 1);
  check("pads", pads, 2 * axes, 0);
  Shape shape;
  for (std::size_t i = 0; i < axes; ++i) {
    shape.push_back(window_positions(x.shape[i + 2], kernel[i], strides[i], dilations[i], pads[i], pads[i + axes],
                                     node.get_or<std::int64_t>("ceil_mode", 0) != 0));
  }
  return shape;
}

std::span<const OpDef> window_ops() { return kOps; }

}  // namespace oclc
