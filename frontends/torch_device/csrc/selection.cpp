// Operators whose result's size depends on values: the places of elements that are not zero, what masks select, values that
// differ. The number of results is read from the device, which waits for it; all else is done there.
#include <ATen/Functions.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "frontends/torch_device/csrc/compiled.h"
#include "frontends/torch_device/csrc/operators.h"

namespace oclc::torch_device {
namespace {

// Places of true elements of a vector, in order: the k-th is the first at which k + 1 have been counted.
at::Tensor places_of(const at::Tensor& flags) {
  const auto integers = flags.options().dtype(at::kLong);
  if (flags.numel() == 0) return at::empty({0}, integers);
  const at::Tensor counted = flags.cumsum(0, at::kLong);
  const auto count = counted[-1].item<std::int64_t>();
  if (count == 0) return at::empty({0}, integers);
  if (count == flags.numel()) return at::arange(count, integers);
  return at::searchsorted(counted, at::arange(1, count + 1, integers));
}

at::Tensor flags_of(const at::Tensor& self) { return (self.scalar_type() == at::kBool ? self : self.ne(0)).reshape({-1}); }

at::Tensor find_nonzero(const at::Tensor& self) {
  at::Tensor rest = places_of(flags_of(self));
  if (self.dim() == 1) return rest.unsqueeze(1);
  if (self.dim() == 0 || rest.numel() == 0) return at::empty({rest.numel(), self.dim()}, rest.options());
  std::vector<at::Tensor> axes(static_cast<std::size_t>(self.dim()));
  for (std::int64_t d = self.dim() - 1; d > 0; --d) {
    axes[static_cast<std::size_t>(d)] = rest.remainder(self.size(d));
    rest = at::floor_divide(rest, self.size(d));
  }
  axes[0] = rest;
  return at::stack(axes, 1);
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
              out.scalar_type());
  const at::Tensor found = find_nonzero(self);
  at::native::resize_output(out, found.sizes());
  out.copy_(found);
  return out;
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const auto both = at::broadcast_tensors({self, mask});
  return both[0].reshape({-1}).index_select(0, places_of(both[1].reshape({-1})));
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "masked_select(): self and result must have the same scalar type");
  const at::Tensor found = select_masked(self, mask);
  at::native::resize_output(out, found.sizes());
  out.copy_(found);
  return out;
}

struct Different {
  at::Tensor values, inverse, counts;
};

// The different ones of neighbours. `order`: of each element of `row` the place in a tensor of this shape, in which the inverse
// is given; undefined: its own.
Different different(const at::Tensor& row, const at::Tensor& order, at::IntArrayRef shape, bool inverse, bool counts) {
  const auto integers = row.options().dtype(at::kLong);
  Different found{row, at::empty({0}, integers), at::empty({0}, integers)};
  if (row.numel() == 0) {
    if (inverse) found.inverse = at::empty(shape, integers);
    return found;
  }
  const at::Tensor one = at::ones({1}, integers.dtype(at::kBool));
  const at::Tensor first = at::cat({one, row.slice(0, 1).ne(row.slice(0, 0, -1))});
  const at::Tensor places = places_of(first);
  found.values = row.index_select(0, places);
  if (inverse) {
    const at::Tensor ids = first.cumsum(0, at::kLong).sub_(1);
    found.inverse = (order.defined() ? at::empty_like(ids).scatter_(0, order, ids) : ids).reshape(shape);
  }
  if (counts) found.counts = at::cat({places.slice(0, 1), at::full({1}, row.numel(), integers)}).sub_(places);
  return found;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique(const at::Tensor& self, bool, bool inverse, bool counts) {
  const bool flags = self.scalar_type() == at::kBool;
  const at::Tensor flat = self.reshape({-1});
  const auto [row, order] = (flags ? flat.to(at::kByte) : flat).sort(0);
  Different found = different(row, order, self.sizes(), inverse, counts);
  return {flags ? found.values.to(at::kBool) : found.values, found.inverse, found.counts};
}

std::tuple<at::Tensor, at::Tensor> unique_without_counts(const at::Tensor& self, bool sorted, bool inverse) {
  const auto [values, places, counts] = unique(self, sorted, inverse, false);
  return {values, places};
}

// unique_consecutive; along an axis of several it has no plan either.
void unique_neighbours(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 4);
  const at::Tensor self = arguments[0].toTensor();
  if (!arguments[3].isNone() && self.dim() != 1) return run_operator(op, stack);
  Different found = different(self.reshape({-1}), {}, self.sizes(), arguments[1].toBool(), arguments[2].toBool());
  torch::jit::drop(*stack, 4);
  torch::jit::push(*stack, found.values, found.inverse, found.counts);
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, c10::SymInt minimum) {
  TORCH_CHECK(self.dim() == 1 && at::isIntegralType(self.scalar_type(), false) &&
                  (self.numel() == 0 || self.min().item().toLong() >= 0),
              "bincount only supports 1-d non-negative integral inputs.");
  const std::int64_t least = minimum.expect_int();
  TORCH_CHECK(least >= 0, "minlength should be >= 0");
  const bool weighed = weights && weights->defined();
  TORCH_CHECK(!weighed || weights->sizes() == self.sizes(), "weights should be 1-d and have the same length as input");
  const std::int64_t size = self.numel() == 0 ? least : std::max(least, self.max().item().toLong() + 1);
  const at::Tensor given = !weighed                               ? at::ones_like(self, at::kLong)
                           : weights->scalar_type() == at::kFloat ? *weights
                                                                  : weights->to(at::kDouble);
  return at::zeros({size}, given.options()).scatter_add_(0, self.to(at::kLong), given);
}

