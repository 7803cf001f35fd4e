// Pictures of shapes, drawn by number: picture `index` is the same on every machine.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace finetune {

constexpr std::array<std::string_view, 5> kShapes = {"circle", "square", "triangle", "cross", "ring"};

class ShapeGenerator {
 public:
  explicit ShapeGenerator(std::int64_t side) : side_(side) {}

  // Draws picture `index` to pixels[3, side, side] in about [-1, 1] and returns its shape: any place, size and angle, two
  // colours and noise.
  std::int64_t draw(std::uint64_t index, float* pixels) const {
    const auto uniform = [&](std::uint64_t place, double low, double high) {
      return low + (high - low) * static_cast<double>(random_bits(index, place) >> 40) * 0x1p-24;
    };
    const auto shape = static_cast<std::size_t>(random_bits(index, 0) % kShapes.size());
    const double radius = uniform(1, 0.3, 0.45), margin = radius + 0.02;
    const double centre_x = uniform(2, margin, 1 - margin), centre_y = uniform(3, margin, 1 - margin);
    const double angle = uniform(4, -0.4, 0.4), c = std::cos(angle), s = std::sin(angle);
    std::array<double, 3> ground{}, ink{};
    for (std::size_t channel = 0; channel < 3; ++channel) {
      ground[channel] = uniform(5 + channel, -0.8, -0.2);
      ink[channel] = ground[channel] + uniform(8 + channel, 0.7, 1.2);
    }
    for (std::int64_t y = 0; y < side_; ++y) {
      for (std::int64_t x = 0; x < side_; ++x) {
        const double dx = ((static_cast<double>(x) + 0.5) / static_cast<double>(side_) - centre_x) / radius;
        const double dy = ((static_cast<double>(y) + 0.5) / static_cast<double>(side_) - centre_y) / radius;
        const bool inside = covers(shape, c * dx + s * dy, c * dy - s * dx);
        for (std::int64_t channel = 0; channel < 3; ++channel) {
          const std::int64_t at = (channel * side_ + y) * side_ + x;
          const double noise = uniform(16 + static_cast<std::uint64_t>(at), -0.05, 0.05);
          pixels[at] = static_cast<float>((inside ? ink : ground)[static_cast<std::size_t>(channel)] + noise);
        }
      }
    }
    return static_cast<std::int64_t>(shape);
  }

 private:
  // Whether a shape inside the unit circle covers the point.
  static bool covers(std::size_t shape, double x, double y) {
    const double distance = std::hypot(x, y);
    switch (shape) {
      case 0:
        return distance < 1;
      case 1:
        return std::max(std::abs(x), std::abs(y)) < std::numbers::sqrt2 / 2;
      case 2:  // equilateral, one corner at (0, 1)
        return y > -0.5 && std::abs(x) * std::numbers::sqrt3 + y < 1;
      case 3:
        return std::max(std::abs(x), std::abs(y)) < 0.95 && std::min(std::abs(x), std::abs(y)) < 0.25;
      default:
        return distance < 1 && distance > 0.6;
    }
  }

  // The finaliser of splitmix64, twice.
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  static std::uint64_t random_bits(std::uint64_t index, std::uint64_t place) {
    return mix(mix(index * 0x9E3779B97F4A7C15u + 1) + place * 0xD1B54A32D192ED03u);
  }

  std::int64_t side_;
};

}  // namespace finetune
