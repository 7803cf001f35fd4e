// Non-maximum suppression: as many trips as boxes may be chosen, each of which takes the best box left in every class of every
// image and drops those that overlap it.
#include <fmt/format.h>

#include <cmath>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

struct Boxes {
  Value *top, *left, *bottom, *right;  // each [batch, 1, count]
};

Boxes boxes_of(OpContext& c, Value* boxes) {
  const Shape row{boxes->type.shape[0], Expr(1), boxes->type.shape[1]};
  const auto column = [&](std::int64_t k) { return c.b.reshape(c.b.slice_axis(boxes, 2, Expr(k), Expr(1)), row); };
  if (c.flag("center_point_box")) {
    Value *x = column(0), *y = column(1), *half_width = c.b.mul(column(2), 0.5), *half_height = c.b.mul(column(3), 0.5);
    return {c.b.sub(y, half_height), c.b.sub(x, half_width), c.b.add(y, half_height), c.b.add(x, half_width)};
  }
  Value *y0 = column(0), *x0 = column(1), *y1 = column(2), *x1 = column(3);
  return {c.b.min(y0, y1), c.b.min(x0, x1), c.b.max(y0, y1), c.b.max(x0, x1)};
}

Value* area_of(Builder& b, const Boxes& box) { return b.mul(b.sub(box.bottom, box.top), b.sub(box.right, box.left)); }

// carried: scores [batch, classes, count], -inf for what is chosen or dropped; captured: the boxes' four sides and the
// threshold. Gives the scores left, which box was chosen and whether there was one.
std::unique_ptr<Graph> choose_best(const TensorType& scores, const Boxes& all, const Value* threshold,
                                   const std::string& source) {
  auto graph = std::make_unique<Graph>();
  Builder b(*graph, source);
  const Shape& shape = scores.shape;
  const Shape picked{shape[0], shape[1]};
  Value* live = graph->add_input("scores", scores);
  const auto side = [&](const char* name, const Value* like) { return graph->add_input(name, like->type); };
  Boxes box{};
  box.top = side("top", all.top);
  box.left = side("left", all.left);
  box.bottom = side("bottom", all.bottom);
  box.right = side("right", all.right);
  Value* most = graph->add_input("threshold", threshold->type);
  Value* none = b.scalar(scores.dtype, -INFINITY);
  Value* best = b.arg("argmax", live, 2, true);
  Value* valid = b.call("greater", {b.gather_elements(live, best, 2), none});
  const auto chosen = [&](Value* values) { return b.gather_elements(b.expand(values, shape), best, 2); };
  const Boxes own{chosen(box.top), chosen(box.left), chosen(box.bottom), chosen(box.right)};
  const auto common = [&](Value* low, Value* own_low, Value* high, Value* own_high) {
    return b.max(b.sub(b.min(high, own_high), b.max(low, own_low)), b.scalar(scores.dtype, 0));
  };
  Value* both = b.mul(common(box.top, own.top, box.bottom, own.bottom), common(box.left, own.left, box.right, own.right));
  Value* either = b.sub(b.add(area_of(b, box), area_of(b, own)), both);
  Value* overlaps = b.call("greater", {both, b.mul(either, most)});
  Value* itself = b.call("equal", {b.iota({Expr(1), Expr(1), shape[2]}, 2, DType::i64), best});
  graph->add_output("scores", b.where(b.call("or", {overlaps, itself}), none, live));
  graph->add_output("best", b.reshape(best, picked));
  graph->add_output("valid", b.reshape(valid, picked));
  return graph;
}

Outputs non_max_suppression(OpContext& c) {
  Value *boxes = c.input(0), *scores = c.input(1);
  if (scores->type.rank() == 3) boxes = c.b.fit(boxes, {scores->type.shape[0], scores->type.shape[2], Expr(4)});
  if (boxes->type.rank() != 3 || scores->type.rank() != 3 || boxes->type.shape[2] != Expr(4) ||
      boxes->type.shape[0] != scores->type.shape[0] || boxes->type.shape[1] != scores->type.shape[2])
    c.fail("boxes [batch, count, 4] and scores [batch, classes, count]",
           fmt::format("{} and {}", boxes->type.text(), scores->type.text()));
  Value* most = c.optional_input(2);
  if (!most) return {c.b.constant(HostTensor(DType::i64, {0, 3}))};
  const auto scalar = [&](Value* x, const char* what) {
    if (x->type.elements() != Expr(1)) c.fail(fmt::format("one number as {}", what), x->type.text());
    return c.b.reshape(x, {});
  };
  most = c.b.cast(scalar(most, "the number of boxes of a class"), DType::i64);
  const DType dtype = scores->type.dtype;
  Value* threshold = c.optional_input(3) ? scalar(c.optional_input(3), "iou_threshold") : c.b.scalar(dtype, 0);
  threshold = c.b.cast(threshold, dtype);
  if (Value* least = c.optional_input(4)) {
    Value* passes = c.b.call("greater", {scores, c.b.cast(scalar(least, "score_threshold"), dtype)});
    scores = c.b.where(passes, scores, c.b.scalar(dtype, -INFINITY));
  }
  const Expr classes = scores->type.shape[1], count = scores->type.shape[2];
  const HostTensor* known = constant_of(c.optional_input(2));
  const Expr trips = known && known->int_at(0) >= 0 ? min(count, Expr(known->int_at(0))) : count;
  const Boxes sides = boxes_of(c, boxes);
  const Node* loop = c.b.loop(trips, fmt::format("trip_boxes{}_{}", c.b.graph().name, boxes->id), {scores},
                              {sides.top, sides.left, sides.bottom, sides.right, threshold},
                              choose_best(scores->type, sides, threshold, c.label()));
  // Of all trips: [trips, batch, classes], wanted by image and class.
  Value* in_limit = c.b.call("less", {c.b.iota({trips, Expr(1), Expr(1)}, 0, DType::i64), most});
  const auto by_class = [&](Value* x) { return c.b.reshape(c.b.transpose(x, {1, 2, 0}), {x->type.elements()}); };
  Value* at = positions_of(c, by_class(c.b.call("and", {loop->output(2), in_limit})));
  const auto number = [&](const Expr& e) { return c.b.exprs({e}, {}); };
  Value* box = c.b.gather(by_class(loop->output(1)), at);
  Value* row = c.b.div(at, number(trips));
  const Shape column{at->type.elements(), Expr(1)};
  return {c.b.concat({c.b.reshape(c.b.div(row, number(classes)), column),
                      c.b.reshape(c.b.call("mod", {row, number(classes)}), column), c.b.reshape(box, column)},
                     1)};
}

constexpr OpRow kDetectionRows[] = {{"NonMaxSuppression", 10, 2, 5, non_max_suppression}};

}  // namespace

std::span<const OpRow> detection_rows() { return kDetectionRows; }

}  // namespace oclc::onnx