bool is_mask(const c10::IValue& index) {
  if (!index.isTensor() || !index.toTensor().defined()) return false;
  const at::ScalarType type = index.toTensor().scalar_type();
  return type == at::kBool || type == at::kByte;
}

// The mask over all of self where it is the one index, else undefined: what it selects is filled without being counted.
at::Tensor only_mask(const at::Tensor& self, const torch::List<std::optional<at::Tensor>>& indices) {
  at::Tensor mask;
  std::int64_t axis = 0;
  for (const std::optional<at::Tensor>& index : indices) {
    if (!index || !index->defined()) {
      ++axis;
      continue;
    }
    if (mask.defined() || !is_mask(*index) || index->device() != self.device()) return {};
    mask = index->scalar_type() == at::kBool ? *index : index->ne(0);
    for (std::int64_t d = 0; d < mask.dim(); ++d, ++axis)
      if (axis >= self.dim() || mask.size(d) != self.size(axis)) return {};
  }
  for (; mask.defined() && axis < self.dim(); ++axis) mask = mask.unsqueeze(-1);
  return mask;
}

// Without its last argument _index_put_impl_ is index_put_, which the compiler has.
void put(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (op.schema().name() != "aten::_index_put_impl_") return run_operator(op, stack);
  static const auto index_put = c10::Dispatcher::singleton().findSchemaOrThrow("aten::index_put_", "");
  torch::jit::drop(*stack, 1);
  run_operator(index_put, stack);
}

// index.Tensor and _index_put_impl_ with the places that masks name instead of masks.
void by_index(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const std::size_t begin = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[begin].toTensor();
  c10::IValue& indices = (*stack)[begin + 1];
  const auto given = indices.toListRef();
  if (!std::any_of(given.begin(), given.end(), is_mask)) return put(op, stack);
  const auto list = at::native::toListOfOptionalTensors(given);
  if (op.schema().name() == "aten::_index_put_impl_" && !(*stack)[begin + 3].toBool()) {
    const at::Tensor value = (*stack)[begin + 2].toTensor();
    const at::Tensor mask = value.numel() == 1 ? only_mask(self, list) : at::Tensor();
    if (mask.defined()) {
      at::Tensor filled = self;
      filled.masked_fill_(mask, value.reshape({}));
      torch::jit::drop(*stack, op.schema().arguments().size());
      stack->emplace_back(self);
      return;
    }
  }
  c10::List<std::optional<at::Tensor>> places;
  for (const at::Tensor& t : at::native::expandTensors(self, list, true))
    places.push_back(t.defined() ? std::optional<at::Tensor>(t) : std::nullopt);
  indices = std::move(places);
  put(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", find_nonzero);
  m.impl("nonzero.out", nonzero_out);
  m.impl("masked_select", select_masked);
  m.impl("masked_select.out", masked_select_out);
  m.impl("_unique", unique_without_counts);
  m.impl("_unique2", unique);
  m.impl("unique_consecutive", torch::CppFunction::makeFromBoxedFunction<&unique_neighbours>());
  m.impl("bincount", bincount);
  m.impl("index.Tensor", torch::CppFunction::makeFromBoxedFunction<&by_index>());
  m.impl("_index_put_impl_", torch::CppFunction::makeFromBoxedFunction<&by_index>());
}

}  // namespace
}  // namespace oclc::torch_device
