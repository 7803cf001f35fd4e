// Plans in memory that the runtime does not copy.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "tests/runtime/cached_run.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/plans.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A plan's bytes on a page boundary, `shift` bytes behind it.
class Lent {
 public:
  explicit Lent(const std::vector<std::byte>& bytes, std::size_t shift = 0)
      : size_(bytes.size()),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes.size() + shift + 4095) / 4096 * 4096))) {
    begin_ = memory_.get() + shift;
    std::memcpy(begin_, bytes.data(), bytes.size());
  }
  std::byte* begin() const { return begin_; }
  std::size_t size() const { return size_; }
  int released = 0;
  static void release(void* lent) { ++static_cast<Lent*>(lent)->released; }
  rt::Plan borrow() { return rt::Plan::borrow(begin(), size(), release, this); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* begin_ = nullptr;
};

}  // namespace

TEST_CASE("a borrowed plan runs, and its bytes are given back when the last session of it is released") {
  Lent lent(vector_plan_bytes());
  std::optional<rt::Plan> plan(lent.borrow());
  std::optional<rt::Session> first(std::in_place, *plan, rt::Context()), second(std::in_place, *plan, rt::Context());
  CHECK(run_vector(*first) == std::vector<float>{3, 9, 19, 33});
  plan.reset();
  first.reset();
  CHECK(lent.released == 0);
  CHECK(run_vector(*second) == std::vector<float>{3, 9, 19, 33});
  second.reset();
  CHECK(lent.released == 1);
}

TEST_CASE("a CPU uses a borrowed plan's constants where they lie") {
  Lent lent(vector_plan_bytes());
  const rt::Plan plan = lent.borrow();
  rt::Session session(plan, rt::Context("cpu"));
  CHECK(session.stats().constants_shared == 1);
  // What no caller may do shows that there is no copy.
  const std::vector<float> weights = {1, 2, 3, 4};
  const auto* sought = reinterpret_cast<const std::byte*>(weights.data());
  std::byte* end = lent.begin() + lent.size();
  std::byte* found = std::search(lent.begin(), end, sought, sought + 16);
  REQUIRE(found != end);
  std::memset(found, 0, 16);
  CHECK(run_vector(session) == std::vector<float>{1, 1, 1, 1});
}

TEST_CASE("bytes that do not begin on a page are refused, with how far they are off") {
  Lent lent(vector_plan_bytes(), 64);
  CHECK(error_of([&] { lent.borrow(); }, OCLC_E_ARGUMENT) ==
        "bytes: wanted an address that is a multiple of 4096, as constants are used where they lie, found one 64 bytes behind; "
        "oclc_plan_load_memory copies bytes from anywhere");
  CHECK(lent.released == 0);
}

TEST_CASE("bytes that are no plan, or one that may not be loaded, are not kept") {
  std::vector<std::byte> damaged = vector_plan_bytes();
  damaged[damaged.size() - 1] ^= std::byte{1};
  Lent lent(damaged);
  CHECK(error_of([&] { lent.borrow(); }, OCLC_E_PLAN).find("damaged plan") != std::string::npos);
  CHECK(error_of([&] { rt::Plan::borrow(lent.begin(), 0, Lent::release, &lent); }, OCLC_E_PLAN) ==
        "plan: not a plan: it is empty");
  CHECK(error_of([&] { rt::Plan::borrow(nullptr, 16, Lent::release, &lent); }, OCLC_E_ARGUMENT) == "bytes is NULL");
  CHECK(lent.released == 0);
}

TEST_CASE("a caller who needs no word gives none") {
  Lent lent(vector_plan_bytes());
  {
    const rt::Plan plan = rt::Plan::borrow(lent.begin(), lent.size());
    CHECK(plan.info().constant_bytes == 16);
  }
  CHECK(lent.released == 0);
}
