// Running combinations along an axis.
#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/host_index.h"
#include "compiler/ops/shape_rules.h"

namespace oclc {
namespace {

std::vector<TensorType> infer_scan(const Node& node) {
  const TensorType& x = type_of_input(node, 0);
  if (x.dtype == DType::boolean) reject("numbers", x.text());
  const std::int64_t axis = node.get<std::int64_t>("axis");
  if (normalise_axis(axis, x.rank()) != axis) reject("an axis from 0 on", std::to_string(axis));
  node.get<std::int64_t>("exclusive");
  node.get<std::int64_t>("reverse");
  return {x};
}

std::vector<HostTensor> eval(const Node& node, std::span<const HostTensor> inputs, const SymbolValues&) {
  const HostTensor& x = inputs[0];
  HostTensor y(x.dtype(), x.shape());
  const bool exclusive = node.get<std::int64_t>("exclusive") != 0, reverse = node.get<std::int64_t>("reverse") != 0;
  const AxisView view(x.shape(), static_cast<std::size_t>(node.get<std::int64_t>("axis")));
  for (std::int64_t row = 0; row < view.outer * view.inner; ++row) {
    double sum = 0;
    std::uint64_t integer_sum = 0;  // wraps
    for (std::int64_t k = 0; k < view.size; ++k) {
      const std::int64_t along = reverse ? view.size - 1 - k : k;
      const std::int64_t at = (row / view.inner * view.size + along) * view.inner + row % view.inner;
      const double before = sum;
      const std::uint64_t integer_before = integer_sum;
      sum += x.at(at);
      integer_sum += static_cast<std::uint64_t>(x.int_at(at));
      if (is_float(x.dtype())) {
        y.set(at, exclusive ? before : sum);
      } else {
        y.set_int(at, static_cast<std::int64_t>(exclusive ? integer_before : integer_sum));
      }
    }
  }
  return {std::move(y)};
}

// Each element is part of the sums from it on: the running sum of the gradient from the other end.
std::vector<Value*> gradient(Builder& b, const Node& node, std::span<Value* const> gradients) {
  if (!gradients[0]) return {nullptr};
  return {b.cumsum(gradients[0], node.get<std::int64_t>("axis"), node.get<std::int64_t>("exclusive") != 0,
                   node.get<std::int64_t>("reverse") == 0)};
}

Cost scan_cost(const Node& node) { return {node.inputs[0]->type.elements()}; }

constexpr OpDef kScanOps[] = {
    {.name = "cumsum",
     .kind = OpKind::scan,
     .formula = "sum of the elements up to here along axis; exclusive: without this one; reverse: from the end",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = infer_scan,
     .eval = eval,
     .cost = scan_cost,
     .gradient = gradient},
};

}  // namespace

std::span<const OpDef> scan_ops() { return kScanOps; }

}  // namespace oclc
