#include "frontends/onnx/ops/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace oclc::onnx {
namespace {

constexpr std::int64_t kLargestStep = 1 << 20;  // of kernels, strides, dilations, pads

// Pads that give ceil(size / stride) positions, with the odd one at the front or the back.
std::vector<Expr> same_pads(OpContext& c, const Window& w, bool extra_in_front) {
  const std::size_t axes = w.kernel.size();
  std::vector<Expr> pads(2 * axes, Expr(0));
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr& size = c.shape(0)[i + 2];
    const std::int64_t span = w.dilations[i] * (w.kernel[i] - 1) + 1;
    Expr total = span - 1;  // for stride 1, whatever the size
    if (w.strides[i] > 1)
      total = max((ceil_div(size, Expr(w.strides[i])) - 1) * Expr(w.strides[i]) + Expr(span) - size, Expr(0));
    const Expr less = floor_div(total, Expr(2)), more = total - less;
    pads[i] = extra_in_front ? more : less;
    pads[i + axes] = extra_in_front ? less : more;
  }
  return pads;
}

}  // namespace

Ints checked_list(OpContext& c, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
  const Ints list = c.integers(name, Ints(count, otherwise));
  if (list.size() != count) c.fail(fmt::format("{} numbers as attribute '{}'", count, name), std::to_string(list.size()));
  for (const std::int64_t v : list) {
    if (v < least || v > kLargestStep)
      c.fail(fmt::format("numbers from {} to {} as attribute '{}'", least, kLargestStep, name), std::to_string(v));
  }
  return list;
}

Window window_of(OpContext& c, const Ints& kernel, bool open_pads) {
  const std::size_t axes = kernel.size();
  Window w{kernel, checked_list(c, "strides", axes, 1, 1), checked_list(c, "dilations", axes, 1, 1), {}, {}};
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic.empty()) {
    w.pads = checked_list(c, "pads", 2 * axes, 0, 0);
    return w;
  }
  c.ignore({"pads"});
  if (automatic == "VALID") {
    w.pads.assign(2 * axes, 0);
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    w.pads.assign(2 * axes, 0);
    const std::vector<Expr> pads = same_pads(c, w, automatic == "SAME_LOWER");
    if (std::all_of(pads.begin(), pads.end(), [](const Expr& e) { return e.is_constant(); })) {
      std::transform(pads.begin(), pads.end(), w.pads.begin(), [](const Expr& e) { return e.value(); });
    } else if (open_pads) {
      w.open_pads = pads;
    } else {
      c.unsupported("a size known when compiling for auto_pad with a stride", c.input(0)->type.text(),
                    "give it with --shape or --dim");
    }
  } else {
    c.fail("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", printable(automatic));
  }
  return w;
}

Window window_of_weights(OpContext& c, const Value* weights, bool open_pads) {
  const std::size_t axes = spatial_axes(c);
  const Shape& shape = weights->type.shape;
  if (shape.size() != axes + 2) c.fail(fmt::format("weights of rank {}", axes + 2), weights->type.text());
  Ints kernel;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    if (!shape[i].is_constant()) c.unsupported("weights of known size", weights->type.text());
    kernel.push_back(shape[i].value());
  }
  if (c.has("kernel_shape") && c.integers("kernel_shape") != kernel) {
    c.fail(fmt::format("attribute 'kernel_shape' as the weights have it, [{}]", fmt::join(kernel, ", ")),
           fmt::format("[{}]", fmt::join(c.integers("kernel_shape"), ", ")));
  }
  return window_of(c, kernel, open_pads);
}

Value* padded(OpContext& c, Value* x, const Window& w, double value) {
  if (w.open_pads.empty()) return x;
  const auto axes = static_cast<std::ptrdiff_t>(w.kernel.size());
  std::vector<Expr> before(2, Expr(0)), after = before;
  before.insert(before.end(), w.open_pads.begin(), w.open_pads.begin() + axes);
  after.insert(after.end(), w.open_pads.begin() + axes, w.open_pads.end());
  return c.b.pad(x, std::move(before), std::move(after), value);
}

Value* same_positions(OpContext& c, Value* y, const Window& w) {
  if (w.open_pads.empty()) return y;
  Shape sizes = y->type.shape;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) sizes[i + 2] = ceil_div(c.shape(0)[i + 2], Expr(w.strides[i]));
  const std::size_t rank = sizes.size();
  return c.b.slice(y, std::vector<Expr>(rank, Expr(0)), std::move(sizes), Ints(rank, 1));
}

Value* channels_second(OpContext& c, Value* x) {
  if (x->type.rank() < 3) c.fail("a tensor of rank 3 or more", x->type.text());
  Ints perm(x->type.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return c.b.transpose(x, std::move(perm));
}

Value* channels_last(OpContext& c, Value* x) {
  Ints perm(x->type.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return c.b.transpose(x, std::move(perm));
}

std::size_t spatial_axes(OpContext& c) {
  if (c.rank(0) < 3 || c.rank(0) > 5) c.fail("an input of rank 3 to 5", c.input(0)->type.text());
  return c.rank(0) - 2;
}

}  // namespace oclc::onnx
