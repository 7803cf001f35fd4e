// Index arithmetic on host tensors, for the reference implementations.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "compiler/ir/tensor.h"

namespace oclc {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t count_of(const Sizes& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

inline Sizes row_major_strides(const Sizes& shape) {
  Sizes strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Strides that read a tensor of shape `from` as if it had the shape `to` that it broadcasts to: 0 along repeated axes.
inline Sizes broadcast_strides(const Sizes& from, const Sizes& to) {
  const Sizes own = row_major_strides(from);
  Sizes strides(to.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1) strides[to.size() - from.size() + i] = own[i];
  }
  return strides;
}

// Calls f(position, offsets) for each element of `shape` in row-major order, where offsets[k] = sum of index * strides[k].
template <class F>
void walk(const Sizes& shape, const std::vector<Sizes>& strides, F&& f) {
  const std::int64_t count = count_of(shape);
  Sizes index(shape.size(), 0), offsets(strides.size(), 0);
  for (std::int64_t position = 0; position < count; ++position) {
    f(position, offsets);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      for (std::size_t k = 0; k < strides.size(); ++k) offsets[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) break;
      for (std::size_t k = 0; k < strides.size(); ++k) offsets[k] -= strides[k][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// A tensor seen as [outer, axis, inner].
struct AxisView {
  std::int64_t outer = 1, size = 1, inner = 1;
  AxisView(const Sizes& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : (i == axis ? size : inner)) *= shape[i];
  }
};

inline void copy_element(HostTensor& to, std::int64_t i, const HostTensor& from, std::int64_t j) {
  const std::size_t size = size_bytes(to.dtype());
  std::byte* target = to.mutable_data() + static_cast<std::size_t>(i) * size;
  const std::byte* source = from.data() + static_cast<std::size_t>(j) * size;
  switch (size) {
    case 1:
      std::memcpy(target, source, 1);
      break;
    case 2:
      std::memcpy(target, source, 2);
      break;
    case 4:
      std::memcpy(target, source, 4);
      break;
    default:
      std::memcpy(target, source, size);
  }
}

}  // namespace oclc
