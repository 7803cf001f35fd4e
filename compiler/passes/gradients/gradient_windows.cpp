#include "compiler/passes/gradients/gradient_windows.h"

#include <algorithm>

#include "compiler/passes/layout/layout.h"

namespace oclc {

Exprs zeros(std::size_t count) { return Exprs(count, Expr(0)); }
Ints ones(std::size_t count) { return Ints(count, 1); }

bool all_ones(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](std::int64_t v) { return v == 1; });
}

Ints from_to(std::int64_t begin, std::int64_t end) {
  Ints list;
  for (std::int64_t i = begin; i < end; ++i) list.push_back(i);
  return list;
}

std::vector<Ints> taps_of(const Ints& kernel) {
  std::vector<Ints> taps{{}};
  for (const std::int64_t size : kernel) {
    std::vector<Ints> longer;
    for (const Ints& tap : taps) {
      for (std::int64_t k = 0; k < size; ++k) {
        longer.push_back(tap);
        longer.back().push_back(k);
      }
    }
    taps = std::move(longer);
  }
  return taps;
}

Value* tap_of(Builder& b, Value* x, const Windows& windows, const Ints& tap, std::span<const Expr> positions, double outside) {
  const std::size_t rank = x->type.rank();
  Exprs before = zeros(rank), after = zeros(rank), starts = zeros(rank), sizes = x->type.shape;
  Ints steps = ones(rank);
  for (std::size_t i = 0; i < tap.size(); ++i) {
    const std::size_t axis = i + 2;
    const std::int64_t offset = tap[i] * windows.dilations[i];
    before[axis] = Expr(windows.pads[i]);
    const Expr last = (positions[i] - 1) * Expr(windows.strides[i]) + Expr(offset - windows.pads[i]);
    after[axis] = max(last - x->type.shape[axis] + 1, Expr(0));
    starts[axis] = Expr(offset);
    sizes[axis] = positions[i];
    steps[axis] = windows.strides[i];
  }
  return b.slice(b.pad(x, before, after, outside), starts, sizes, steps);
}

Value* spread(Builder& b, Value* v, const Ints& starts, const Ints& strides, std::span<const Expr> sizes) {
  Ints all_starts{0, 0}, all_strides{1, 1};
  Exprs all_sizes{v->type.shape[0], v->type.shape[1]};
  all_starts.insert(all_starts.end(), starts.begin(), starts.end());
  all_strides.insert(all_strides.end(), strides.begin(), strides.end());
  all_sizes.insert(all_sizes.end(), sizes.begin(), sizes.end());
  return b.call("spread", {v}, {{"starts", all_starts}, {"strides", all_strides}, {"sizes", all_sizes}});
}

Value* stored_channels_last(Builder& b, Value* v) {
  v = b.call("store", {v}, {});
  v->layout = channels_last(v->type.rank());
  return v;
}

Value* adjoint_weights(Builder& b, Value* w, std::int64_t group) {
  const Shape& shape = w->type.shape;
  Shape split{Expr(group), floor_div(shape[0], Expr(group)), shape[1]};
  Ints perm{0, 2, 1};
  Shape joined{shape[1] * Expr(group), split[1]};
  Exprs starts = zeros(2);
  Ints steps{1, 1};
  for (std::size_t i = 2; i < shape.size(); ++i) {
    split.push_back(shape[i]);
    perm.push_back(static_cast<std::int64_t>(i) + 1);
    joined.push_back(shape[i]);
    starts.push_back(shape[i] - 1);
    steps.push_back(-1);
  }
  w = b.reshape(b.transpose(b.reshape(w, split), perm), joined);
  return b.slice(w, starts, joined, steps);
}

}  // namespace oclc
