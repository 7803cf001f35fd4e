// Tables of constants in the section of a plan: what stands there once serves every table that holds it.
#include <doctest/doctest.h>

#include "compiler/plan/joined_constants.h"

using namespace oclc;

namespace {

// Pieces of 128 bytes for each of their number and 4 more.
struct Tables {
  JoinedConstants joined;
  package::ConstantSection section;
  std::vector<std::shared_ptr<HostTensor>> owned;
  int added = 0;

  std::vector<std::uint64_t> place(const std::vector<int>& pieces) {
    return joined.place(pieces, section, [&](int piece) {
      ++added;
      owned.push_back(std::make_shared<HostTensor>(DType::f32, std::vector<std::int64_t>{piece * 32 + 1}));
      return StoredConstant{owned.back(), {}};
    });
  }
};

using Places = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a table that stands within another is not written again") {
  Tables t;
  CHECK(t.place({1, 2, 3, 4}) == Places{0, 256, 640, 1152});
  CHECK(t.place({2, 3}) == Places{256, 640});
  CHECK(t.place({1, 2, 3, 4}) == Places{0, 256, 640, 1152});
  CHECK(t.added == 4);
}

TEST_CASE("a table that begins with the last pieces goes on behind them") {
  Tables t;
  t.place({1, 2, 3});
  CHECK(t.place({2, 3, 1}) == Places{256, 640, 1152});
  CHECK(t.added == 4);
  CHECK(t.section.bytes() == 1152 + 128 + 4);
}

TEST_CASE("pieces in another order are written again") {
  Tables t;
  t.place({1, 2, 3});
  CHECK(t.place({3, 2}) == Places{640, 1152});
  CHECK(t.place({1, 3}) == Places{1536, 1792});
  CHECK(t.added == 6);
}

TEST_CASE("a table does not go on where other constants were added since") {
  Tables t;
  t.place({1, 2});
  const std::vector<std::byte> other(8);
  CHECK(t.section.add(other) == 640);
  CHECK(t.place({2, 3}) == Places{768, 1152});
  CHECK(t.place({1, 2}) == Places{0, 256});
  // What stands on both sides of it is no table.
  CHECK(t.place({1, 2, 2, 3}) == Places{1664, 1920, 2304, 2688});
  CHECK(t.added == 8);
}
