// Operators that move elements, and shapes.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

std::int64_t count_of(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

void same(Draft& d) {
  d.effect = Effect::moves;
  d.input(d.stored(), d.shape());
}

void transpose(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(0, 5);
  d.input(d.opset >= 21 ? d.stored() : d.any(), shape);
  Dims perm = d.some_axes(shape.size(), shape.size());
  if (d.r.chance(0.85)) d.set("perm", perm);
}

void concat(Draft& d) {
  d.effect = Effect::moves;
  const DType dtype = d.any();
  Dims shape = d.shape(1);
  const auto axis = d.axis(shape.size());
  const std::int64_t parts = d.r.integer(1, 4);
  for (std::int64_t i = 0; i < parts; ++i) {
    d.input(dtype, shape);
    if (d.r.chance(0.5)) shape[static_cast<std::size_t>(axis)] = d.size();
  }
  d.set("axis", d.opset >= 11 ? d.spelled(axis, shape.size()) : axis);
}

void split(Draft& d) {
  d.effect = Effect::moves;
  Dims shape = d.shape(1);
  const std::size_t rank = shape.size();
  const auto axis = static_cast<std::size_t>(d.axis(rank));
  const std::int64_t parts = d.r.integer(1, 4);
  const bool even = d.r.chance(0.5);
  Dims sizes(static_cast<std::size_t>(parts));
  for (auto& size : sizes) size = d.r.integer(d.r.chance(0.1) ? 0 : 1, 5);
  if (even) std::fill(sizes.begin(), sizes.end(), sizes[0]);
  const bool uneven = even && d.opset >= 18;
  if (uneven && sizes[0] > 1) sizes.back() = d.r.integer(1, sizes[0]);  // the last part may be smaller
  // ceil(total / parts) must be the size of the others
  shape[axis] = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const bool counted = uneven && (shape[axis] + parts - 1) / parts == sizes[0];
  d.input(d.any(), shape);
  if (axis != 0 || d.r.chance(0.5))
    d.set("axis", d.opset >= 11 ? d.spelled(static_cast<std::int64_t>(axis), rank) : static_cast<std::int64_t>(axis));
  if (counted) {
    d.set("num_outputs", parts);
  } else if (d.opset >= 13) {
    d.known_ints(sizes);
  } else {
    d.set("split", sizes);
  }
  d.outputs = static_cast<int>(parts);
  d.symbolic = false;
}

void slice(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(1);
  const Dims axes = d.some_axes(shape.size(), 1);
  Dims starts, ends, steps, named;
  for (const std::int64_t axis : axes) {
    const std::int64_t n = shape[static_cast<std::size_t>(axis)];
    const std::int64_t step = d.opset >= 10 && d.r.chance(0.4) ? d.r.pick({-3, -2, -1, 2, 3}) : 1;
    std::int64_t start = d.r.integer(0, n), end = d.r.integer(0, n);
    if (step > 0 && start > end) std::swap(start, end);
    if (step < 0 && start < end) std::swap(start, end);
    if (d.r.chance(0.3)) start -= n;                                  // from the end
    if (d.r.chance(0.2)) end = step > 0 ? INT64_MAX : INT64_MIN + 1;  // far behind
    if (d.r.chance(0.05)) start = -n - 5;
    starts.push_back(start);
    ends.push_back(end);
    steps.push_back(step);
    named.push_back(d.opset >= 10 ? d.spelled(axis, shape.size()) : axis);
  }
  d.input(d.any(), shape);
  if (d.opset < 10) {
    d.set("starts", starts);
    d.set("ends", ends);
    d.set("axes", named);
    return;
  }
  d.known_ints(starts);
  d.known_ints(ends);
  d.known_ints(named);
  if (d.r.chance(0.5) || std::any_of(steps.begin(), steps.end(), [](std::int64_t s) { return s != 1; })) d.known_ints(steps);
}

void pad(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(1);
  const std::string mode = d.r.pick({"constant", "constant", "edge", "reflect", d.opset >= 19 ? "wrap" : "edge"});
  Dims axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (d.opset >= 18 && d.r.chance(0.4)) axes = d.some_axes(shape.size(), 1);
  Dims pads(2 * axes.size(), 0);
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const std::int64_t n = shape[static_cast<std::size_t>(axes[i % axes.size()])];
    if (mode == "constant")
      pads[i] = d.r.chance(0.1) && n > 4 ? -d.r.integer(1, 2) : d.r.integer(0, 3);
    else if (n > 0)
      pads[i] = d.r.integer(0, std::min<std::int64_t>(mode == "edge" ? 3 : mode == "wrap" ? n : n - 1, 3));
  }
  const DType dtype = d.opset >= 21 ? d.stored() : d.opset >= 13 ? d.any() : d.opset >= 11 ? d.numbers() : d.floats();
  d.input(dtype, shape);
  if (mode != "constant" || d.r.chance(0.3)) d.set("mode", mode);
  const bool valued = mode == "constant" && d.r.chance(0.5);
  if (d.opset < 11) {
    d.set("pads", pads);
    if (valued) d.set("value", d.r.real(-1, 1));
    return;
  }
  d.known_ints(pads);
  if (valued)
    d.known(random_tensor(d.r, dtype, {}, {0, 3}));
  else
    d.none();
  if (axes.size() != shape.size() || (d.opset >= 18 && !std::is_sorted(axes.begin(), axes.end()))) {
    for (auto& axis : axes) axis = d.spelled(axis, shape.size());
    d.known_ints(axes);
  }
}

