// What the tests of narrow types share: a model's result, from the reference and the device alike, and lists of its numbers.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compiler/ops/reference/evaluate.h"
#include "tests/errors/import_error.h"
#include "tests/support/run_plan.h"

namespace oclc::narrow_types_test {

using oclc_onnx::TensorProto;
using test::Writer;
using Dims = std::vector<std::int64_t>;

constexpr int kE4M3FN = 17, kE4M3FNUZ = 18, kE5M2 = 19, kE5M2FNUZ = 20, kUint4 = 21, kInt4 = 22, kE2M1 = 23, kE8M0 = 24,
              kUint2 = 25, kInt2 = 26;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

struct Type {
  int number;
  DType dtype;
  int codes;
};
constexpr Type kTypes[] = {{kE4M3FN, DType::f8e4m3fn, 256},
                           {kE4M3FNUZ, DType::f8e4m3fnuz, 256},
                           {kE5M2, DType::f8e5m2, 256},
                           {kE5M2FNUZ, DType::f8e5m2fnuz, 256},
                           {kUint4, DType::u4, 16},
                           {kInt4, DType::i4, 16},
                           {kE2M1, DType::f4e2m1, 16},
                           {kUint2, DType::u2, 4},
                           {kInt2, DType::i2, 4}};

inline HostTensor every_code(const Type& type) {
  HostTensor t(type.dtype, {type.codes});
  for (int i = 0; i < type.codes; ++i)
    t.mutable_data()[i] =
        static_cast<std::byte>(!is_narrow_float(type.dtype) && is_signed(type.dtype) ? i - type.codes / 2 : i);
  return t;
}

inline HostTensor list(DType dtype, const std::vector<double>& values, Dims shape = {}) {
  HostTensor t(dtype, shape.empty() ? Dims{static_cast<std::int64_t>(values.size())} : std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, values[static_cast<std::size_t>(i) % values.size()]);
  return t;
}

// The first result of the reference; that of the device has the same bytes, NaN aside.
inline HostTensor run(const Writer& w, const std::vector<HostTensor>& inputs) {
  const std::shared_ptr<Module> module = w.import();
  REQUIRE(verify(*module->entries[0]) == "");
  const HostTensor wanted = evaluate(*module->entries[0], inputs).at(0);
  for (const bool fused : {true, false}) {
    CompileOptions options = test::default_options();
    options.disabled.push_back("fold_constants");
    if (!fused) options.disabled.push_back("fuse");
    test::PlanRunner runner(w.import(), options);
    const HostTensor found = runner.run(inputs).at(0);
    REQUIRE(found.type() == wanted.type());
    for (std::int64_t i = 0; i < wanted.elements(); ++i) {
      CAPTURE(i);
      const double a = found.at(i), b = wanted.at(i);
      CHECK(((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b))));
    }
  }
  return wanted;
}

inline void is(const HostTensor& found, const std::vector<double>& wanted) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    const double a = found.at(static_cast<std::int64_t>(i));
    CHECK(((a == wanted[i] && std::signbit(a) == std::signbit(wanted[i])) || (std::isnan(a) && std::isnan(wanted[i]))));
  }
}

inline Writer cast_model(int from, int to, std::int64_t count, bool saturates = true) {
  Writer w(23);
  w.input("x", {count}, from).output("y");
  auto& node = w.node("Cast", {"x"}, {"y"}, "n");
  test::set_int(node, "to", to);
  if (!saturates) test::set_int(node, "saturate", 0);
  return w;
}

}  // namespace oclc::narrow_types_test
