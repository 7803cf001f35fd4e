// Fourier transforms, by ONNX's reader of DFT.
#include <algorithm>
#include <cmath>

#include "frontends/pt2/axes.h"
#include "frontends/pt2/complex.h"
#include "frontends/pt2/onnx_call.h"

namespace oclc::pt2 {
namespace {

Expr size_along(const Value* x, std::int64_t axis) { return x->type.shape[static_cast<std::size_t>(axis)]; }

// Along one axis, of tensors [.., 1 or 2]. Backwards the result is divided by its length.
Value* transform(AtenContext& c, Value* x, std::int64_t axis, bool backwards, bool half, const Expr& length) {
  return onnx_call(c, "DFT", {x, c.b.exprs({length}, {}), c.b.ints({axis})},
                   {{"inverse", std::int64_t{backwards}}, {"onesided", std::int64_t{half}}})[0];
}

// The normalization of a transform of n = count elements: torch's modes none, by 1/sqrt(n) and by 1/n.
double factor(AtenContext& c, double count) {
  switch (c.integer("normalization")) {
    case 0:
      return 1;
    case 1:
      return 1 / std::sqrt(count);
    case 2:
      return 1 / count;
    default:
      c.refuse("a normalization 0, 1 or 2", std::to_string(c.integer("normalization")));
  }
}

struct Axes {
  Ints list;
  double count = 1;  // elements along all of them
};

// `last`: the size of the last axis where it is not the operand's.
Axes axes_of(AtenContext& c, const Value* x, std::optional<std::int64_t> last = std::nullopt) {
  Axes axes;
  for (const std::int64_t given : c.integers("dim")) axes.list.push_back(c.axis(given, x->type.rank()));
  if (axes.list.empty()) c.refuse("dimensions to transform along", "none");
  for (std::size_t i = 0; i < axes.list.size(); ++i) {
    const Expr size = last && i + 1 == axes.list.size() ? Expr(*last) : size_along(x, axes.list[i]);
    if (!size.is_constant()) c.refuse("lengths of transforms that are known when compiling", size.text());
    axes.count *= static_cast<double>(size.value());
  }
  return axes;
}

Value* scaled(AtenContext& c, Value* x, double by) { return by == 1 ? x : c.b.mul(x, by); }

ComplexOutputs of_complex(ComplexContext& z) {
  AtenContext& c = z.arguments();
  const Complex operand = z.operand("self");
  const Axes axes = axes_of(c, operand.re);
  const bool backwards = !c.flag("forward");
  Value* x = pairs_of(z.b, operand);
  for (const std::int64_t axis : axes.list) x = transform(c, x, axis, backwards, false, size_along(x, axis));
  return {parts_of(z.b, scaled(c, x, factor(c, axes.count) * (backwards ? axes.count : 1)))};
}

ComplexOutputs of_real(ComplexContext& z) {
  AtenContext& c = z.arguments();
  Value* real = z.real_operand("self");
  const Axes axes = axes_of(c, real);
  Shape column = real->type.shape;
  column.emplace_back(1);
  const std::int64_t last = axes.list.back();
  Value* x = transform(c, z.b.reshape(real, column), last, false, c.flag("onesided"), size_along(real, last));
  for (std::size_t i = 0; i + 1 < axes.list.size(); ++i)
    x = transform(c, x, axes.list[i], false, false, size_along(x, axes.list[i]));
  return {parts_of(z.b, scaled(c, x, factor(c, axes.count)))};
}

// Of the first half of what a real tensor's transform is, back to the real tensor.
ComplexOutputs to_real(ComplexContext& z) {
  AtenContext& c = z.arguments();
  const Complex operand = z.operand("self");
  const std::int64_t length = c.integer("last_dim_size");
  const Axes axes = axes_of(c, operand.re, length);
  Value* x = pairs_of(z.b, operand);
  for (std::size_t i = 0; i + 1 < axes.list.size(); ++i)
    x = transform(c, x, axes.list[i], true, false, size_along(x, axes.list[i]));
  x = transform(c, x, axes.list.back(), true, true, Expr(length));
  Shape shape = x->type.shape;
  shape.pop_back();
  return {{z.b.reshape(scaled(c, x, factor(c, axes.count) * axes.count), shape)}};
}

// ---- as programs that are not decomposed have them: names with how many axes ("fft", "fft2", "fftn")

struct Transforms {
  std::string_view name;  // without the number of axes
  Ints axes;
  std::vector<std::int64_t> lengths;  // of what is not halved
  double count = 1;
  bool forward() const { return name == "fft" || name == "rfft" || name == "hfft"; }
  bool halved() const { return name.find("rfft") != name.npos || name.find("hfft") != name.npos; }
  bool gives_real() const { return name == "irfft" || name == "hfft"; }
};

Transforms transforms_of(AtenContext& c, std::string_view core, const Value* x) {
  const std::size_t rank = x->type.rank();
  Transforms t{core, {}, {}};
  const bool two = core.back() == '2', many = core.back() == 'n';
  if (two || many) t.name.remove_suffix(1);
  const Ints sizes = c.integers("s");
  t.axes = two ? c.integers("dim", {-2, -1}) : many ? c.integers("dim") : Ints{c.integer("dim", -1)};
  if (many && t.axes.empty())
    for (std::size_t i = sizes.empty() ? 0 : rank - sizes.size(); i < rank; ++i) t.axes.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < t.axes.size(); ++i) {
    t.axes[i] = c.axis(t.axes[i], rank);
    const bool last = i + 1 == t.axes.size();
    Expr length = size_along(x, t.axes[i]);
    if (t.gives_real() && last) length = (length - 1) * 2;
    if (i < sizes.size() && sizes[i] != -1) length = sizes[i];
    if (c.has("n")) length = c.size("n");
    if (!length.is_constant()) c.refuse("lengths of transforms that are known when compiling", length.text());
    t.lengths.push_back(length.value());
    t.count *= static_cast<double>(length.value());
  }
  if (t.axes.empty()) c.refuse("dimensions to transform along", "none");
  return t;
}

double factor_of(AtenContext& c, const Transforms& t) {
  const std::string norm = c.text("norm", "backward");
  if (norm == "ortho") return 1 / std::sqrt(t.count);
  return t.forward() == (norm == "forward") ? 1 / t.count : 1;
}

Complex conjugated(ComplexContext& z, const Complex& x) { return {x.re, x.im ? z.b.unary("neg", x.im) : nullptr}; }

ComplexOutputs whole(ComplexContext& z) {
  AtenContext& c = z.arguments();
  Complex operand = z.operand("self");
  const Transforms t = transforms_of(c, z.core(), operand.re);
  double by = factor_of(c, t);
  const std::int64_t last = t.axes.back(), last_length = t.lengths.back();
  Value* x = pairs_of(z.b, operand);
  const auto along = [&](std::size_t i, bool backwards) {
    x = transform(c, x, t.axes[i], backwards, false, Expr(t.lengths[i]));
    if (backwards) by *= static_cast<double>(t.lengths[i]);
  };
  // Halves begin with the last axis where they are made, and end with it where they are read.
  if (t.halved() && !t.gives_real()) {
    Shape column = operand.re->type.shape;
    column.emplace_back(1);
    x = transform(c, z.b.reshape(operand.re, column), last, false, true, Expr(last_length));
    if (t.name == "ihfft") x = pairs_of(z.b, conjugated(z, parts_of(z.b, x)));
  }
  for (std::size_t i = 0; i < t.axes.size() - (t.halved() ? 1 : 0); ++i) along(i, !t.forward());
  if (!t.gives_real()) return {parts_of(z.b, scaled(c, x, by))};
  if (t.name == "hfft") x = pairs_of(z.b, conjugated(z, parts_of(z.b, x)));
  x = transform(c, x, last, true, true, Expr(last_length));
  Shape shape = x->type.shape;
  shape.pop_back();
  return {{z.b.reshape(scaled(c, x, by * static_cast<double>(last_length)), shape)}};
}

// ---- of frames

struct Frames {
  std::int64_t size = 0, step = 0;
  Value* window = nullptr;  // [size]; null: ones
  double by = 1;
};

Frames frames_of(AtenContext& c, DType dtype) {
  const std::int64_t size = c.integer("n_fft"), step = c.integer("hop_length", size / 4), width = c.integer("win_length", size);
  if (size < 1 || step < 1 || width < 1 || width > size) c.refuse("frames of a positive size and step", std::to_string(size));
  Frames f{size, step, c.optional_tensor("window"), c.flag("normalized") ? 1 / std::sqrt(static_cast<double>(size)) : 1};
  if (!f.window && width < size) f.window = c.b.expand(c.b.scalar(dtype, 1), {Expr(width)});
  if (f.window && width < size) {
    const std::int64_t left = (size - width) / 2;
    f.window = c.b.pad(f.window, {Expr(left)}, {Expr(size - width - left)});
  }
  return f;
}

ComplexOutputs of_frames(ComplexContext& z) {
  AtenContext& c = z.arguments();
  Value* x = z.real_operand("self");
  if (c.flag("align_to_window")) c.refuse("frames that are not aligned to their windows", "align_to_window");
  const Frames f = frames_of(c, x->type.dtype);
  const bool alone = x->type.rank() == 1;
  if (alone) x = c.b.reshape(x, {Expr(1), x->type.shape[0]});
  if (c.flag("center")) {
    const std::int64_t half = f.size / 2;
    x = onnx_call(
        c, "Pad", {x, c.b.ints({0, half, 0, half})},
        {{"mode", c.text("pad_mode", "reflect") == "replicate" ? std::string("edge") : c.text("pad_mode", "reflect")}})[0];
  }
  const Expr count = floor_div(x->type.shape[1] - f.size, Expr(f.step)) + 1;
  x = c.b.gather(x, window_places(c, count, Expr(f.size), Expr(f.step)), 1);
  if (f.window) x = c.b.mul(x, f.window);
  Shape column = x->type.shape;
  column.emplace_back(1);
  x = transform(c, c.b.reshape(x, column), 2, false, c.flag("onesided", true), Expr(f.size));
  const Complex y = parts_of(z.b, scaled(c, x, f.by));
  const auto shaped = [&](Value* v) { return c.b.reshape(c.b.transpose(v, {0, 2, 1}), c.result().shape); };
  return {{shaped(y.re), shaped(y.im)}};
}

// Frames added up where they overlap, divided by what their windows' squares add up to.
ComplexOutputs from_frames(ComplexContext& z) {
  AtenContext& c = z.arguments();
  const Complex operand = z.operand("self");
  const Frames f = frames_of(c, operand.re->type.dtype);
  if (c.flag("return_complex") || !c.flag("onesided", true))
    c.refuse("the first half of frames of real numbers", "all of complex ones");
  const auto turned = [&](Value* v) {
    if (v->type.rank() == 2) v = c.b.reshape(v, {Expr(1), v->type.shape[0], v->type.shape[1]});
    return c.b.transpose(v, {0, 2, 1});
  };
  Value* x = transform(c, pairs_of(z.b, {turned(operand.re), turned(operand.im)}), 2, true, true, Expr(f.size));
  const Expr batch = x->type.shape[0], count = x->type.shape[1];
  if (!count.is_constant()) c.refuse("a number of frames known when compiling", count.text());
  x = scaled(c, c.b.reshape(x, {batch, count, Expr(f.size)}), 1 / f.by);
  const std::int64_t total = f.size + f.step * (count.value() - 1), first = c.flag("center", true) ? f.size / 2 : 0;
  const std::int64_t length = c.integer("length", total - 2 * first);
  const auto added = [&](Value* frames) {
    Value* sum = onnx_call(c, "Col2Im", {c.b.transpose(frames, {0, 2, 1}), c.b.ints({1, total}), c.b.ints({1, f.size})},
                           {{"strides", Ints{1, f.step}}})[0];
    return c.b.slice_axis(c.b.reshape(sum, {frames->type.shape[0], Expr(total)}), 1, Expr(first),
                          Expr(std::min(length, total - first)));
  };
  Value* window = f.window ? f.window : c.b.expand(c.b.scalar(x->type.dtype, 1), {Expr(f.size)});
  Value* y = c.b.div(added(c.b.mul(x, window)), added(c.b.expand(c.b.mul(window, window), {Expr(1), count, Expr(f.size)})));
  if (length > total - first) y = c.b.pad(y, {Expr(0), Expr(0)}, {Expr(0), Expr(length - (total - first))});
  return {{c.b.reshape(y, c.result().shape)}};
}

constexpr ComplexRow kFourierRows[] = {
    {"aten._fft_c2c.default", of_complex},
    {"aten._fft_r2c.default", of_real},
    {"aten._fft_c2r.default", to_real},
    {"aten.fft_fft.default", whole, "fft"},
    {"aten.fft_fft2.default", whole, "fft2"},
    {"aten.fft_fftn.default", whole, "fftn"},
    {"aten.fft_ifft.default", whole, "ifft"},
    {"aten.fft_ifft2.default", whole, "ifft2"},
    {"aten.fft_ifftn.default", whole, "ifftn"},
    {"aten.fft_rfft.default", whole, "rfft"},
    {"aten.fft_rfft2.default", whole, "rfft2"},
    {"aten.fft_rfftn.default", whole, "rfftn"},
    {"aten.fft_irfft.default", whole, "irfft"},
    {"aten.fft_irfft2.default", whole, "irfft2"},
    {"aten.fft_irfftn.default", whole, "irfftn"},
    {"aten.fft_hfft.default", whole, "hfft"},
    {"aten.fft_hfft2.default", whole, "hfft2"},
    {"aten.fft_hfftn.default", whole, "hfftn"},
    {"aten.fft_ihfft.default", whole, "ihfft"},
    {"aten.fft_ihfft2.default", whole, "ihfft2"},
    {"aten.fft_ihfftn.default", whole, "ihfftn"},
    {"aten.stft.default", of_frames},
    {"aten.stft.center", of_frames},
    {"aten.istft.default", from_frames},
};

}  // namespace

std::span<const ComplexRow> fourier_rows() { return kFourierRows; }

}  // namespace oclc::pt2
