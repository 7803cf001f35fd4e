// Orders, groups and choices by the host, beside what their definitions say, one element after another.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/package/half.h"
#include "runtime/package/host_ops.h"

namespace oclc::package::order_test {

using plan::DType;
using Shape = std::vector<std::int64_t>;

template <class T>
HostValue tensor(DType dtype, Shape shape, const std::vector<T>& numbers) {
  HostValue value{dtype, std::move(shape), std::vector<std::byte>(numbers.size() * sizeof(T)), {}};
  if (!numbers.empty()) std::memcpy(value.data.data(), numbers.data(), value.data.size());
  return value;
}

template <class T>
std::vector<T> numbers_of(const HostValue& value) {
  std::vector<T> out(value.data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), value.data.data(), value.data.size());
  return out;
}

// Room whose bytes are no result.
template <class T>
HostValue empty(DType dtype, Shape shape) {
  HostValue value{dtype, std::move(shape), {}, {}};
  value.data.assign(value.elements() * sizeof(T), std::byte{0x5a});
  return value;
}

std::vector<HostValue> ordered(const std::string& name, std::vector<std::int64_t> settings,
                               const std::vector<HostValue>& inputs, std::vector<HostValue> outputs) {
  const HostOp* op = find_host_op(name);
  REQUIRE(op);
  const HostSettings all{std::move(settings), {}};
  REQUIRE(problem_of(*op, all) == "");
  op->run(all, inputs, outputs);
  return outputs;
}

std::string refusal(const std::string& name, std::vector<std::int64_t> settings, const std::vector<HostValue>& inputs,
                    std::vector<HostValue> outputs) {
  try {
    ordered(name, std::move(settings), inputs, std::move(outputs));
  } catch (const HostOpError& error) {
    return error.what();
  }
  return {};
}

// Many equal numbers, both zeros, both infinities and NaN.
std::vector<float> mixed(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (float& v : out) {
    const auto kind = static_cast<unsigned>(random() % 40);
    v = kind == 0   ? std::numeric_limits<float>::quiet_NaN()
        : kind == 1 ? -std::numeric_limits<float>::infinity()
        : kind == 2 ? std::numeric_limits<float>::infinity()
        : kind < 6  ? (random() % 2 ? 0.0F : -0.0F)
                    : static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.25F;
  }
  return out;
}

