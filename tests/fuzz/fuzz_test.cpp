#include <doctest/doctest.h>

#include <set>
#include <string>

#include "frontends/onnx/import.h"
#include "tests/fuzz/generate.h"

namespace oclc::fuzz {
namespace {

TEST_CASE("Every operator that is read has a row of the fuzzer, or a reason to have none") {
  std::set<std::string_view> rows;
  for (const Spec& spec : all_specs()) {
    CHECK_MESSAGE(rows.insert(spec.op).second, spec.op << " has two rows");
    CHECK_MESSAGE(spec.since <= spec.until, spec.op);
  }
  for (const Unspecified& op : unspecified()) CHECK_MESSAGE(rows.insert(op.op).second, op.op << " has a row and a reason");
  std::set<std::string_view> read;
  for (const std::string_view op : onnx_operators()) {
    read.insert(op);
    CHECK_MESSAGE(rows.count(op) == 1, op << " has no row in tests/fuzz/specs_*.cpp");
  }
  for (const std::string_view op : rows) CHECK_MESSAGE(read.count(op) == 1, op << " is not read");
}

TEST_CASE("The same seed gives the same models") {
  const std::vector<Spec> specs = all_specs();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Spec& spec = specs[seed * 7 % specs.size()];
    const Single a = random_single(seed, spec.until, spec, "a"), b = random_single(seed, spec.until, spec, "a");
    CHECK(a.model.model.SerializeAsString() == b.model.model.SerializeAsString());
  }
}

TEST_CASE("A wrong result is a difference") {
  HostTensor wanted(DType::f32, {2}), found(DType::f32, {2});
  wanted.set(0, 1);
  wanted.set(1, 100);
  found.set(0, 1 + 1e-5);
  found.set(1, 100);
  CHECK(difference(found, {"y", false, 1, 0, wanted}).empty());
  CHECK_FALSE(difference(found, {"y", true, 1, 0, wanted}).empty());
  found.set(0, 1.01);
  CHECK_FALSE(difference(found, {"y", false, 1, 0, wanted}).empty());
  HostTensor number(DType::i64, {});
  CHECK_FALSE(difference(HostTensor::scalar(DType::i64, 1), {"y", false, 1, 0, number}).empty());
}

}  // namespace
}  // namespace oclc::fuzz
