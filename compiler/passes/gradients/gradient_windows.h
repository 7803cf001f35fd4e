// Windows of convolutions and pools, as the expansions of their gradients see them.
#pragma once
#include <span>
#include <vector>

#include "compiler/ops/builder.h"

namespace oclc {

using Exprs = std::vector<Expr>;

Exprs zeros(std::size_t count);
Ints ones(std::size_t count);
bool all_ones(const Ints& list);
Ints from_to(std::int64_t begin, std::int64_t end);  // begin, begin + 1, ..., end - 1

// Attributes of a node whose windows move over the spatial axes; pads are those before all axes, then those after.
struct Windows {
  explicit Windows(const Node& node)
      : strides(node.get<Ints>("strides")), dilations(node.get<Ints>("dilations")), pads(node.get<Ints>("pads")) {}
  Ints strides, dilations, pads;
};

// Each tap as its index along the spatial axes, row-major.
std::vector<Ints> taps_of(const Ints& kernel);
// x[n, c, p * stride + tap * dilation - pad] for all window positions p; `outside` beyond the data.
Value* tap_of(Builder& b, Value* x, const Windows& windows, const Ints& tap, std::span<const Expr> positions, double outside);
// v with its spatial axes spread: see the operator.
Value* spread(Builder& b, Value* v, const Ints& starts, const Ints& strides, std::span<const Expr> sizes);
// Weights [O, C / group, k..] as [C, O / group, k..], the taps reversed.
Value* adjoint_weights(Builder& b, Value* w, std::int64_t group);
// A copy of v in channels-last storage.
Value* stored_channels_last(Builder& b, Value* v);

}  // namespace oclc