// NaN behind all numbers.
bool below(float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

TEST_CASE("the first of each row stand in order of size, equal ones in order of place") {
  for (const std::size_t size : {1u, 5u, 300u, 2500u, 40000u}) {
    for (const std::size_t k : {std::size_t{1}, size / 20, size / 2, size}) {
      for (const bool largest : {false, true}) {
        const std::size_t rows = 2;
        const std::vector<float> x = mixed(rows * size, static_cast<unsigned>(size + k));
        const auto out = ordered("top_places", {largest ? 1 : 0}, {tensor(DType::f32, {2, static_cast<std::int64_t>(size)}, x)},
                                 {empty<std::int64_t>(DType::i64, {2, static_cast<std::int64_t>(k)})});
        const auto found = numbers_of<std::int64_t>(out[0]);
        for (std::size_t r = 0; r < rows; ++r) {
          std::vector<std::int64_t> wanted(size);
          std::iota(wanted.begin(), wanted.end(), 0);
          const float* row = x.data() + r * size;
          std::stable_sort(wanted.begin(), wanted.end(), [&](std::int64_t a, std::int64_t b) {
            return largest ? below(row[b], row[a]) : below(row[a], row[b]);
          });
          wanted.resize(k);
          CHECK(std::equal(wanted.begin(), wanted.end(), found.begin() + static_cast<std::ptrdiff_t>(r * k)));
        }
      }
    }
  }
}

TEST_CASE("numbers of all types have their order") {
  const auto places = [](const HostValue& x) {
    return numbers_of<std::int64_t>(ordered("top_places", {0}, {x}, {empty<std::int64_t>(DType::i64, x.shape)}).at(0));
  };
  const std::vector<std::int64_t> wanted{2, 0, 1, 3};
  CHECK(places(tensor<std::int8_t>(DType::i8, {4}, {-1, 3, -128, 127})) == wanted);
  CHECK(places(tensor<std::int16_t>(DType::i16, {4}, {-1, 3, -32768, 32767})) == wanted);
  CHECK(places(tensor<std::int32_t>(DType::i32, {4}, {-1, 3, INT32_MIN, INT32_MAX})) == wanted);
  CHECK(places(tensor<std::int64_t>(DType::i64, {4}, {-1, 3, INT64_MIN, INT64_MAX})) == wanted);
  CHECK(places(tensor<std::uint8_t>(DType::u8, {4}, {5, 130, 0, 255})) == wanted);
  CHECK(places(tensor<std::uint16_t>(DType::u16, {4}, {5, 40000, 0, 65535})) == wanted);
  CHECK(places(tensor<std::uint32_t>(DType::u32, {4}, {5, 1u << 31, 0, UINT32_MAX})) == wanted);
  CHECK(places(tensor<std::uint64_t>(DType::u64, {4}, {5, std::uint64_t{1} << 63, 0, UINT64_MAX})) == wanted);
  CHECK(places(tensor<double>(DType::f64, {4}, {-1e-300, 3, -1e300, NAN})) == wanted);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> bits;
    for (const double v : {-0.5, 3.0, -100.0, static_cast<double>(NAN)}) bits.push_back(narrowed(dtype, v));
    CHECK(places(tensor(dtype, {4}, bits)) == wanted);
  }
  CHECK(refusal("top_places", {0}, {tensor<std::uint8_t>(DType::f8e5m2, {1}, {1})}, {empty<std::int64_t>(DType::i64, {1})}) ==
        "wanted numbers of a type that the host can order");
  CHECK(refusal("top_places", {0}, {tensor<float>(DType::f32, {2}, {1, 2})}, {empty<std::int64_t>(DType::i64, {3})}) ==
        "wanted places of at most all elements of each row");
}

TEST_CASE("different rows, in order of size and as they come") {
  for (const std::size_t n : {1u, 400u, 5000u}) {
    for (const std::size_t m : {1u, 3u}) {
      for (const bool sorted : {false, true}) {
        std::vector<float> x = mixed(n * m, static_cast<unsigned>(n + m));
        if (m > 1) {
          for (float& v : x) v = std::isfinite(v) ? std::round(v / 400) : v;
        }
        const auto rows = static_cast<std::int64_t>(n);
        const auto out = ordered("unique_rows", {sorted ? 1 : 0}, {tensor(DType::f32, {rows, static_cast<std::int64_t>(m)}, x)},
                                 {empty<std::int64_t>(DType::i64, {rows}), empty<std::int64_t>(DType::i64, {rows}),
                                  empty<std::int64_t>(DType::i64, {rows}), empty<std::int64_t>(DType::i64, {1})});
        const auto equal = [&](std::size_t a, std::size_t b) {
          for (std::size_t c = 0; c < m; ++c)
            if (x[a * m + c] != x[b * m + c]) return false;
          return true;
        };
        std::vector<std::int64_t> first;
        for (std::size_t i = 0; i < n; ++i) {
          bool there = false;
          for (std::size_t j = 0; j < first.size() && !there; ++j) there = equal(static_cast<std::size_t>(first[j]), i);
          if (!there) first.push_back(static_cast<std::int64_t>(i));
        }
        if (sorted)
          std::stable_sort(first.begin(), first.end(), [&](std::int64_t a, std::int64_t b) {
            for (std::size_t c = 0; c < m; ++c) {
              const float va = x[static_cast<std::size_t>(a) * m + c], vb = x[static_cast<std::size_t>(b) * m + c];
              if (below(va, vb) || below(vb, va)) return below(va, vb);
              if (std::isnan(va)) break;
            }
            return false;
          });
        REQUIRE(numbers_of<std::int64_t>(out[3]) == std::vector<std::int64_t>{static_cast<std::int64_t>(first.size())});
        const auto found = numbers_of<std::int64_t>(out[0]), place = numbers_of<std::int64_t>(out[1]),
                   counts = numbers_of<std::int64_t>(out[2]);
        CHECK(std::equal(first.begin(), first.end(), found.begin()));
        std::vector<std::int64_t> counted(n, 0);
        for (std::size_t i = 0; i < n; ++i) {
          const auto at = static_cast<std::size_t>(place[i]);
          REQUIRE(at < first.size());
          const auto stands = static_cast<std::size_t>(first[at]);
          CHECK((stands == i || equal(stands, i)));
          ++counted[at];
        }
        CHECK(counted == counts);
      }
    }
  }
}

