// Quantised numbers, images, signals, losses, detection.
#include <algorithm>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

DType byte(Draft& d) { return d.type({DType::i8, DType::u8}); }

HostTensor zero_point(Draft& d, DType dtype, const Dims& shape) { return random_tensor(d.r, dtype, shape, {-9, 9}); }

// One number, or one of each position of an axis.
Dims per_axis(Draft& d, const Dims& shape, std::int64_t& axis) {
  axis = d.axis(shape.size());
  if (shape.empty() || d.r.chance(0.5) || d.opset < 13) return {};
  return {shape[static_cast<std::size_t>(axis)]};
}

void quantize(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = d.shape(1);
  std::int64_t axis = 0;
  const Dims per = per_axis(d, shape, axis);
  DType dtype = byte(d);
  if (d.opset >= 21 && d.r.chance(0.3))
    dtype = d.type({DType::i16, DType::u16, DType::i4, DType::u4, DType::f8e4m3fn, DType::f8e5m2});
  // Halves of the scale are rounded to even: the scale is a power of two, so that they are halves on every device.
  HostTensor scale(DType::f32, per);
  for (std::int64_t i = 0; i < scale.elements(); ++i) scale.set(i, d.r.pick({0.25, 0.5, 1.0}));
  d.input(DType::f32, shape, {-90, 90});
  d.known(std::move(scale));
  if (dtype != DType::u8 || d.r.chance(0.7)) d.known(zero_point(d, dtype, per));
  if (!per.empty()) d.set("axis", d.spelled(axis, shape.size()));
}

void dequantize(Draft& d) {
  const Dims shape = d.shape(1);
  std::int64_t axis = 0;
  const Dims per = per_axis(d, shape, axis);
  DType dtype = d.type({DType::i8, DType::u8, DType::i32});
  if (d.opset >= 21 && d.r.chance(0.4))
    dtype = d.type({DType::i16, DType::u16, DType::i4, DType::u4, DType::f8e4m3fnuz, DType::f8e5m2});
  d.input(dtype, shape, {-100, 100});
  d.input(DType::f32, per, {0.1, 2, true});
  if (dtype != DType::i32 && d.r.chance(0.6)) d.input(dtype, per, {-9, 9});
  if (!per.empty()) d.set("axis", d.spelled(axis, shape.size()));
}

void dynamic_quantize(Draft& d) {
  d.effect = Effect::decides;
  Dims shape = d.shape(1);
  for (auto& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  HostTensor x(DType::f32, shape);  // from -51 to 204: the scale is 1
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(d.r.integer(-51, 204)));
  x.set(0, -51);
  if (x.elements() > 1)
    x.set(1, 204);
  else
    x.set(0, 255);
  d.known(std::move(x));
  d.operands.back().known = false;
  d.outputs = 3;
}

void matmul_integer(Draft& d) {
  d.effect = Effect::decides;
  const std::int64_t m = d.r.integer(1, 6), k = d.r.integer(1, 20), n = d.r.integer(1, 6);
  const DType a = byte(d), b = byte(d);
  d.input(a, {m, k}, {-100, 100});
  d.input(b, {k, n}, {-100, 100});
  const bool zero = d.r.chance(0.7);
  zero ? (void)d.input(a, {}, {-9, 9}) : d.none();
  if (zero || d.r.chance(0.5)) d.input(b, {}, {-9, 9});
}

