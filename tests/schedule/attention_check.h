// What tests of attention share: heads of a joint projection, masks, how many kernels attend.
#pragma once
#include <limits>

#include "tests/codegen/plan_check.h"

namespace oclc::test {

// Heads of [images, positions, heads * width] columns from `first` on, as [images, heads, positions, width].
inline Value* heads(Builder& b, Value* joint, std::int64_t first, Ints shape) {
  Value* part = b.slice(joint, exprs({0, 0, first}), exprs({shape[0], shape[1], shape[2] * shape[3]}), {1, 1, 1});
  return b.transpose(b.reshape(part, {Expr(shape[0]), Expr(shape[1]), Expr(shape[2]), Expr(shape[3])}), {0, 2, 1, 3});
}

// Of [2, 1, 1, 70], as truth values: which keys are seen.
inline Value* seen_keys(PlanCheck& check) {
  HostTensor keys(DType::i64, {2, 1, 1, 70});
  for (std::int64_t i = 0; i < keys.elements(); ++i) keys.set_int(i, i % 70 < 50 || i % 3 == 0 ? 1 : 0);
  return check.b.cast(check.input(std::move(keys)), DType::boolean);
}

// A mask of [80, 80] by -inf: the later a row, the more keys it sees, the first none and the last a single one.
inline HostTensor late_rows() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  HostTensor mask(DType::f32, {80, 80});
  for (std::int64_t i = 0; i < mask.elements(); ++i) mask.set(i, i % 80 > 79 - i / 80 ? 0 : -kInf);
  for (std::int64_t i = 0; i < 80; ++i) mask.set(79 * 80 + i, i == 3 ? 0 : -kInf);
  return mask;
}

// Kernels of attention in the plan of the first entry point.
inline std::size_t attentions(const PlanCheck& check, const CompileOptions& options) {
  const PlanRunner runner(module_of(copy_graph(*check.graph)), options);
  std::size_t count = 0;
  for (const Step& step : runner.compiled().schedule.entries[0].steps_apart()) count += step.is<AttentionStep>() ? 1 : 0;
  return count;
}

}  // namespace oclc::test
