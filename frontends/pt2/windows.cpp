#include "frontends/pt2/windows.h"

#include <algorithm>
#include <numeric>

namespace oclc::pt2 {
namespace {

std::int64_t known_tap_count(AtenContext& c, const Value* weight, std::size_t i) {
  const Expr& size = weight->type.shape.at(i + 2);
  if (!size.is_constant()) c.refuse("weights of known size", weight->type.text());
  return size.value();
}

Value* with_zeros(AtenContext& c, Value* x, const Ints& before, const Ints& after) {
  std::vector<Expr> low(x->type.rank(), Expr(0)), high = low, starts = low;
  Shape sizes = x->type.shape;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Expr cut_low(std::max<std::int64_t>(-before[i], 0)), cut_high(std::max<std::int64_t>(-after[i], 0));
    starts[i + 2] = cut_low;
    sizes[i + 2] = sizes[i + 2] - cut_low - cut_high;
    low[i + 2] = std::max<std::int64_t>(before[i], 0);
    high[i + 2] = std::max<std::int64_t>(after[i], 0);
  }
  if (!(sizes == x->type.shape)) x = c.b.slice(x, starts, sizes, Ints(sizes.size(), 1));
  return c.b.pad(x, low, high, 0);
}

}  // namespace

Value* windows_of(AtenContext& c, Value* x, const Windows& w) {
  x = with_zeros(c, x, w.before, w.after);
  const std::size_t axes = w.kernel.size();
  Ints perm{0, 1};
  for (std::size_t i = 0; i < axes; ++i) {  // [.., in, ..] as [.., out, kernel, ..]
    const auto axis = static_cast<std::int64_t>(2 + 2 * i);
    const Expr count =
        floor_div(x->type.shape[2 + 2 * i] - Expr(w.dilations[i] * (w.kernel[i] - 1) + 1), Expr(w.strides[i])) + 1;
    Value* places = c.b.add(c.b.iota({count, Expr(1)}, 0, DType::i64, Expr(0), Expr(w.strides[i])),
                            c.b.iota({Expr(1), Expr(w.kernel[i])}, 1, DType::i64, Expr(0), Expr(w.dilations[i])));
    x = c.b.gather(x, places, axis);
    perm.push_back(axis);
  }
  for (std::size_t i = 0; i < axes; ++i) perm.push_back(static_cast<std::int64_t>(3 + 2 * i));
  return c.b.transpose(x, perm);
}

Value* convolved_by_windows(AtenContext& c, Value* x, Value* weight, const Windows& w, std::int64_t groups) {
  const std::size_t axes = w.kernel.size();
  Value* y = windows_of(c, x, w);
  const Shape all = y->type.shape;
  const Expr batch = all[0], per = weight->type.shape[1], outputs = floor_div(weight->type.shape[0], Expr(groups));
  Shape result{batch, weight->type.shape[0]};
  Expr positions = 1, taps = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    positions *= all[2 + i];
    taps *= all[2 + axes + i];
    result.push_back(all[2 + i]);
  }
  y = c.b.transpose(c.b.reshape(y, {batch, Expr(groups), per, positions, taps}), {0, 1, 3, 2, 4});
  y = c.b.reshape(y, {batch, Expr(groups), positions, per * taps});
  y = c.b.matmul(y, c.b.reshape(weight, {Expr(1), Expr(groups), outputs, per * taps}), false, true);
  return c.b.reshape(c.b.transpose(y, {0, 1, 3, 2}), result);
}

Value* convolved_back_by_windows(AtenContext& c, Value* x, Value* weight, const Windows& w, std::int64_t groups) {
  const std::size_t axes = w.kernel.size();
  Windows own{w.kernel, Ints(axes, 1), w.dilations, {}, {}};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = i + 2;
    if (w.strides[i] > 1) {  // [.., in, ..] as [.., in, stride, ..] with zeros, without those behind the last
      Shape apart = x->type.shape, joined = apart;
      apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Expr(1));
      joined[axis] = joined[axis] * w.strides[i];
      std::vector<Expr> none(apart.size(), Expr(0)), behind = none;
      behind[axis + 1] = w.strides[i] - 1;
      x = c.b.reshape(c.b.pad(c.b.reshape(x, apart), none, behind, 0), joined);
      x = c.b.slice_axis(x, static_cast<std::int64_t>(axis), Expr(0), joined[axis] - (w.strides[i] - 1));
    }
    const std::int64_t reach = w.dilations[i] * (known_tap_count(c, weight, i) - 1);
    own.before.push_back(reach - w.before[i]);
    own.after.push_back(reach - w.after[i]);
  }
  // weight[G, C / G, O / G, ..] as [G, O / G, C / G, ..], its taps from the last on.
  const Shape& shape = weight->type.shape;
  const Expr inputs = floor_div(shape[0], Expr(groups)), outputs = shape[1];
  Shape split{Expr(groups), inputs, outputs}, turned{outputs * groups, inputs};
  Ints perm{0, 2, 1}, steps(axes + 2, 1);
  std::vector<Expr> starts(axes + 2, Expr(0));
  for (std::size_t i = 0; i < axes; ++i) {
    split.push_back(shape[i + 2]);
    turned.push_back(shape[i + 2]);
    perm.push_back(static_cast<std::int64_t>(i) + 3);
    starts[i + 2] = shape[i + 2] - 1;
    steps[i + 2] = -1;
  }
  Value* flipped = c.b.slice(c.b.reshape(c.b.transpose(c.b.reshape(weight, split), perm), turned), starts, turned, steps);
  return convolved_by_windows(c, x, flipped, own, groups);
}

}  // namespace oclc::pt2
