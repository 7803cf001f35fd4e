// Padding by a number and by what lies inside.
#include <algorithm>

#include "compiler/ops/shape_rules.h"
#include "frontends/pt2/gradient.h"
#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// Pairs of before and after from the last axis on; negative ones cut.
Outputs constant_pad(AtenContext& c) {
  Value* x = c.tensor("self");
  const Shape pad = c.sizes("pad");
  const std::size_t rank = x->type.rank();
  std::vector<Expr> before(rank, Expr(0)), after = before;
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    before.at(rank - 1 - i) = pad[2 * i];
    after.at(rank - 1 - i) = pad[2 * i + 1];
  }
  std::vector<Expr> starts(rank, Expr(0));
  Shape sizes = x->type.shape;
  bool cuts = false, adds = false;
  for (std::size_t i = 0; i < rank; ++i) {
    for (Expr* side : {&before[i], &after[i]}) {
      if (!known_less(*side, Expr(0))) {
        adds = adds || !(*side == Expr(0));
        continue;
      }
      cuts = true;
      sizes[i] = sizes[i] + *side;
      if (side == &before[i]) starts[i] = -*side;
      *side = 0;
    }
  }
  if (cuts) x = c.b.slice(x, starts, sizes, Ints(rank, 1));
  if (!adds) return {x};
  if (x->type.dtype == DType::boolean)
    return {c.b.cast(c.b.pad(c.b.cast(x, DType::u8), before, after, c.real("value", 0) != 0 ? 1 : 0), DType::boolean)};
  return {c.b.pad(x, before, after, c.real("value", 0))};
}

Value* mirrored(AtenContext& c, Value* x, const Ints& pad, std::string_view mode) {
  const std::size_t rank = x->type.rank();
  Ints list(2 * rank, 0);
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    list.at(rank - 1 - i) = pad[2 * i];
    list.at(2 * rank - 1 - i) = pad[2 * i + 1];
  }
  return onnx_call(c, "Pad", {x, c.b.ints(list)}, {{"mode", std::string(mode)}})[0];
}

// The same by reading at positions, through which gradients flow.
Value* read_mirrored(AtenContext& c, Value* x, const Ints& pad, std::string_view mode) {
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const std::size_t axis = x->type.rank() - 1 - i;
    const Expr size = x->type.shape[axis];
    if (!size.is_constant())
      c.refuse("sizes known when compiling for padding that cuts, and for gradients of padding", x->type.text());
    const std::int64_t last = size.value() - 1;
    Ints places;
    for (std::int64_t k = -pad[2 * i]; k <= last + pad[2 * i + 1]; ++k)
      places.push_back(mode == "edge" ? std::clamp(k, std::int64_t{0}, last) : k < 0 ? -k : k > last ? 2 * last - k : k);
    x = c.b.gather(x, c.b.ints(places), static_cast<std::int64_t>(axis));
  }
  return x;
}

// What negative numbers cut may be more than there is: the edge is repeated all the same.
Value* padded(AtenContext& c, Value* x, const Ints& pad, std::string_view mode) {
  const bool cuts = std::any_of(pad.begin(), pad.end(), [](std::int64_t p) { return p < 0; });
  return cuts ? read_mirrored(c, x, pad, mode) : mirrored(c, x, pad, mode);
}

Outputs mirrored_pad(AtenContext& c) { return {padded(c, c.tensor("self"), c.integers("padding"), c.core())}; }

// What lies at the other end.
Value* circular(AtenContext& c, Value* x, const Shape& pad) {
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(x->type.rank() - 1 - i);
    const Expr &before = pad[2 * i], &after = pad[2 * i + 1], size = x->type.shape[static_cast<std::size_t>(axis)];
    if (known_less(before, Expr(0)) || known_less(after, Expr(0)))
      c.refuse("circular padding that adds", before.text() + ", " + after.text());
    std::vector<Value*> parts{x};
    if (!(before == Expr(0))) parts.insert(parts.begin(), c.b.slice_axis(x, axis, size - before, before));
    if (!(after == Expr(0))) parts.push_back(c.b.slice_axis(x, axis, Expr(0), after));
    if (parts.size() > 1) x = c.b.concat(parts, axis);
  }
  return x;
}

Outputs pad(AtenContext& c) {
  const std::string mode = c.text("mode", "constant");
  if (mode == "constant") return constant_pad(c);
  Value* x = c.tensor("self");
  if (mode == "circular") return {circular(c, x, c.sizes("pad"))};
  if (mode != "reflect" && mode != "replicate") c.refuse("padding constant, reflect, replicate or circular", mode);
  return {padded(c, x, c.integers("pad"), mode == "reflect" ? "reflect" : "edge")};
}

Outputs mirrored_pad_backward(AtenContext& c) {
  return gradients_of(c, {c.tensor("self")}, c.tensor("grad_output"), [&](const std::vector<Value*>& own) {
    return read_mirrored(c, own[0], c.integers("padding"), c.core());
  });
}

constexpr OpRow kPaddingRows[] = {
    {"aten.constant_pad_nd.default", constant_pad},
    {"aten.pad.default", pad},
    {"aten.reflection_pad1d.default", mirrored_pad, "reflect"},
    {"aten.reflection_pad2d.default", mirrored_pad, "reflect"},
    {"aten.reflection_pad3d.default", mirrored_pad, "reflect"},
    {"aten.replication_pad1d.default", mirrored_pad, "edge"},
    {"aten.replication_pad2d.default", mirrored_pad, "edge"},
    {"aten.replication_pad3d.default", mirrored_pad, "edge"},
    {"aten.replication_pad1d_backward.default", mirrored_pad_backward, "edge"},
    {"aten.replication_pad2d_backward.default", mirrored_pad_backward, "edge"},
    {"aten.replication_pad3d_backward.default", mirrored_pad_backward, "edge"},
};

}  // namespace

std::span<const OpRow> padding_rows() { return kPaddingRows; }

}  // namespace oclc::pt2