void tile(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(1);
  d.input(d.any(), shape);
  Dims repeats(shape.size());
  for (auto& repeat : repeats) repeat = d.r.integer(d.r.chance(0.05) ? 0 : 1, 3);
  d.known_ints(repeats);
}

void trilu(Draft& d) {
  d.effect = Effect::moves;
  d.input(d.any(), d.shape(2));
  if (d.r.chance(0.6)) d.known_int(d.r.integer(-4, 4));
  if (d.r.chance(0.6)) d.set("upper", d.r.chance(0.5));
}

void depth_to_space(Draft& d) {
  d.effect = Effect::moves;
  const std::int64_t block = d.r.integer(1, 3);
  Dims shape{d.size(), d.r.integer(1, 3), d.r.integer(1, 5), d.r.integer(1, 5)};
  const bool deep = d.node.op_type() == "DepthToSpace";
  if (deep)
    shape[1] *= block * block;
  else
    shape[2] *= block, shape[3] *= block;
  d.input(d.numbers(), shape);
  d.set("blocksize", block);
  if (deep && d.opset >= 11 && d.r.chance(0.6)) d.set("mode", d.r.pick({"DCR", "CRD"}));
}

void reshape(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape();
  d.input(d.stored(), shape);
  // Neighbours are merged or cut; ones go in.
  Dims wanted = shape;
  for (int step = 0; step < 3; ++step) {
    const auto n = static_cast<std::int64_t>(wanted.size());
    if (n > 1 && d.r.chance(0.5)) {
      const auto at = d.r.integer(0, n - 2);
      wanted[static_cast<std::size_t>(at)] *= wanted[static_cast<std::size_t>(at + 1)];
      wanted.erase(wanted.begin() + at + 1);
    } else if (n > 0 && d.r.chance(0.5)) {
      const auto at = d.r.integer(0, n - 1);
      for (const std::int64_t part : {5, 3, 2}) {
        if (wanted[static_cast<std::size_t>(at)] == 0 || wanted[static_cast<std::size_t>(at)] % part != 0) continue;
        wanted[static_cast<std::size_t>(at)] /= part;
        wanted.insert(wanted.begin() + at, part);
        break;
      }
    } else if (n < 6) {
      wanted.insert(wanted.begin() + d.r.integer(0, n), 1);
    }
  }
  const bool empty = count_of(shape) == 0;
  bool zeros = std::count(wanted.begin(), wanted.end(), 0) > 0;
  if (!zeros && !empty && !wanted.empty() && d.r.chance(0.5)) {
    wanted[static_cast<std::size_t>(d.axis(wanted.size()))] = -1;
  }
  for (std::size_t i = 0; !zeros && i < std::min(wanted.size(), shape.size()); ++i) {
    if (wanted[i] == shape[i] && d.r.chance(0.3)) wanted[i] = 0;
  }
  // A 0 copies the input's dimension unless allowzero says that it is one.
  if (zeros) {
    bool copied = d.opset < 14;
    if (!copied) d.set("allowzero", 1);
    if (copied) wanted = shape;
  }
  d.known_ints(wanted);
  d.symbolic = d.symbolic && d.r.chance(0.5);
}

void flatten(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(d.opset >= 11 ? 0 : 1);
  d.input(d.opset >= 21 ? d.stored() : d.any(), shape);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (d.r.chance(0.8) || rank == 0) d.set("axis", d.opset >= 11 && rank > 0 ? d.r.integer(-rank, rank) : d.r.integer(0, rank));
}

void squeeze(Draft& d) {
  d.effect = Effect::moves;
  Dims shape = d.shape(0, 3);
  const bool up = d.node.op_type() == "Unsqueeze";
  Dims axes;
  const std::size_t more = static_cast<std::size_t>(d.r.integer(1, 2)), rank = shape.size() + more;
  while (axes.size() < more) {
    const auto at = d.axis(rank);
    if (std::count(axes.begin(), axes.end(), at) == 0) axes.push_back(at);
  }
  if (!up) {
    Dims sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    for (const std::int64_t at : sorted) shape.insert(shape.begin() + at, 1);
  }
  d.input(d.opset >= 21 ? d.stored() : d.any(), shape);
  if (!up && d.r.chance(0.2)) {
    d.symbolic = false;  // which dimensions are 1 must be known
    return;
  }
  if (d.opset < 11 && !up) std::sort(axes.begin(), axes.end());
  for (auto& axis : axes) axis = d.opset >= 11 ? d.spelled(axis, rank) : axis;
  if (d.opset >= 13)
    d.known_ints(axes);
  else
    d.set("axes", axes);
}

