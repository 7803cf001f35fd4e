// Numbers as unsigned integers in their order, so that one sort serves all types.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/host_ops.h"

namespace oclc::package {

template <class T>
T element_at(const std::byte* data, std::size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void set_element(std::byte* data, std::size_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}

// The key of bits of a real number whose infinity has the bits `infinity`. NaN comes behind all numbers, both zeros are one.
// Without branches, so that loops over it become vectors.
template <class Key, class Bits>
Key real_key(Bits bits, Bits infinity) {
  constexpr unsigned kTop = 8 * sizeof(Bits) - 1;
  constexpr auto kSign = static_cast<Bits>(Bits{1} << kTop);
  // Of a number below 0 all bits are turned, of others the sign.
  const auto turned = static_cast<Bits>(bits ^ static_cast<Bits>(static_cast<Bits>(0 - (bits >> kTop)) | kSign));
  const auto key = static_cast<Bits>(turned + (bits == kSign ? 1 : 0));
  return static_cast<Bits>(bits & static_cast<Bits>(~kSign)) > infinity ? static_cast<Key>(~Key{0}) : static_cast<Key>(key);
}

// visit(key, may_be_nan), where key(i) is that of element i, of 32 or of 64 bits. `may_be_nan`: the largest key is a NaN's.
// HostOpError for types that have no order here.
template <class Visit>
void visit_keys(const HostValue& x, Visit&& visit) {
  const std::byte* data = x.data.data();
  const auto whole = [&](auto number) {
    using T = decltype(number);
    using Unsigned = std::make_unsigned_t<T>;
    using Key = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr auto kFlip =
        std::is_signed_v<T> ? static_cast<Unsigned>(Unsigned{1} << (8 * sizeof(T) - 1)) : static_cast<Unsigned>(0);
    visit([=](std::size_t i) { return static_cast<Key>(static_cast<Unsigned>(element_at<Unsigned>(data, i) ^ kFlip)); }, false);
  };
  switch (x.dtype) {
    case plan::DType::f32:
      return visit([=](std::size_t i) { return real_key<std::uint32_t>(element_at<std::uint32_t>(data, i), 0x7f800000u); },
                   true);
    case plan::DType::f64:
      return visit(
          [=](std::size_t i) {
            return real_key<std::uint64_t>(element_at<std::uint64_t>(data, i), std::uint64_t{0x7ff0000000000000u});
          },
          true);
    case plan::DType::f16:
    case plan::DType::bf16: {
      const auto infinity = static_cast<std::uint16_t>(x.dtype == plan::DType::f16 ? 0x7c00 : 0x7f80);
      // A NaN of 16 bits has the key of one of 32.
      return visit([=](std::size_t i) { return real_key<std::uint32_t>(element_at<std::uint16_t>(data, i), infinity); }, true);
    }
    case plan::DType::i8:
      return whole(std::int8_t{});
    case plan::DType::i16:
      return whole(std::int16_t{});
    case plan::DType::i32:
      return whole(std::int32_t{});
    case plan::DType::i64:
      return whole(std::int64_t{});
    case plan::DType::u8:
    case plan::DType::bool_:
      return whole(std::uint8_t{});
    case plan::DType::u16:
      return whole(std::uint16_t{});
    case plan::DType::u32:
      return whole(std::uint32_t{});
    case plan::DType::u64:
      return whole(std::uint64_t{});
    default:
      throw HostOpError("wanted numbers of a type that the host can order");
  }
}

// An element to be put in order: by its key, those of one key by their places, so that every order is the only one.
template <class Key>
struct Ordered {
  Key key;
  std::uint32_t place;
  bool operator<(const Ordered& other) const { return key != other.key ? key < other.key : place < other.place; }
};

// Sorts by key; elements of one key stay in the order in which they stand. By digits from the lowest on (Knuth, TAOCP 3,
// section 5.2.5), where there are enough for the tables of counts to pay. `spare` is scratch.
template <class Key>
void sort_by_key(std::vector<Ordered<Key>>& list, std::vector<Ordered<Key>>& spare);

extern template void sort_by_key(std::vector<Ordered<std::uint32_t>>&, std::vector<Ordered<std::uint32_t>>&);
extern template void sort_by_key(std::vector<Ordered<std::uint64_t>>&, std::vector<Ordered<std::uint64_t>>&);

}  // namespace oclc::package
