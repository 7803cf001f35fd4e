// Scatters that keep the largest or smallest and Split into a number of parts (18), pieces from the middle (18).
#include <algorithm>

#include "tests/onnx/sheet.h"

namespace oclc::test {
namespace {

double reduced(const std::string& reduction, double a, double b) {
  return reduction == "max" ? std::max(a, b) : reduction == "min" ? std::min(a, b) : reduction == "add" ? a + b : a * b;
}

void scatters(Sheet& s) {
  for (const std::string reduction : {"max", "min", "add", "mul"}) {
    const HostTensor x = noise(DType::f32, {5, 3}, 1), updates = noise(DType::f32, {4, 2}, 2);
    const HostTensor at = listed(DType::i64, {4, 2}, {0, -1, 2, 0, 0, 2, 3, -1});
    set_text(s.use("ScatterElements", {s.input(x), s.input(at), s.input(updates)}), "reduction", reduction);
    s.gives(DType::f32, {5, 3}, [=](std::int64_t i) {
      double v = x.at(i);
      for (std::int64_t k = 0; k < 8; ++k) {
        if (k % 2 == i % 3 && (at.int_at(k) + 5) % 5 == i / 3) v = reduced(reduction, v, updates.at(k));
      }
      return v;
    });
    const HostTensor rows = listed(DType::i64, {3, 1}, {4, 1, -1}), slices = noise(DType::f32, {3, 3}, 3);
    set_text(s.use("ScatterND", {s.input(x), s.input(rows), s.input(slices)}), "reduction", reduction);
    s.gives(DType::f32, {5, 3}, [=](std::int64_t i) {
      double v = x.at(i);
      for (std::int64_t k = 0; k < 3; ++k) {
        if ((rows.int_at(k) + 5) % 5 == i / 3) v = reduced(reduction, v, slices.at(k * 3 + i % 3));
      }
      return v;
    });
    // One element that all updates name, and no updates.
    const HostTensor one = listed(DType::i32, {1, 1, 2}, {7, 8}), pairs = listed(DType::i64, {2, 3}, {0, 0, 1, 0, 0, -1}),
                     two = listed(DType::i32, {2}, {3, 5});
    set_text(s.use("ScatterND", {s.input(one), s.input(pairs), s.input(two)}, true), "reduction", reduction);
    s.gives(DType::i32, {1, 1, 2}, of({7, reduced(reduction, reduced(reduction, 8, 3), 5)}));
    NodeProto& node =
        s.use("ScatterElements",
              {s.input(one), s.input(HostTensor(DType::i64, {1, 1, 0})), s.input(HostTensor(DType::i32, {1, 1, 0}))}, true);
    set_text(node, "reduction", reduction);
    set_int(node, "axis", -1);
    s.gives(DType::i32, {1, 1, 2}, of({7, 8}));
  }
}

void splits(Sheet& s) {
  struct Case {
    Dims shape;
    std::int64_t axis;
    int parts;
  };
  for (const Case& c : {Case{{2, 7}, -1, 3}, Case{{6, 2}, 0, 2}, Case{{1, 5, 1}, 1, 5}, Case{{3, 1}, 1, 1}}) {
    const HostTensor x = noise(DType::f32, c.shape, 1);
    const auto rank = static_cast<std::int64_t>(c.shape.size());
    const auto axis = static_cast<std::size_t>((c.axis + rank) % rank);
    NodeProto& node = s.use("Split", {s.input(x)}, c.shape.size() == 3 || c.parts == 1, c.parts);
    set_int(node, "axis", c.axis);
    set_int(node, "num_outputs", c.parts);
    const std::int64_t each = (c.shape[axis] + c.parts - 1) / c.parts;
    for (int p = 0; p < c.parts; ++p) {
      Dims shape = c.shape;
      shape[axis] = std::min(each, c.shape[axis] - p * each);
      s.gives(
          DType::f32, shape,
          [=](std::int64_t i) {
            Dims at = unflat(i, shape);
            at[axis] += p * each;
            return x.at(flat(at, c.shape));
          },
          p);
    }
  }
}

// Half of what is too much or missing is in front, rounded down.
void middles(Sheet& s) {
  struct Case {
    Dims shape, wanted, axes;
  };
  for (const Case& c : {Case{{5, 7}, {3, 4}, {}}, Case{{3, 2}, {6, 5}, {}}, Case{{1, 9, 4}, {4, 5}, {1, -1}},
                        Case{{1, 1, 3}, {4, 1}, {0, 2}}}) {
    const HostTensor x = noise(DType::f32, c.shape, 1);
    NodeProto& node = s.use("CenterCropPad", {s.input(x), s.known_ints(c.wanted)}, c.shape.size() == 3);
    if (!c.axes.empty()) set_list(node, "axes", c.axes);
    Dims result = c.shape;
    for (std::size_t i = 0; i < c.wanted.size(); ++i) {
      const auto rank = static_cast<std::int64_t>(c.shape.size());
      result[c.axes.empty() ? i : static_cast<std::size_t>((c.axes[i] + rank) % rank)] = c.wanted[i];
    }
    s.gives(DType::f32, result, [=](std::int64_t i) {
      Dims at = unflat(i, result);
      for (std::size_t k = 0; k < at.size(); ++k) {
        const std::int64_t more = result[k] - c.shape[k];
        at[k] += more < 0 ? -more / 2 : -(more / 2);
        if (at[k] < 0 || at[k] >= c.shape[k]) return 0.0;
      }
      return x.at(flat(at, c.shape));
    });
  }
}

}  // namespace

void indexing_uses(Sheet& s) {
  if (s.opset != 18) return;
  scatters(s);
  splits(s);
  middles(s);
}

}  // namespace oclc::test
