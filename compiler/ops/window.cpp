// Pooling.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/ops/window_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer_pool(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (x.dtype == DType::boolean || (node.op->name == "avg_pool" && !is_float(x.dtype))) {
    reject(node.op->name == "avg_pool" ? "floating-point operands" : "numbers", x.text());
  }
  check_spatial_rank(x);
  Shape shape{x.shape[0], x.shape[1]};
  for (const Expr& dim : window_shape(node, x, node.get<std::vector<std::int64_t>>("kernel"), true)) shape.push_back(dim);
  return {{x.dtype, std::move(shape)}};
}

// The window at `index` (one position per spatial axis) of a plane: visits its elements, and tells how many lie inside the
// data, and how many inside data and padding.
struct Counts {
  std::int64_t data = 0, padded = 0;
};

template <class F>
Counts visit_window(const Node& node, const Sizes& plane, const Sizes& index, F&& visit) {
  const auto &kernel = node.get<Sizes>("kernel"), &strides = node.get<Sizes>("strides"),
             &dilations = node.get<Sizes>("dilations"), &pads = node.get<Sizes>("pads");
  const std::size_t axes = plane.size();
  Counts counts;
  const Sizes taps = row_major_strides(kernel);
  for (std::int64_t tap = 0; tap < count_of(kernel); ++tap) {
    std::int64_t position = 0;
    bool in_data = true, in_padding = true;
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t at = index[i] * strides[i] - pads[i] + tap / taps[i] % kernel[i] * dilations[i];
      in_data = in_data && at >= 0 && at < plane[i];
      in_padding = in_padding && at < plane[i] + pads[i + axes];
      position = position * plane[i] + at;
    }
    counts.padded += in_padding ? 1 : 0;
    counts.data += in_data ? 1 : 0;
    if (in_data) visit(position);
  }
  return counts;
}

template <bool average>
std::vector<HostTensor> eval(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  const HostTensor& x = inputs[0];
  HostTensor y(x.dtype(), bind_shape(node.output(0)->type.shape, symbols));
  const Sizes plane(x.shape().begin() + 2, x.shape().end()), positions(y.shape().begin() + 2, y.shape().end());
  const Sizes strides = row_major_strides(positions);
  const bool with_padding = average && node.get<std::int64_t>("count_include_pad") != 0;
  const std::int64_t windows = count_of(positions), elements = y.elements();
  Sizes index(plane.size());
  for (std::int64_t i = 0; i < elements; ++i) {
    for (std::size_t k = 0; k < index.size(); ++k) index[k] = i % windows / strides[k] % positions[k];
    const std::int64_t start = i / windows * count_of(plane);
    if constexpr (average) {
      double sum = 0;
      const Counts counts = visit_window(node, plane, index, [&](std::int64_t at) { sum += x.at(start + at); });
      const std::int64_t count = with_padding ? counts.padded : counts.data;
      y.set(i, count == 0 ? 0 : sum / static_cast<double>(count));
    } else {
      std::int64_t best = -1;
      const auto larger = [&](std::int64_t a, std::int64_t b) {
        if (!is_float(x.dtype()))
          return x.dtype() == DType::u64 ? static_cast<std::uint64_t>(x.int_at(a)) > static_cast<std::uint64_t>(x.int_at(b))
                                         : x.int_at(a) > x.int_at(b);
        return x.at(b) == x.at(b) && !(x.at(a) <= x.at(b));
      };
      visit_window(node, plane, index, [&](std::int64_t at) {
        if (best < 0 || larger(start + at, best)) best = start + at;
      });
      if (best >= 0) {
        copy_element(y, i, x, best);
      } else if (is_float(x.dtype())) {
        y.set(i, -std::numeric_limits<double>::infinity());
      } else if (is_signed(x.dtype())) {
        y.set_int(i, std::numeric_limits<std::int64_t>::min() >> (64 - 8 * static_cast<int>(size_bytes(x.dtype()))));
      }
    }
  }
  return {std::move(y)};
}

Cost pool_cost(const Node& node) {
  Expr flops = node.output(0)->type.elements();
  for (const std::int64_t k : node.get<std::vector<std::int64_t>>("kernel")) flops *= Expr(k);
  return {flops};
}

constexpr OpDef kWindowOps[] = {
    {.name = "max_pool",
     .kind = OpKind::window,
     .formula = "largest in the window, NaN if any is; padding never wins; of nothing the type's lowest value",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_pool,
     .eval = eval<false>,
     .cost = pool_cost,
     .gradient = pool_gradient},
    {.name = "avg_pool",
     .kind = OpKind::window,
     .formula =
         "sum of the window / its elements inside the data (with count_include_pad inside the padding too); of nothing 0",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_pool,
     .eval = eval<true>,
     .cost = pool_cost,
     .gradient = pool_gradient},
};

}  // namespace

void check_spatial_rank(const TensorType& x) {
  if (x.rank() < 3 || x.rank() > 5) reject("data of batch, channels and 1 to 3 spatial dimensions", x.text());
}

Shape window_shape(const Node& node, const TensorType& x, const std::vector<std::int64_t>& kernel, bool cut) {
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
                                     node.get_or<std::int64_t>("ceil_mode", 0) != 0, cut));
  }
  return shape;
}

std::span<const OpDef> window_ops() { return kWindowOps; }

}  // namespace oclc