void conv_integer(Draft& d) {
  d.effect = Effect::decides;
  const std::int64_t group = d.r.chance(0.3) ? 2 : 1, each = d.r.integer(1, 3), features = d.r.integer(1, 3);
  const std::int64_t k0 = d.r.integer(1, 3), k1 = d.r.integer(1, 3);
  const bool rescaled = d.node.op_type() == "QLinearConv";
  const DType a = byte(d), b = rescaled ? byte(d) : byte(d);
  const Dims x{d.r.integer(1, 2), each * group, k0 + d.r.integer(0, 5), k1 + d.r.integer(0, 5)},
      w{features * group, each, k0, k1};
  const auto scale = [&](const Dims& shape) {
    HostTensor s(DType::f32, shape);
    for (std::int64_t i = 0; i < s.elements(); ++i) s.set(i, d.r.pick({0.125, 0.25, 0.5}));
    d.known(std::move(s));
  };
  const Dims per = d.r.chance(0.5) ? Dims{features * group} : Dims{};
  d.input(a, x, {-100, 100});
  if (rescaled) scale({}), d.known(zero_point(d, a, {}));
  d.input(b, w, {-100, 100});
  if (rescaled) {
    scale(per);
    d.known(zero_point(d, b, per));
    scale({});
    d.known(zero_point(d, a, {}));
    if (d.r.chance(0.6)) d.input(DType::i32, {features * group}, {-500, 500});
  } else if (d.r.chance(0.7)) {
    d.input(a, {}, {-9, 9});
    if (d.r.chance(0.7)) d.input(b, {}, {-9, 9});
  }
  if (group != 1) d.set("group", group);
  if (d.r.chance(0.5))
    d.set("pads", Dims{d.r.integer(0, k0 - 1), d.r.integer(0, k1 - 1), d.r.integer(0, k0 - 1), d.r.integer(0, k1 - 1)});
  if (d.r.chance(0.4)) d.set("strides", Dims{d.r.integer(1, 2), d.r.integer(1, 2)});
  if (d.r.chance(0.3)) d.set("kernel_shape", Dims{k0, k1});
}

void qlinear_matmul(Draft& d) {
  d.effect = Effect::decides;
  const std::int64_t m = d.r.integer(1, 6), k = d.r.integer(1, 20), n = d.r.integer(1, 6);
  const DType dtype = byte(d);
  const auto scale = [&] { d.known(HostTensor::scalar(DType::f32, d.r.pick({0.125, 0.25, 0.5}))); };
  d.input(dtype, {m, k}, {-100, 100});
  scale();
  d.known(zero_point(d, dtype, {}));
  d.input(dtype, {k, n}, {-100, 100});
  scale();
  d.known(zero_point(d, dtype, {}));
  scale();
  d.known(zero_point(d, dtype, {}));
}