TEST_CASE("texts differ by their bytes") {
  const HostValue x{DType::string_, {4, 1}, {}, {"b", "a", "b", "A"}};
  const HostValue room = empty<std::int64_t>(DType::i64, {4}), one = empty<std::int64_t>(DType::i64, {1});
  const auto out = ordered("unique_rows", {1}, {x}, {room, room, room, one});
  CHECK(numbers_of<std::int64_t>(out[0]) == std::vector<std::int64_t>{3, 1, 0, 0});
  CHECK(numbers_of<std::int64_t>(out[1]) == std::vector<std::int64_t>{2, 1, 2, 0});
  CHECK(numbers_of<std::int64_t>(out[2]) == std::vector<std::int64_t>{1, 1, 2, 0});
  CHECK(refusal("unique_rows", {1}, {x}, {room, one, room, one}) == "wanted room for all rows and their number");
}

TEST_CASE("places of what is true") {
  const HostValue one = empty<std::int64_t>(DType::i64, {1});
  const auto out = ordered("positions", {}, {tensor<std::uint8_t>(DType::bool_, {5}, {0, 1, 0, 1, 1})},
                           {empty<std::int64_t>(DType::i64, {5}), one});
  CHECK(numbers_of<std::int64_t>(out[0]) == std::vector<std::int64_t>{1, 3, 4, 0, 0});
  CHECK(numbers_of<std::int64_t>(out[1]) == std::vector<std::int64_t>{3});
  const auto none =
      ordered("positions", {}, {tensor<std::uint8_t>(DType::bool_, {0}, {})}, {empty<std::int64_t>(DType::i64, {0}), one});
  CHECK(numbers_of<std::int64_t>(none[1]) == std::vector<std::int64_t>{0});
}

TEST_CASE("updates are written one after another") {
  const auto scatter = [](std::int64_t reduction, const std::vector<float>& data, const std::vector<std::int64_t>& rows,
                          const std::vector<float>& updates) {
    const auto u = static_cast<std::int64_t>(rows.size());
    return numbers_of<float>(
        ordered("scatter_rows", {reduction},
                {tensor(DType::f32, {2, 2}, data), tensor(DType::i64, {u}, rows), tensor(DType::f32, {u, 2}, updates)},
                {empty<float>(DType::f32, {2, 2})})
            .at(0));
  };
  using Numbers = std::vector<float>;
  // Rows below 0 and beyond the data are none.
  const std::vector<std::int64_t> rows{1, -1, 1, 7};
  const Numbers data{1, 2, 3, 4}, updates{5, 6, 9, 9, 2, 8, 9, 9};
  CHECK(scatter(0, data, rows, updates) == Numbers{1, 2, 2, 8});
  CHECK(scatter(1, data, rows, updates) == Numbers{1, 2, 10, 18});
  CHECK(scatter(2, data, rows, updates) == Numbers{1, 2, 30, 192});
  CHECK(scatter(3, data, rows, updates) == Numbers{1, 2, 5, 8});
  CHECK(scatter(4, data, rows, updates) == Numbers{1, 2, 2, 4});
  CHECK(std::isnan(scatter(3, data, {0}, {NAN, 0})[0]));
  CHECK(std::isnan(scatter(4, {NAN, 2, 3, 4}, {0}, {1, 0})[0]));
  // In the order of the updates, rounded after each.
  CHECK(scatter(1, {1e8F, 0, 0, 0}, {0, 0, 0}, {3, 0, 3, 0, -1e8F, 0})[0] == ((1e8F + 3) + 3) + -1e8F);
  const auto wraps = ordered("scatter_rows", {2},
                             {tensor<std::int8_t>(DType::i8, {1, 1}, {100}), tensor<std::int64_t>(DType::i64, {1}, {0}),
                              tensor<std::int8_t>(DType::i8, {1, 1}, {3})},
                             {empty<std::int8_t>(DType::i8, {1, 1})});
  CHECK(numbers_of<std::int8_t>(wraps[0]) == std::vector<std::int8_t>{44});
  const auto halves = [](double v) { return tensor<std::uint16_t>(DType::f16, {1, 1}, {narrowed(DType::f16, v)}); };
  const auto half = ordered("scatter_rows", {1}, {halves(1), tensor<std::int64_t>(DType::i64, {1}, {0}), halves(0.5)},
                            {empty<std::uint16_t>(DType::f16, {1, 1})});
  CHECK(numbers_of<std::uint16_t>(half[0])[0] == narrowed(DType::f16, 1.5));
}

