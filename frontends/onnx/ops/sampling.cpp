// Images from columns, crops, and convolution at displaced positions.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/table.h"

namespace oclc::onnx {
namespace {

std::int64_t count_of(const Ints& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Ints list(OpContext& c, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
  Ints values = c.integers(name, Ints(count, otherwise));
  if (values.size() != count || std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v < least; })) {
    c.fail(fmt::format("{} numbers of at least {} as {}", count, least, name), fmt::format("{}", fmt::join(values, ", ")));
  }
  return values;
}

// Each element of the image sums the columns in whose windows it lies. Element o of an axis is in window p at place k if
// o + pad = p * stride + k * dilation.
Outputs col2im(OpContext& c) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 24;
  Value* x = c.input(0);
  const Ints image = c.numbers(1, "the image's shape"), block = c.numbers(2, "the block's shape");
  const std::size_t axes = image.size();
  if (x->type.rank() != 3 || block.size() != axes || axes == 0)
    c.fail("columns [N, C * block, L] and as many sizes of blocks as of images",
           fmt::format("{}, {} and {}", x->type.text(), axes, block.size()));
  const Ints strides = list(c, "strides", axes, 1, 1), dilations = list(c, "dilations", axes, 1, 1),
             pads = list(c, "pads", 2 * axes, 0, 0);
  Ints windows;
  for (std::size_t i = 0; i < axes; ++i) {
    if (image[i] < 1 || block[i] < 1 || image[i] > kLargest || block[i] > kLargest)
      c.fail(fmt::format("sizes from 1 to {}", kLargest), fmt::format("{} and {}", image[i], block[i]));
    const std::int64_t room = image[i] + pads[i] + pads[axes + i] - (block[i] - 1) * dilations[i] - 1;
    if (room < 0) c.fail(fmt::format("blocks that fit the image in axis {}", i), std::to_string(block[i]));
    windows.push_back(room / strides[i] + 1);
  }
  const std::int64_t places = count_of(block), positions = count_of(windows), pixels = count_of(image);
  const Expr channels = floor_div(x->type.shape[1], Expr(places));
  if (!(channels * Expr(places) == x->type.shape[1]) || !(x->type.shape[2] == Expr(positions)))
    c.fail(fmt::format("columns [N, {} * C, {}]", places, positions), x->type.text());
  // For each place of the block and each pixel the window, or none, along each axis in turn.
  const auto scalar = [&](std::int64_t v) { return c.b.scalar(DType::i64, static_cast<double>(v)); };
  Value *window = nullptr, *inside = nullptr;
  for (std::size_t i = 0; i < axes; ++i) {
    Shape of_block(2 * axes, Expr(1)), of_image(2 * axes, Expr(1));
    of_block[i] = block[i];
    of_image[axes + i] = image[i];
    Value* place = c.b.iota(of_block, static_cast<std::int64_t>(i), DType::i64, Expr(0), Expr(dilations[i]));
    Value* pixel = c.b.iota(of_image, static_cast<std::int64_t>(axes + i), DType::i64, Expr(pads[i]));
    Value* offset = c.b.sub(pixel, place);
    Value* at = c.b.div(offset, scalar(strides[i]));
    Value* whole = c.b.call("equal", {c.b.mul(at, scalar(strides[i])), offset});
    Value* low = c.b.call("greater_equal", {offset, scalar(0)});
    Value* high = c.b.call("less", {at, scalar(windows[i])});
    Value* good = c.b.call("and", {c.b.call("and", {low, high}), whole});
    inside = inside ? c.b.call("and", {inside, good}) : good;
    at = c.b.min(c.b.max(at, scalar(0)), scalar(windows[i] - 1));
    window = window ? c.b.add(c.b.mul(window, scalar(windows[i])), at) : at;
  }
  const Expr batch = x->type.shape[0], k = places, p = pixels;
  Shape all(2 * axes);
  for (std::size_t i = 0; i < axes; ++i) {
    all[i] = block[i];
    all[axes + i] = image[i];
  }
  const Shape wide{batch, channels, k, p};
  const auto for_all = [&](Value* v) { return c.b.expand(c.b.reshape(c.b.expand(v, all), {Expr(1), Expr(1), k, p}), wide); };
  Value* columns = c.b.reshape(x, {batch, channels, k, Expr(positions)});
  Value* found = c.b.gather_elements(columns, for_all(window), 3);
  Value* sum = c.b.reduce("reduce_sum", c.b.where(for_all(inside), found, c.b.scalar(x->type.dtype, 0)), {2}, false);
  Shape result{batch, channels};
  for (const std::int64_t size : image) result.emplace_back(size);
  return {c.b.reshape(sum, std::move(result))};
}