void resize(Draft& d) {
  const Dims shape{d.r.integer(1, 2), d.r.integer(1, 3), d.r.integer(1, 6), d.r.integer(1, 6)};
  const std::string mode = d.opset >= 11 ? d.r.pick({"nearest", "linear", "cubic"}) : d.r.pick({"nearest", "linear"});
  d.effect = mode == "nearest" ? Effect::moves : Effect::smooth;
  d.tolerance = 8;
  d.scale = 4;
  d.input(DType::f32, shape);
  std::vector<double> scales{1, 1, d.r.pick({0.5, 1.0, 1.5, 2.0}), d.r.pick({0.6, 1.0, 2.0, 3.0})};
  Dims sizes = shape;
  for (std::size_t i = 2; i < 4; ++i) {
    if (static_cast<double>(shape[i]) * scales[i] < 1) scales[i] = 1;
    sizes[i] = d.r.integer(1, 9);
  }
  HostTensor given(DType::f32, {4});
  for (std::int64_t i = 0; i < 4; ++i) given.set(i, scales[static_cast<std::size_t>(i)]);
  d.set("mode", mode);
  d.symbolic = false;
  if (d.opset < 11) {
    d.known(std::move(given));
    return;
  }
  d.none();
  if (d.r.chance(0.5)) {
    d.known(std::move(given));
  } else {
    d.opset >= 13 ? d.none() : d.known(HostTensor(DType::f32, {0}));
    d.known_ints(sizes);
  }
  // The corners of one pixel are one.
  std::vector<const char*> ways{"half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"};
  if (d.opset >= 19) ways.push_back("half_pixel_symmetric");
  d.set("coordinate_transformation_mode", std::string(d.r.pick(ways)));
  if (mode == "nearest" && d.r.chance(0.7))
    d.set("nearest_mode", d.r.pick({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (mode == "cubic" && d.r.chance(0.4)) d.set("exclude_outside", 1);
  if (mode == "cubic" && d.r.chance(0.4)) d.set("cubic_coeff_a", d.r.pick({-0.5, -0.75}));
  if (d.opset >= 18 && mode != "nearest" && d.r.chance(0.3)) d.set("antialias", 1);
}

void upsample(Draft& d) {
  const std::string mode = d.r.pick({"nearest", "linear"});
  d.effect = mode == "nearest" ? Effect::moves : Effect::smooth;
  d.scale = 4;
  d.input(DType::f32, {d.r.integer(1, 2), d.r.integer(1, 3), d.r.integer(1, 5), d.r.integer(1, 5)});
  d.set("mode", mode);
  const std::vector<double> scales{1, 1, d.r.pick({1.0, 2.0, 3.0}), d.r.pick({1.0, 2.0, 1.5})};
  d.symbolic = false;
  if (d.opset >= 9) {
    HostTensor given(DType::f32, {4});
    for (std::int64_t i = 0; i < 4; ++i) given.set(i, scales[static_cast<std::size_t>(i)]);
    d.known(std::move(given));
    return;
  }
  auto* a = d.node.add_attribute();
  a->set_name("scales");
  a->set_type(oclc_onnx::AttributeProto::FLOATS);
  for (const double s : scales) a->add_floats(static_cast<float>(s));
}

void grid_sample(Draft& d) {
  const Dims shape{d.r.integer(1, 2), d.r.integer(1, 3), d.r.integer(2, 5), d.r.integer(2, 5)};
  const std::string mode =
      d.opset >= 20 ? d.r.pick({"linear", "nearest", "cubic"}) : d.r.pick({"bilinear", "nearest", "bicubic"});
  const std::string padding = d.r.pick({"zeros", "border", "reflection"});
  d.tolerance = 64;
  d.scale = 4;
  d.input(DType::f32, shape);
  // Away from the places where a pixel follows another.
  HostTensor grid(DType::f32, {shape[0], d.r.integer(1, 4), d.r.integer(1, 4), 2});
  const bool corners = d.r.chance(0.5);
  for (std::int64_t i = 0; i < grid.elements(); ++i) {
    const auto n = static_cast<double>(i % 2 == 0 ? shape[3] : shape[2]);
    const double pixel = static_cast<double>(d.r.integer(-2, static_cast<std::int64_t>(n))) + d.r.real(0.05, 0.45);
    grid.set(i, corners ? 2 * pixel / (n - 1) - 1 : (2 * pixel + 1) / n - 1);
  }
  d.known(std::move(grid));
  d.operands.back().known = false;
  d.set("mode", mode);
  d.set("padding_mode", padding);
  if (corners) d.set("align_corners", 1);
}

void max_roi_pool(Draft& d) {
  const Dims shape{d.r.integer(1, 3), d.r.integer(1, 3), d.r.integer(1, 8), d.r.integer(1, 8)};
  const std::int64_t rois = d.r.integer(1, 4);
  d.effect = Effect::decides;
  const DType dtype = d.type({DType::f32, DType::f64, DType::f16});
  d.input(dtype, shape);
  HostTensor boxes(dtype, {rois, 5});
  for (std::int64_t i = 0; i < rois; ++i) {
    boxes.set(5 * i, static_cast<double>(d.r.integer(0, shape[0] - 1)));
    for (std::int64_t k = 1; k < 5; ++k) boxes.set(5 * i + k, d.r.real(-2, 12));  // also outside, and without extent
  }
  d.known(std::move(boxes));
  d.operands.back().known = false;
  d.set("pooled_shape", Dims{d.r.integer(1, 4), d.r.integer(1, 4)});
  if (d.r.chance(0.5)) d.set("spatial_scale", d.r.pick({0.5, 0.25, 1.5}));
}

void roi_align(Draft& d) {
  const Dims shape{d.r.integer(1, 3), d.r.integer(1, 3), d.r.integer(3, 8), d.r.integer(3, 8)};
  const std::int64_t rois = d.r.integer(1, 4);
  d.tolerance = 16;
  d.scale = 4;
  d.input(DType::f32, shape);
  HostTensor boxes(DType::f32, {rois, 4});
  for (std::int64_t i = 0; i < rois; ++i) {
    for (std::int64_t k = 0; k < 2; ++k) {
      const double low = d.r.real(0, 3);
      boxes.set(4 * i + k, low);
      boxes.set(4 * i + k + 2, low + d.r.real(1.5, 5));
    }
  }
  d.known(std::move(boxes));
  d.operands.back().known = false;
  d.input(DType::i64, {rois}, {0, static_cast<double>(shape[0] - 1), true});
  d.set("output_height", d.r.integer(1, 3));
  d.set("output_width", d.r.integer(1, 3));
  d.set("sampling_ratio", d.r.integer(1, 2));
  if (d.r.chance(0.3)) d.set("mode", "max");
  if (d.opset >= 16 && d.r.chance(0.5)) d.set("coordinate_transformation_mode", d.r.pick({"half_pixel", "output_half_pixel"}));
}

void affine_grid(Draft& d) {
  const std::int64_t n = d.r.integer(1, 2);
  const bool deep = d.r.chance(0.4);
  d.tolerance = 2;
  d.scale = 4;
  d.input(DType::f32, {n, deep ? 3 : 2, deep ? 4 : 3});
  Dims size{n, d.r.integer(1, 3), d.r.integer(2, 5), d.r.integer(2, 5)};
  if (deep) size.push_back(d.r.integer(2, 4));
  d.known_ints(size);
  if (d.r.chance(0.5)) d.set("align_corners", 1);
}

void col2im(Draft& d) {
  const std::int64_t b0 = d.r.integer(1, 3), b1 = d.r.integer(1, 3), i0 = b0 + d.r.integer(0, 4), i1 = b1 + d.r.integer(0, 4),
                     s = d.r.integer(1, 2), p = std::min<std::int64_t>({d.r.integer(0, 1), b0 - 1, b1 - 1});
  const std::int64_t places = ((i0 + 2 * p - b0) / s + 1) * ((i1 + 2 * p - b1) / s + 1);
  d.effect = Effect::ring;
  d.scale = 8;
  d.input(DType::f32, {d.r.integer(1, 2), d.r.integer(1, 2) * b0 * b1, places});
  d.known_ints({i0, i1});
  d.known_ints({b0, b1});
  if (s != 1) d.set("strides", Dims{s, s});
  if (p != 0) d.set("pads", Dims{p, p, p, p});
  d.symbolic = false;
}

void transform(Draft& d) {
  const std::int64_t parts = d.r.integer(1, 2);
  const std::int64_t batch = d.r.integer(1, 2), n = d.r.integer(1, 9), m = d.r.integer(1, 5);
  d.tolerance = 16;
  d.scale = 16;
  d.input(DType::f32, {batch, n, m, parts});
  const std::int64_t axis = d.r.integer(1, 2);
  const bool inverse = parts == 2 && d.r.chance(0.3), half = !inverse && parts == 1 && d.r.chance(0.4);
  if (d.opset >= 20) {
    d.none();
    d.known_int(axis);
  } else {
    d.set("axis", axis);
  }
  if (inverse) d.set("inverse", 1);
  if (half) d.set("onesided", 1);
  d.symbolic = false;
}

void short_transform(Draft& d) {
  const std::int64_t length = d.r.integer(2, 8), step = d.r.integer(1, 4);
  d.tolerance = 16;
  d.scale = 16;
  d.input(DType::f32, {d.r.integer(1, 2), length + d.r.integer(0, 20), 1});
  d.known_int(step);
  const bool windowed = d.r.chance(0.5);
  windowed ? (void)d.input(DType::f32, {length}, {0, 1}) : d.none();
  if (!windowed || d.r.chance(0.5)) d.known_int(length);
  if (d.r.chance(0.5)) d.set("onesided", d.r.chance(0.5));
  d.symbolic = false;
}

void window_function(Draft& d) {
  d.scale = 1;
  d.tolerance = 2;
  d.known_int(d.r.integer(2, 20));
  if (d.r.chance(0.5)) d.set("periodic", d.r.chance(0.5));
  if (d.r.chance(0.3)) d.set("output_datatype", onnx_type(d.type({DType::f32, DType::f64})));
}

void mel_weights(Draft& d) {
  d.known_int(d.r.integer(1, 8));
  d.known_int(d.r.integer(8, 64));
  d.known_int(d.r.pick({8000, 16000}));
  d.known(HostTensor::scalar(DType::f32, d.r.pick({0.0, 50.0})));
  d.known(HostTensor::scalar(DType::f32, d.r.pick({2000.0, 4000.0})));
}

void loss(Draft& d) {
  const std::int64_t classes = d.r.integer(1, 5);
  Dims shape{d.r.integer(1, 4), classes}, target{shape[0]};
  for (std::int64_t i = d.r.integer(0, 2); i > 0; --i) {
    shape.push_back(d.r.integer(1, 4));
    target.push_back(shape.back());
  }
  d.tolerance = 8;
  d.scale = 4;
  d.input(DType::f32, shape);
  d.input(d.index_type(), target, {0, static_cast<double>(classes - 1), true});
  if (d.r.chance(0.5)) d.input(DType::f32, {classes}, {0.2, 2, true});
  if (d.r.chance(0.7)) d.set("reduction", d.r.pick({"none", "sum", "mean"}));
  if (d.node.op_type() == "SoftmaxCrossEntropyLoss" && d.r.chance(0.5)) d.outputs = 2;
}

void n_grams(Draft& d) {
  d.effect = Effect::decides;
  const bool batched = d.r.chance(0.5);
  const std::int64_t length = d.r.integer(1, 9);
  d.input(d.type({DType::i32, DType::i64}), batched ? Dims{d.r.integer(1, 3), length} : Dims{length}, {0, 4});
  d.set("mode", "TF");
  d.set("min_gram_length", d.r.integer(1, 2));
  d.set("max_gram_length", 2);
  d.set("max_skip_count", d.r.integer(0, 2));
  d.set("ngram_counts", Dims{0, 3});
  d.set("ngram_indexes", Dims{0, 1, 2, 3, 4});
  d.set("pool_int64s", Dims{0, 2, 3, 1, 2, 0, 0});
  d.symbolic = false;
}

void suppress(Draft& d) {
  d.effect = Effect::decides;
  const std::int64_t batch = d.r.integer(1, 2), classes = d.r.integer(1, 2), boxes = d.r.integer(1, 6);
  HostTensor b(DType::f32, {batch, boxes, 4}), scores(DType::f32, {batch, classes, boxes});
  for (std::int64_t i = 0; i < b.elements(); ++i)
    b.set(i, static_cast<double>(i % 4 < 2 ? d.r.integer(0, 5) : d.r.integer(6, 12)));
  for (std::int64_t i = 0; i < scores.elements(); ++i) scores.set(i, d.r.real(0, 1));
  d.known(std::move(b));
  d.operands.back().known = false;
  d.known(std::move(scores));
  d.operands.back().known = false;
  d.known_int(d.r.integer(1, 4));
  d.known(HostTensor::scalar(DType::f32, d.r.real(0.1, 0.9)));
  if (d.r.chance(0.5)) d.known(HostTensor::scalar(DType::f32, d.r.real(0.1, 0.6)));
  d.symbolic = false;
}

void dropout(Draft& d) {
  d.effect = Effect::moves;
  d.input(d.opset >= 13 ? d.floats() : DType::f32, d.shape());
  if (d.r.chance(0.4)) d.outputs = 2;
}

constexpr Spec kOtherSpecs[] = {
    {"QuantizeLinear", 10, 23, quantize},
    {"DequantizeLinear", 10, 23, dequantize},
    {"DynamicQuantizeLinear", 11, 23, dynamic_quantize},
    {"MatMulInteger", 10, 23, matmul_integer},
    {"ConvInteger", 10, 23, conv_integer},
    {"QLinearConv", 10, 23, conv_integer},
    {"QLinearMatMul", 10, 23, qlinear_matmul},
    {"Resize", 10, 23, resize},
    {"Upsample", 7, 9, upsample},
    {"GridSample", 16, 23, grid_sample},
    {"MaxRoiPool", 1, 23, max_roi_pool},
    {"RoiAlign", 10, 23, roi_align},
    {"AffineGrid", 20, 23, affine_grid},
    {"Col2Im", 18, 23, col2im},
    {"DFT", 17, 23, transform},
    {"STFT", 17, 23, short_transform},
    {"HannWindow", 17, 23, window_function},
    {"HammingWindow", 17, 23, window_function},
    {"BlackmanWindow", 17, 23, window_function},
    {"MelWeightMatrix", 17, 23, mel_weights},
    {"NegativeLogLikelihoodLoss", 12, 23, loss},
    {"SoftmaxCrossEntropyLoss", 12, 23, loss},
    {"TfIdfVectorizer", 9, 23, n_grams},
    {"NonMaxSuppression", 10, 23, suppress, false},
    {"Dropout", 7, 23, dropout},
};

}  // namespace

std::span<const Spec> other_specs() { return kOtherSpecs; }

}  // namespace oclc::fuzz