void expand(Draft& d) {
  d.effect = Effect::moves;
  const Dims wanted = d.shape();
  const Dims given = d.broadcast(wanted);
  d.input(d.any(), given);
  Dims said = wanted;
  for (std::size_t i = 0; i < said.size(); ++i) {  // broadcasting works both ways
    const std::size_t from_end = said.size() - i;
    if (from_end <= given.size() && given[given.size() - from_end] == said[i] && d.r.chance(0.2)) said[i] = 1;
  }
  d.known_ints(said);
  d.symbolic = false;
}

void shape_of(Draft& d) {
  d.effect = Effect::decides;
  const Dims shape = d.shape();
  d.input(d.stored(), shape);
  if (d.node.op_type() != "Shape" || d.opset < 15) return;
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (d.r.chance(0.5)) d.set("start", d.r.integer(-rank - 1, rank + 1));
  if (d.r.chance(0.5)) d.set("end", d.r.integer(-rank - 1, rank + 1));
}

void constant(Draft& d) {
  d.effect = Effect::moves;
  switch (d.opset >= 12 ? d.r.integer(0, 4) : 0) {
    case 0:
      d.set("value", random_tensor(d.r, d.stored(), d.shape(), {}));
      break;
    case 1:
      d.set("value_int", d.r.integer(-9, 9));
      break;
    case 2:
      d.set("value_float", d.r.real(-9, 9));
      break;
    case 3:
      d.set("value_ints", d.shape());
      break;
    default:
      d.set("value", random_tensor(d.r, d.floats(), d.shape(), {}));
      break;
  }
}

void constant_of_shape(Draft& d) {
  d.effect = Effect::moves;
  d.known_ints(d.shape());
  if (d.r.chance(0.7)) d.set("value", random_tensor(d.r, d.opset >= 21 ? d.stored() : d.any(), {1}, {-9, 9}));
}

void range(Draft& d) {
  d.effect = Effect::decides;
  const DType dtype = d.type({DType::f32, DType::f64, DType::i16, DType::i32, DType::i64});
  const bool down = d.r.chance(0.3);
  const auto one = [&](std::int64_t value) {
    HostTensor t(dtype, {});
    t.set(0, static_cast<double>(value));
    d.known(std::move(t));
  };
  const std::int64_t start = d.r.integer(-5, 5), length = d.r.integer(0, 20), step = d.r.integer(1, 4);
  one(start);
  one(down ? start - length : start + length);
  one(down ? -step : step);
}

void eye_like(Draft& d) {
  d.effect = Effect::decides;
  d.input(d.numbers(), d.shape(2, 2));
  if (d.r.chance(0.5)) d.set("k", d.r.integer(-4, 4));
  if (d.r.chance(0.5)) d.set("dtype", onnx_type(d.numbers()));
}

void center_crop_pad(Draft& d) {
  d.effect = Effect::moves;
  const Dims shape = d.shape(1);
  Dims axes = d.some_axes(shape.size(), 1);
  const bool all = d.r.chance(0.3);
  if (all) axes.resize(shape.size()), std::iota(axes.begin(), axes.end(), 0);
  d.input(d.numbers(), shape);
  Dims sizes(axes.size());
  for (auto& size : sizes) size = d.r.integer(1, 9);
  d.known_ints(sizes);
  if (!all) {
    for (auto& axis : axes) axis = d.spelled(axis, shape.size());
    d.set("axes", axes);
  }
  d.symbolic = false;
}

constexpr Spec kMovementSpecs[] = {
    {"Identity", 1, 23, same},
    {"Transpose", 1, 23, transpose},
    {"Concat", 4, 23, concat},
    {"Split", 2, 23, split},
    {"Slice", 1, 23, slice},
    {"Pad", 2, 23, pad},
    {"Tile", 6, 23, tile},
    {"Trilu", 14, 23, trilu},
    {"DepthToSpace", 1, 23, depth_to_space},
    {"SpaceToDepth", 1, 23, depth_to_space},
    {"Reshape", 5, 23, reshape},
    {"Flatten", 1, 23, flatten},
    {"Squeeze", 1, 23, squeeze},
    {"Unsqueeze", 1, 23, squeeze},
    {"Expand", 8, 23, expand},
    {"Shape", 1, 23, shape_of},
    {"Size", 1, 23, shape_of},
    {"Constant", 1, 23, constant},
    {"ConstantOfShape", 9, 23, constant_of_shape},
    {"Range", 11, 23, range},
    {"EyeLike", 9, 23, eye_like},
    {"CenterCropPad", 18, 23, center_crop_pad},
};

}  // namespace

std::span<const Spec> movement_specs() { return kMovementSpecs; }

}  // namespace oclc::fuzz
