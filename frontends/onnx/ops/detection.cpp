// What the host does for detectors: image files as pixels, and non-maximum suppression, where a box is chosen or not by what
// was chosen before it.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

Outputs non_max_suppression(OpContext& c) {
  Value *boxes = c.input(0), *scores = c.input(1);
  if (scores->type.rank() == 3) boxes = c.b.fit(boxes, {scores->type.shape[0], scores->type.shape[2], Expr(4)});
  if (boxes->type.rank() != 3 || scores->type.rank() != 3 || boxes->type.shape[2] != Expr(4) ||
      boxes->type.shape[0] != scores->type.shape[0] || boxes->type.shape[1] != scores->type.shape[2])
    c.fail("boxes [batch, count, 4] and scores [batch, classes, count]",
           fmt::format("{} and {}", boxes->type.text(), scores->type.text()));
  Value* most = c.optional_input(2);
  if (!most) return {c.b.constant(HostTensor(DType::i64, {0, 3}))};
  const auto scalar = [&](std::size_t i, const char* what, DType dtype, double otherwise) {
    Value* x = c.optional_input(i);
    if (!x) return c.b.reshape(c.b.scalar(dtype, otherwise), {Expr(1)});
    if (x->type.elements() != Expr(1)) c.fail(fmt::format("one number as {}", what), x->type.text());
    return c.b.reshape(c.b.cast(x, dtype), {Expr(1)});
  };
  const Shape& shape = scores->type.shape;
  const HostTensor* known = constant_of(most);
  const Expr of_class = known && known->int_at(0) >= 0 ? min(shape[2], Expr(known->int_at(0))) : shape[2];
  const Expr room = shape[0] * shape[1] * of_class;
  const Node* node = c.b.node(
      "choose_boxes",
      {c.b.cast(boxes, DType::f32), c.b.cast(scores, DType::f32), scalar(2, "the number of boxes of a class", DType::i64, 0),
       scalar(3, "iou_threshold", DType::f32, 0), scalar(4, "score_threshold", DType::f32, -INFINITY)},
      {{"center_point_box", std::int64_t{c.flag("center_point_box") ? 1 : 0}}, {"room", std::vector<Expr>{room}}});
  return {c.b.slice_axis(node->output(0), 0, Expr(0), c.b.read_dims(node->output(1), "found", {room}).at(0))};
}

Outputs image_decoder(OpContext& c) {
  const std::string format = c.text("pixel_format", "RGB");
  const std::int64_t colours = format == "RGB" ? 0 : format == "BGR" ? 1 : 2;
  if (colours == 2 && format != "Grayscale") c.fail("pixel_format RGB, BGR or Grayscale", printable(format));
  Value* file = c.input(0);
  if (file->type.dtype != DType::u8 || file->type.rank() != 1) c.fail("the bytes of a file, u8[n]", file->type.text());
  const std::vector<Expr> size =
      c.b.read_dims(c.b.node("image_size", {file})->output(0), "image", {Expr(kOpenDim), Expr(kOpenDim)});
  return {c.b.call("decode_image", {file}, {{"pixel_format", colours}, {"size", size}})};
}

constexpr OpRow kDetectionRows[] = {
    {"ImageDecoder", 20, 1, 1, image_decoder},
    {"NonMaxSuppression", 10, 2, 5, non_max_suppression},
};

}  // namespace

std::span<const OpRow> detection_rows() { return kDetectionRows; }

}  // namespace oclc::onnx