TEST_CASE("updates that do not fit are refused") {
  const HostValue data = tensor<float>(DType::f32, {1, 2}, {1, 2}), row = tensor<std::int64_t>(DType::i64, {1}, {0});
  CHECK(refusal("scatter_rows", {0}, {data, row, tensor<float>(DType::f32, {1, 1}, {1})}, {data}) ==
        "wanted rows of one size and type, and a row for each update");
  const HostValue flags = tensor<std::uint8_t>(DType::bool_, {1, 1}, {1});
  CHECK(refusal("scatter_rows", {1}, {flags, row, flags}, {flags}) == "wanted numbers of a type that the host can add");
  CHECK(refusal("scatter_rows", {0}, {flags, row, flags}, {flags}).empty());
  const HostOp& op = *find_host_op("scatter_rows");
  CHECK(problem_of(op, {{5}, {}}) == "reduction is 0 to 4");
  CHECK(problem_of(op, {{-1}, {}}) == "reduction is 0 to 4");
  CHECK(problem_of(*find_host_op("top_places"), {{2}, {}}) == "its setting is 0 or 1");
}

TEST_CASE("of boxes that overlap the better is chosen") {
  const std::vector<float> boxes{0, 0,  1, 1,  1, 1.1F,  0, 0.1F,  0, -0.1F, 1, 0.9F,
                                 0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100,   1, 101};
  const std::vector<float> scores{0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F};
  const auto choose = [&](std::int64_t most, float overlap, float least, std::int64_t room) {
    const auto out = ordered("choose_boxes", {0},
                             {tensor(DType::f32, {1, 6, 4}, boxes), tensor(DType::f32, {1, 1, 6}, scores),
                              tensor<std::int64_t>(DType::i64, {1}, {most}), tensor<float>(DType::f32, {1}, {overlap}),
                              tensor<float>(DType::f32, {1}, {least})},
                             {empty<std::int64_t>(DType::i64, {room, 3}), empty<std::int64_t>(DType::i64, {1})});
    const auto all = numbers_of<std::int64_t>(out[0]);
    std::vector<std::int64_t> chosen;
    for (std::int64_t i = 0; i < numbers_of<std::int64_t>(out[1])[0]; ++i)
      chosen.push_back(all[static_cast<std::size_t>(3 * i + 2)]);
    return chosen;
  };
  using Places = std::vector<std::int64_t>;
  CHECK(choose(3, 0.5F, 0, 6) == Places{3, 0, 5});
  CHECK(choose(2, 0.5F, 0, 6) == Places{3, 0});
  CHECK(choose(6, 0.5F, 0.4F, 6) == Places{3, 0});
  CHECK(choose(6, 1, 0, 6) == Places{3, 0, 1, 2, 4, 5});
  CHECK(choose(0, 0.5F, 0, 6).empty());
  CHECK(choose(-1, 0.5F, 0, 6).empty());
  CHECK_THROWS_WITH_AS(choose(3, 0.5F, 0, 2), "wanted room for all boxes that are chosen", HostOpError);
}

}  // namespace oclc::package::order_test