Outputs center_crop_pad(OpContext& c) {
  Value* x = c.input(0);
  const std::size_t rank = x->type.rank();
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  axes = c.integers("axes", axes);
  const std::vector<Expr> sizes = c.content(1, "the shape");
  if (sizes.size() != axes.size()) c.fail(fmt::format("{} sizes", axes.size()), std::to_string(sizes.size()));
  c.axes(axes, rank);
  std::vector<Expr> start(rank, Expr(0)), size = x->type.shape, before(rank, Expr(0)), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = c.axis(axes[i], rank);
    const Expr &have = x->type.shape[axis], &want = sizes[i];
    if (known_less(want, Expr(0))) c.fail("sizes of 0 or more", want.text());
    if (known_nonnegative(have - want)) {
      start[axis] = floor_div(have - want, Expr(2));
      size[axis] = want;
    } else if (known_nonnegative(want - have)) {
      before[axis] = floor_div(want - have, Expr(2));
      after[axis] = want - have - before[axis];
    } else {
      c.unsupported(fmt::format("a size of axis {} known to be larger or smaller than {}", axis, have.text()), want.text(),
                    "give the sizes with --dim");
    }
  }
  return {c.b.pad(c.b.slice(x, std::move(start), std::move(size), Ints(rank, 1)), std::move(before), std::move(after))};
}

// theta[N, 2, 3] at the points of a grid [N, H, W, 2], or theta[N, 3, 4] and [N, D, H, W, 3].
Outputs affine_grid(OpContext& c) {
  Value* theta = c.input(0);
  const std::vector<Expr> size = c.content(1, "the size");
  const bool corners = c.flag("align_corners");
  const std::size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  const Shape wanted{size.empty() ? Expr(0) : size[0], Expr(static_cast<std::int64_t>(axes)),
                     Expr(static_cast<std::int64_t>(axes) + 1)};
  if ((axes != 2 && axes != 3) || !(theta->type.shape == wanted))
    c.fail("sizes N, C, H, W and theta [N, 2, 3], or N, C, D, H, W and [N, 3, 4]",
           fmt::format("{} and {}", text_of(size), theta->type.text()));
  const DType dtype = theta->type.dtype;
  Shape grid(size.begin() + 2, size.end()), apart = grid;
  apart.emplace_back(1);
  std::vector<Value*> columns;  // x first: the last axis
  for (std::size_t i = axes; i-- > 0;) {
    Shape along(axes, Expr(1));
    along[i] = grid[i];
    Value* at = c.b.cast(c.b.iota(along, static_cast<std::int64_t>(i), DType::i64), dtype);
    Value* count = c.b.cast(c.b.exprs({grid[i]}, {}), dtype);
    // (2 i + 1) / n - 1, or 2 i / (n - 1) - 1.
    Value* turned = corners ? c.b.div(c.b.mul(at, 2), c.b.max(c.b.add(count, -1), c.b.scalar(dtype, 1)))
                            : c.b.div(c.b.add(c.b.mul(at, 2), 1), count);
    Value* place = c.b.add(turned, -1);
    if (corners && grid[i] == Expr(1)) place = c.b.mul(place, 0.0);
    columns.push_back(c.b.reshape(c.b.expand(place, grid), apart));
  }
  columns.push_back(c.b.expand(c.b.scalar(dtype, 1), apart));
  Value* points = c.b.reshape(c.b.concat(columns, static_cast<std::int64_t>(axes)), {Expr(1), product(grid), wanted[2]});
  Shape result{size[0]};
  result.insert(result.end(), grid.begin(), grid.end());
  result.push_back(wanted[1]);
  return {
      c.b.reshape(c.b.matmul(c.b.expand(points, {size[0], product(grid), wanted[2]}), theta, false, true), std::move(result))};
}

constexpr OpRow kSamplingRows[] = {
    {"AffineGrid", 20, 2, 2, affine_grid},
    {"CenterCropPad", 18, 2, 2, center_crop_pad},
    {"Col2Im", 18, 3, 3, col2im},
};

}  // namespace

std::span<const OpRow> sampling_rows() { return kSamplingRows; }

}  // namespace oclc::onnx
