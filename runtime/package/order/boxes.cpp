// Non-maximum suppression: of each class the best boxes one after another, without those that overlap a better one.
#include <algorithm>
#include <limits>

#include "runtime/package/order/keys.h"
#include "runtime/package/order/order.h"

namespace oclc::package {
namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box box_at(const std::byte* data, std::size_t i, bool by_center) {
  float v[4];
  std::memcpy(v, data + i * sizeof v, sizeof v);
  if (by_center) return {v[1] - v[3] * 0.5F, v[0] - v[2] * 0.5F, v[1] + v[3] * 0.5F, v[0] + v[2] * 0.5F};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return false;
  const float both = height * width;
  return both > (a.area() + b.area() - both) * threshold;
}

// Boxes of scores above `least` in order of score, those of one score in the order in which they stand.
void candidates(const std::byte* scores, std::size_t count, float least, std::vector<Ordered<std::uint32_t>>& list,
                std::vector<Ordered<std::uint32_t>>& spare) {
  list.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = element_at<std::uint32_t>(scores, i);
    if (element_at<float>(scores, i) > least)
      list.push_back({~real_key<std::uint32_t>(bits, 0x7f800000u), static_cast<std::uint32_t>(i)});
  }
  sort_by_key(list, spare);
}

}  // namespace

void choose_boxes(const HostSettings& settings, std::span<const HostValue> in, std::span<HostValue> out) {
  const HostValue &boxes = in[0], &scores = in[1];
  bool reals = true;
  for (const std::size_t i : {0, 1, 3, 4}) reals = reals && in[i].dtype == plan::DType::f32;
  require(reals && boxes.shape.size() == 3 && scores.shape.size() == 3 && boxes.shape[2] == 4 &&
              boxes.shape[0] == scores.shape[0] && boxes.shape[1] == scores.shape[2] && in[2].elements() == 1 &&
              in[3].elements() == 1 && in[4].elements() == 1 && out[0].shape.size() == 2 && out[0].shape[1] == 3 &&
              out[1].elements() == 1,
          "wanted boxes [batch, count, 4] and scores [batch, classes, count] of f32");
  const auto images = static_cast<std::size_t>(scores.shape[0]), classes = static_cast<std::size_t>(scores.shape[1]),
             count = static_cast<std::size_t>(scores.shape[2]), room = static_cast<std::size_t>(out[0].shape[0]);
  const auto most = element_at<std::int64_t>(in[2].data.data(), 0);
  const auto threshold = element_at<float>(in[3].data.data(), 0), least = element_at<float>(in[4].data.data(), 0);
  std::vector<Ordered<std::uint32_t>> list, spare;
  std::vector<Box> kept;
  std::size_t found = 0;
  const auto add = [&](std::size_t image, std::size_t of_class, std::size_t box) {
    require(found < room, "wanted room for all boxes that are chosen");
    const std::size_t numbers[] = {image, of_class, box};
    for (std::size_t k = 0; k < 3; ++k) set_element(out[0].data.data(), found * 3 + k, static_cast<std::int64_t>(numbers[k]));
    ++found;
  };
  for (std::size_t row = 0; row < images * classes && most > 0; ++row) {
    const std::size_t image = row / classes;
    candidates(scores.data.data() + row * count * sizeof(float), count, least, list, spare);
    kept.clear();
    for (const Ordered<std::uint32_t>& one : list) {
      if (kept.size() >= static_cast<std::uint64_t>(most)) break;
      const Box box = box_at(boxes.data.data(), image * count + one.place, settings.integers[0] != 0);
      if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(box, other, threshold); })) continue;
      kept.push_back(box);
      add(image, row % classes, one.place);
    }
  }
  for (std::size_t i = 3 * found; i < 3 * room; ++i) set_element(out[0].data.data(), i, std::int64_t{0});
  set_element(out[1].data.data(), 0, static_cast<std::int64_t>(found));
}

}  // namespace oclc::package
